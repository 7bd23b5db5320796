//! Several polynomials of a packing side by side in one ciphertext.
//!
//! With keys for unfolding ([`he::rlwe::UnfoldKey`]) a server takes 2^m input polynomials in one
//! ciphertext. They are those of a packing at degree N/2^m, x_u, in the powers of Y = X^(2^m):
//!
//! ```text
//! sent       sum over u of x_u(Y) * X^u
//! unfolded   x_u(Y), each by itself, 2^m times as large
//! weights    sum over j of w_j(Y) * X^j, j being 2^m consecutive blocks of output channels
//! response   sum over j of (x_u*w_j)(Y) * X^j
//! ```
//!
//! Since Y^(N/2^m) = X^N = -1, a product in Y is that of the packing, and the 2^m products of a
//! response do not meet. A layer of a inputs and b responses takes about `a*b = c/N` for a constant
//! c without folding, and `a*b = c/(N*2^m)` with it: both ways together 2^(m/2) times fewer
//! ciphertexts. Sources: unfolding, Angel, Chen, Laine, Setty, "SealPIR" (IEEE S&P 2018), section
//! 3.3; expansion before products with matrices, He, Yang, et al., "Rhombus" (CCS 2024).

use std::fmt;

use graph::Conv;
use zeroize::Zeroizing;

use super::{Packing, Place};

/// A packing whose polynomials are folded 2^levels at a time; by themselves at 0 levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Folding {
    packing: Packing,
    levels: usize,
}

