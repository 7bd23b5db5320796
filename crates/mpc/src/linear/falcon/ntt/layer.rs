//! The public plan of a layer.

use std::sync::Arc;

use graph::Conv;
use he::bfv::noise::{Estimate, Load};
use he::bfv::{Encoder, Params};
use wire::{Cost, Error, Result, Segment};

use super::packing::Packing;
use super::parameters;
use super::shape::Shape;
use super::transform::Transform;
use crate::linear::slots::Operations;
use crate::linear::transport::bfv;

/// The public plan of a linear layer in the domain of the transform.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Only the server's weights are made of it.
    pub(super) conv: Conv,
    pub(super) packing: Packing,
    pub(super) transform: Arc<Transform>,
    plain_bits: u32,
    encoder: Arc<Encoder>,
}

impl Layer {
    /// Plans `conv` (a matrix product is a 1x1 kernel on a 1x1 image) for shares of inputs of
    /// `held_bits` and accumulators that fit `plain_bits`, both signed. Strides compute every
    /// position and keep some. Groups are zero weights.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths that cannot be, and for layers that no ring or no secure
    /// parameters hold.
    pub fn new(conv: &Conv, held_bits: u32, plain_bits: u32) -> Result<Self> {
        if held_bits == 0 || held_bits > plain_bits || plain_bits > 58 {
            return Err(Error::misuse(format!(
                "inputs of {held_bits} bits and accumulators of {plain_bits}; accumulators hold \
                 their inputs and have at most 58 bits"
            )));
        }
        let shape = Shape::new(conv)?;
        let (packing, encoder) = parameters::choose(&shape, plain_bits, 1)?;
        let transform = Arc::new(Transform::new(shape.lengths, encoder.prime())?);
        Ok(Self { conv: conv.clone(), packing, transform, plain_bits, encoder })
    }

    /// Takes the layer to other parameters, which a whole plan shares. It is packed anew.
    ///
    /// # Errors
    /// [`Error::Misuse`] when `params` do not hold the layer.
    pub fn with_params(&self, params: &Params) -> Result<Self> {
        let shape = self.shape();
        if shape.block() > params.degree() {
            let (wanted, slots) = (shape.block(), params.degree());
            return Err(Error::misuse(format!("{slots} slots for transforms of {wanted}")));
        }
        let mut layer = self.clone();
        layer.packing = Packing::new(shape, params.degree())?;
        layer.encoder = parameters::encoder(params, self.plain_bits)?;
        parameters::hold(layer.packing.pieces(), &layer.encoder)?;
        layer.transform = Arc::new(Transform::new(shape.lengths, layer.prime())?);
        Ok(layer)
    }

    /// Returns the parameters of the encryption.
    pub fn params(&self) -> &Params {
        self.encoder.params()
    }

    /// Returns the plaintext prime p, above 2^plain_bits.
    pub fn prime(&self) -> u64 {
        self.encoder.prime()
    }

    /// Returns the encoder between slots and plaintexts.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Returns what responses have been through.
    pub fn load(&self) -> Load {
        parameters::load(self.packing.pieces(), &self.encoder)
    }

    /// Returns what the client's side is made of.
    pub const fn shape(&self) -> &Shape {
        &self.packing.shape
    }

    /// Layout of each input ciphertext: seed and body.
    pub(super) fn input_layouts(&self) -> Vec<Vec<Segment>> {
        bfv::input_layouts(self.params(), self.packing.pieces())
    }

    /// Layout of each response.
    pub(super) fn response_layouts(&self) -> Vec<Vec<Segment>> {
        bfv::response_layouts(&self.encoder, self.packing.responses())
    }

    /// Returns the bits that the flooding of its responses is above their noise.
    pub fn flooded(&self) -> u32 {
        let noise = Estimate::of(&self.encoder, &self.load());
        noise.and_then(|noise| noise.flooded()).unwrap_or_default()
    }

    /// Returns a bound on the probability that a result of a run is wrong.
    pub fn failure(&self) -> f64 {
        bfv::failure(&self.encoder, self.packing.responses())
    }

    /// Returns what a run costs.
    pub fn cost(&self) -> Cost {
        bfv::cost(self.input_layouts(), self.response_layouts())
    }

    /// Returns the number of values of the input.
    pub fn inputs(&self) -> usize {
        self.shape().inputs()
    }

    /// Returns the number of values of the output.
    pub fn outputs(&self) -> usize {
        self.shape().outputs()
    }

    /// Returns whether it is a matrix product.
    pub fn is_fully_connected(&self) -> bool {
        self.conv.is_fully_connected()
    }

    /// Returns the signed width that holds every accumulator.
    pub const fn plain_bits(&self) -> u32 {
        self.plain_bits
    }

    /// Returns N, the number of slots of a ciphertext.
    pub fn slots(&self) -> usize {
        self.packing.slots
    }

    /// Returns the ciphertexts up and down.
    pub fn ciphertexts(&self) -> (usize, usize) {
        (self.packing.pieces(), self.packing.responses())
    }

    /// Returns the steps of the rotation keys that a run needs: none.
    pub const fn rotations(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Returns what the server does in a run.
    pub fn operations(&self) -> Operations {
        let multiplications = self.packing.products();
        let additions = multiplications - self.packing.responses();
        Operations { multiplications, additions, ..Operations::default() }
    }

    /// Returns the protocol and packing, for people.
    pub fn describe(&self) -> String {
        let (inputs, responses) = self.ciphertexts();
        let [rows, columns] = self.shape().lengths;
        format!(
            "falcon-ntt, BFV {}, transforms of {rows}x{columns}, {inputs} in, {responses} out, \
             flooded by {} bits, {} channels and {} outputs together",
            self.params(),
            self.flooded(),
            self.packing.width,
            self.packing.copies
        )
    }
}
