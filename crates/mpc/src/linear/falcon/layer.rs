//! The public plan of a layer.

use std::sync::Arc;

use graph::Conv;
use he::bfv::noise::{self, Load, TAIL};
use he::bfv::{Encoder, Params};
use ring::Modulus;
use wire::{Cost, Error, Result, Segment};

use super::fourier::Fourier;
use super::small::Small;
use crate::linear::falcon::ntt::packing::Packing;
use crate::linear::falcon::ntt::{Shape, parameters};
use crate::linear::slots::Operations;
use crate::linear::transport::bfv;

/// Bits of the largest plaintext prime: words of responses hold no more.
const MOST_BITS: u32 = 50;
/// Fraction bits of a product that are enough for any layer.
const MOST_FRACTION: u32 = 24;
/// Products of each ciphertext in a response.
const PRODUCTS: usize = 2;

/// Says that it is accepted what these layers leak. Masks are wider than results by so many
/// bits: for each value the client tells two results apart with probability up to 2^-bits, and a
/// layer shows it a value for every slot, every time it runs. Wider masks leave fewer
/// fraction bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptLeakage {
    pub(super) hidden_bits: u32,
}

impl AcceptLeakage {
    /// Accepts what masks leak that are `bits` bits wider than results.
    pub const fn hiding_bits(bits: u32) -> Self {
        Self { hidden_bits: bits }
    }

    /// How many bits masks are wider than what they hide.
    pub(crate) const fn bits(self) -> u32 {
        self.hidden_bits
    }
}

/// The public plan of a linear layer in the Fourier domain.
#[derive(Clone, Debug)]
pub struct Layer {
    pub(super) conv: Conv,
    pub(super) packing: Packing,
    pub(super) fourier: Arc<Fourier>,
    pub(super) modulus: Modulus,
    /// Fraction bits of inputs and of weights.
    pub(super) fractions: [u32; 2],
    held_bits: u32,
    plain_bits: u32,
    leakage: AcceptLeakage,
    /// Bits that the plaintext prime has room for.
    prime_bits: u32,
    encoder: Arc<Encoder>,
}

impl Layer {
    /// Plans `conv` for inputs of `held_bits` and accumulators (all partial sums included) that
    /// fit `plain_bits`, both signed. Fraction bits are what the plaintext prime has room for.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths that cannot be or leave no fraction bits, and for layers that
    /// no ring or no secure parameters hold.
    pub fn new(
        conv: &Conv,
        held_bits: u32,
        plain_bits: u32,
        leakage: AcceptLeakage,
    ) -> Result<Self> {
        if held_bits == 0 || held_bits > plain_bits || plain_bits > MOST_BITS {
            return Err(Error::misuse(format!(
                "inputs of {held_bits} bits and accumulators of {plain_bits}; accumulators hold \
                 their inputs and have at most {MOST_BITS} bits"
            )));
        }
        let shape = Shape::new(conv)?;
        let whole = whole_bits(&shape, plain_bits, leakage);
        // The transform of a single value rounds nothing.
        let [least, most] = if shape.block() == 1 { [0, 0] } else { [2, MOST_FRACTION] };
        let left = MOST_BITS.checked_sub(whole).filter(|bits| *bits >= least);
        let fraction = left.ok_or_else(|| {
            Error::misuse(format!(
                "masks {} bits wider than results of {plain_bits} bits leave no fraction bits; use \
                 narrower masks or accumulators, or falcon_ntt, which has no use for them",
                leakage.hidden_bits
            ))
        })?;
        let fraction = fraction.min(most);
        let (packing, encoder) = parameters::choose(&shape, whole + fraction, PRODUCTS)?;
        let modulus = Modulus::new(encoder.prime());
        let modulus = modulus.ok_or_else(|| Error::misuse("a plaintext prime above 2^62"))?;
        Ok(Self {
            conv: conv.clone(),
            fourier: Arc::new(Fourier::new(shape.lengths)),
            packing,
            modulus,
            fractions: [fraction / 2, fraction - fraction / 2],
            held_bits,
            plain_bits,
            leakage,
            prime_bits: whole + fraction,
            encoder,
        })
    }

    /// Takes the layer to other parameters, with the packing that suits them.
    ///
    /// # Errors
    /// [`Error::Misuse`] when they do not hold it.
    pub fn with_params(&self, params: &Params) -> Result<Self> {
        let shape = self.shape();
        if shape.block() > params.degree() {
            let (wanted, slots) = (shape.block(), params.degree());
            return Err(Error::misuse(format!("{slots} slots for transforms of {wanted}")));
        }
        let mut layer = self.clone();
        layer.packing = Packing::new(shape, params.degree())?;
        layer.encoder = parameters::encoder(params, self.prime_bits)?;
        parameters::hold(PRODUCTS * layer.packing.pieces(), &layer.encoder)?;
        let modulus = Modulus::new(layer.prime());
        layer.modulus = modulus.ok_or_else(|| Error::misuse("a plaintext prime above 2^62"))?;
        Ok(layer)
    }

