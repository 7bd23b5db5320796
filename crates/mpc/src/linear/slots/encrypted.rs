//! Evaluation under encryption.

use he::bfv::{Accumulator, Ciphertext, Hoisted, RotationKeys};
use wire::Result;

use super::layer::Layer;
use super::machine::{At, Evaluator};
use super::weights::ServerWeights;
use crate::linear::transport::misuse;

/// BFV with the weights of a layer.
pub(super) struct Encrypted<'a> {
    pub(super) layer: &'a Layer,
    pub(super) keys: &'a RotationKeys,
    pub(super) weights: &'a ServerWeights,
}

impl Evaluator for Encrypted<'_> {
    type Cipher = Ciphertext;
    type Hoisted = Hoisted;
    type Sum = Accumulator;

    fn hoist(&self, cipher: &Ciphertext) -> Result<Hoisted> {
        Ok(cipher.hoist())
    }
    fn rotate_hoisted(&self, hoisted: &Hoisted, step: usize) -> Result<Ciphertext> {
        hoisted.rotate(self.keys, step).map_err(misuse)
    }
    fn rotate(&self, cipher: &Ciphertext, step: usize) -> Result<Ciphertext> {
        cipher.rotate(self.keys, step).map_err(misuse)
    }
    fn sum(&self) -> Result<Accumulator> {
        Ok(Accumulator::new(self.layer.params()))
    }
    fn multiply_add(&self, sum: &mut Accumulator, factors: &[&Ciphertext], at: At) -> Result<()> {
        let plains = self.weights.at(self.layer, at)?;
        let mut products = factors.iter().zip(plains.as_slice());
        products.try_for_each(|(cipher, plain)| sum.multiply_add(cipher, plain).map_err(misuse))
    }
    fn finish(&self, sum: Accumulator) -> Result<Ciphertext> {
        Ok(sum.finish())
    }
    fn add(&self, cipher: &mut Ciphertext, other: &Ciphertext) -> Result<()> {
        cipher.add(other).map_err(misuse)
    }
}