impl Folding {
    /// All packings of `batch` images worth pricing at ring degree `degree`, folded `levels`
    /// times.
    pub(in super::super) fn candidates(
        conv: &Conv,
        batch: usize,
        degree: usize,
        levels: usize,
    ) -> impl Iterator<Item = Self> + '_ {
        let packings = Packing::candidates(conv, batch, degree >> levels);
        packings.map(move |packing| Self { packing, levels })
    }

    /// Returns how often polynomials are folded.
    pub(in super::super) fn levels(&self) -> usize {
        self.levels
    }

    /// 2^m: polynomials in one ciphertext.
    fn each(&self) -> usize {
        1 << self.levels
    }

    /// Most weights of one response that may differ from zero.
    pub(in super::super) fn weights_per_response(&self) -> usize {
        let blocks = self.each().min(self.packing.output_blocks());
        self.packing.weights_per_response() * blocks
    }

    /// Weights of an output channel.
    pub(in super::super) fn taps(&self) -> usize {
        let conv = &self.packing.conv;
        conv.group_channels() * conv.kernel[0] * conv.kernel[1]
    }

    /// Bundles of groups.
    pub(in super::super) fn groups(&self) -> usize {
        self.packing.groups()
    }

    /// Polynomials per tile and bundle.
    pub(in super::super) fn input_blocks(&self) -> usize {
        self.packing.input_blocks()
    }

    /// Responses per tile and bundle; the last bundle may lack some.
    pub(in super::super) fn output_blocks(&self) -> usize {
        self.packing.output_blocks().div_ceil(self.each())
    }

    /// Images in all.
    pub(in super::super) fn batch(&self) -> usize {
        self.packing.batch()
    }

    /// Values of one image.
    pub(in super::super) fn image_inputs(&self) -> usize {
        self.packing.image_inputs()
    }

    /// Results of one image.
    pub(in super::super) fn image_outputs(&self) -> usize {
        self.packing.image_outputs()
    }

    /// Ciphertexts from the client.
    pub(in super::super) fn inputs(&self) -> usize {
        self.packing.inputs().div_ceil(self.each())
    }

    /// Input polynomials in all.
    pub(in super::super) fn polynomials(&self) -> usize {
        self.packing.inputs()
    }

    /// Products of an input polynomial and a weight polynomial in all.
    pub(in super::super) fn pairs(&self) -> usize {
        self.responses().saturating_mul(self.input_blocks())
    }

    /// Input polynomials that the ciphertext `index` holds.
    pub(in super::super) fn polynomials_of(&self, index: usize) -> usize {
        self.packing.inputs().saturating_sub(index * self.each()).min(self.each())
    }

    /// Responses in all.
    pub(in super::super) fn responses(&self) -> usize {
        self.packing.responses_of(self.each())
    }

    /// Products of a ciphertext with a term of a weight polynomial in all.
    pub(in super::super) fn work(&self) -> usize {
        self.pairs().saturating_mul(self.packing.terms_each()).saturating_mul(self.each())
    }

    /// The responses in the order in which they are sent. The block of a place counts responses.
    pub(in super::super) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let (blocks, each) = (self.output_blocks(), self.each());
        self.packing
            .tiles_of_groups()
            .flat_map(move |place| (0..blocks).map(move |block| Place { block, ..place }))
            .filter(move |place| self.packing.holds(Place { block: place.block * each, ..*place }))
    }

    /// Index of the tile of `place` among all tiles of all bundles and images.
    pub(in super::super) fn tile_index(&self, place: Place) -> usize {
        self.packing.tile_index(place)
    }

    /// The input polynomials of a share in the powers of Y: by bundle, set of images, tile and block
    /// of planes.
    pub(in super::super) fn encode_narrow(
        &self,
        share: &[u64],
        degree: usize,
    ) -> Vec<Zeroizing<Vec<u64>>> {
        let narrow = self.packing.encode_inputs(share, degree >> self.levels);
        narrow.into_iter().map(Zeroizing::new).collect()
    }

    /// The polynomial of degree `degree` in X that one in Y is.
    pub(in super::super) fn spread(
        &self,
        narrow: Zeroizing<Vec<u64>>,
        degree: usize,
    ) -> Zeroizing<Vec<u64>> {
        match self.levels {
            0 => narrow,
            _ => self.beside(&[narrow], degree),
        }
    }

    /// The polynomials of a share as they are sent.
    pub(in super::super) fn encode_folded(
        &self,
        share: &[u64],
        degree: usize,
    ) -> Vec<Zeroizing<Vec<u64>>> {
        let narrow = self.encode_narrow(share, degree);
        match self.levels {
            0 => narrow,
            _ => narrow.chunks(self.each()).map(|some| self.beside(some, degree)).collect(),
        }
    }

    /// `sum over u of x_u(X^(2^m)) * X^u`.
    fn beside(&self, narrow: &[Zeroizing<Vec<u64>>], degree: usize) -> Zeroizing<Vec<u64>> {
        let mut wide = Zeroizing::new(vec![0; degree]);
        for (u, narrow) in narrow.iter().enumerate() {
            let places = wide.iter_mut().skip(u).step_by(self.each());
            places.zip(narrow.iter()).for_each(|(to, from)| *to = *from);
        }
        wide
    }

    /// The weight polynomials: bundle, response, input block.
    pub(in super::super) fn blocks(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let (outputs, inputs) = (self.output_blocks(), self.input_blocks());
        let groups = (0..self.groups()).flat_map(move |g| (0..outputs).map(move |o| (g, o)));
        groups.flat_map(move |(g, o)| (0..inputs).map(move |i| (g, o, i)))
    }

    /// The number of weight polynomials.
    pub(in super::super) fn weight_polynomials(&self) -> usize {
        self.groups().saturating_mul(self.output_blocks()).saturating_mul(self.input_blocks())
    }

    /// Powers of X at which a weight polynomial has coefficients, the same for all of
    /// them. The order is that of [`Self::weights`].
    pub(in super::super) fn powers(&self) -> Vec<usize> {
        let narrow = self.packing.powers();
        let of = |j: usize| narrow.iter().map(move |power| (power << self.levels) + j);
        (0..self.each()).flat_map(of).collect()
    }

    /// Where the coefficients of one polynomial are in weights `[O, I/g, kh, kw]`;
    /// `None` for channels that the last blocks do not have, taps that a phase does
    /// not have, and between groups.
    pub(in super::super) fn weights(
        &self,
        group: usize,
        output: usize,
        input: usize,
    ) -> Vec<Option<usize>> {
        let blocks = self.packing.output_blocks();
        let of = |j: usize| {
            let block = output * self.each() + j;
            let known = self.packing.weights(group, block, input).into_iter();
            known.map(move |from| from.filter(|_| block < blocks))
        };
        (0..self.each()).flat_map(of).collect()
    }

    /// The number of useful coefficients of a response.
    pub(in super::super) fn useful(&self, place: Place) -> usize {
        let blocks =
            (0..self.each()).map(|j| Place { block: place.block * self.each() + j, ..place });
        blocks
            .filter(|place| self.packing.holds(*place))
            .map(|place| self.packing.useful(place))
            .sum()
    }

    /// The useful coefficients of a response, ascending, each with the index of its
    /// value in the output: image after image in channel-major order.
    pub(in super::super) fn outputs(&self, place: Place) -> Vec<(usize, usize)> {
        let blocks = (0..self.each()).map(|j| (j, place.block * self.each() + j));
        let mut useful = Vec::with_capacity(self.useful(place));
        for (j, block) in blocks {
            let place = Place { block, ..place };
            if self.packing.holds(place) {
                let outputs = self.packing.outputs(place).into_iter();
                useful.extend(outputs.map(|(at, to)| ((at << self.levels) + j, to)));
            }
        }
        useful.sort_unstable();
        useful
    }
}

/// Tiles, channels per polynomial, and what is special.
impl fmt::Display for Folding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.packing)
    }
}