    /// Returns what a result is off by, at most, but for a probability below 2^-65: of rounding the
    /// transforms, [`TAIL`] deviations, and of rounding the result. Nothing on single pixels, which
    /// are their own transforms.
    pub fn error(&self) -> f64 {
        if self.shape().block() == 1 {
            return 0.0;
        }
        let shape = &self.packing.shape;
        let [input, weight] = self.fractions.map(|bits| (-f64::from(bits)).exp2());
        let held = f64::from(self.held_bits);
        // Squares of the norms of all that is multiplied.
        let inputs = (2.0 * held - 2.0).exp2() * shape.inputs() as f64;
        let weights = (2.0 * (f64::from(self.plain_bits) - held)).exp2();
        let rounding = 1.0 / 12.0;
        let (blocks, area) = (self.packing.width as f64, shape.block() as f64);
        let products = 2.0 * weights * input * input + inputs * weight * weight;
        let both = shape.input[0] as f64 * area * (input * weight).powi(2);
        let masks = blocks * (input * weight).powi(2);
        // A value and its conjugate are rounded alike.
        let variance = 2.0 * rounding * (products + both + masks) / area;
        1.0 + TAIL * variance.sqrt()
    }

    /// Bits of the magnitude of a mask.
    pub(super) const fn mask_bits(&self) -> u32 {
        self.plain_bits - 1 + self.leakage.hidden_bits
    }

    /// Returns the number of bits of the magnitude of shares of the input.
    pub const fn share_bits(&self) -> u32 {
        self.held_bits + self.leakage.hidden_bits + 1
    }

    /// Returns what makes such shares.
    ///
    /// # Errors
    /// [`Error::Misuse`] for shares wider than a machine word.
    pub fn small(&self) -> Result<Small> {
        Small::hidden(self.inputs(), self.held_bits, self.leakage)
    }

    /// Returns whether it is a product of a matrix and a vector.
    pub fn is_fully_connected(&self) -> bool {
        self.conv.is_fully_connected()
    }

    /// Returns the parameters of the encryption.
    pub fn params(&self) -> &Params {
        self.encoder.params()
    }

    /// Returns the plaintext prime p.
    pub fn prime(&self) -> u64 {
        self.encoder.prime()
    }

    /// Returns the encoder between slots and plaintexts.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Returns what responses have been through.
    pub fn load(&self) -> Load {
        parameters::load(PRODUCTS * self.packing.pieces(), &self.encoder)
    }

    /// Returns what the client's side is made of.
    pub const fn shape(&self) -> &Shape {
        &self.packing.shape
    }

    /// Layout of each input ciphertext: seed and body.
    pub(super) fn input_layouts(&self) -> Vec<Vec<Segment>> {
        bfv::input_layouts(self.params(), self.ciphertexts().0)
    }

    /// Layout of each response.
    pub(super) fn response_layouts(&self) -> Vec<Vec<Segment>> {
        bfv::response_layouts(&self.encoder, self.ciphertexts().1)
    }

    /// Returns a bound on the probability that a result of a run is wrong.
    pub fn failure(&self) -> f64 {
        // Results are off by more than `error` as rarely as coefficients do not decrypt.
        let off = self.outputs() as f64 * noise::coefficient_failure();
        bfv::failure(&self.encoder, self.ciphertexts().1) + off
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

    /// Returns the signed width that holds every accumulator.
    pub const fn plain_bits(&self) -> u32 {
        self.plain_bits
    }

    /// Returns the ciphertexts up and down, real and imaginary.
    pub fn ciphertexts(&self) -> (usize, usize) {
        (2 * self.packing.pieces(), 2 * self.packing.responses())
    }

    /// Returns what the server does in a run, beside one difference for each pair of inputs.
    pub fn operations(&self) -> Operations {
        let multiplications = 4 * self.packing.products();
        let additions = multiplications - self.ciphertexts().1;
        Operations { multiplications, additions, ..Operations::default() }
    }

    /// Returns the protocol and packing, for people.
    pub fn describe(&self) -> String {
        let (inputs, responses) = self.ciphertexts();
        let [rows, columns] = self.shape().lengths;
        format!(
            "falcon, BFV {}, complex transforms of {rows}x{columns} with {:?} fraction bits, masks \
             of {} bits, {inputs} in, {responses} out",
            self.params(),
            self.fractions,
            self.mask_bits()
        )
    }
}

/// Bits below 2^-1 of a prime that hold a masked value of a transform, without fraction. Of
/// masks that is [`TAIL`] deviations.
fn whole_bits(shape: &Shape, plain_bits: u32, leakage: AcceptLeakage) -> u32 {
    let (area, plain) = (shape.block() as f64, f64::from(plain_bits) - 1.0);
    let masks = area.min(TAIL * area.sqrt()) * f64::from(leakage.hidden_bits).exp2();
    ((plain + (area + masks).log2()).ceil() as u32).saturating_add(1)
}
