//! Convolution in the Winograd domain: its geometry and its three public transforms.
//!
//! Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016);
//! UFO, section II-E: `Y = A^T [(G W G^T) (.) (B^T X B)] A` for every tile of the image.

use crate::ops::accumulator::Rounding;
use crate::ops::choice::WeightBits;
use crate::ops::geometry::Conv;
use serde::{Deserialize, Serialize};

/// A 3x3 convolution whose weights were brought to the Winograd domain and are integers
/// there:
/// `y = (A^T [U (.) (B^T x B)] A + bias + addend*skip + 2^(shift-1)) >> shift`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Winograd {
    /// The geometry: a 3x3 kernel, stride and dilation 1, one group.
    pub conv: Conv,
    /// Rows and columns of the output that one tile makes, 2 or 4.
    pub tile: usize,
    /// Width of the ring in which the products of `U` and features are summed up. Every
    /// input's share is at least this wide. If the accumulator is wider, the sums fit this
    /// width as signed integers and are extended before the output's transform.
    pub product_bits: u32,
    /// Whether the sums have a bit to spare, as what an [`super::super::Extend`] reads.
    #[serde(rename = "spare", default, skip_serializing_if = "std::ops::Not::not")]
    pub headroom: bool,
    /// A width between the two to which the sums are extended first, to measure what a single
    /// extension saves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage_bits: Option<u32>,
    /// Signed width that holds every result before its rescale, the rounding term included.
    /// An addend's share is at least this wide, and the output's plus `shift` at most.
    pub accumulator_bits: u32,
    /// The bits of a weight of `U`.
    pub choice: WeightBits,
    /// Number of low bits that are dropped from the accumulator.
    pub shift: u32,
    /// How the low bits are dropped.
    pub rounding: Rounding,
    /// Multiplier of `inputs[1]`, which has the output's shape.
    pub addend: Option<i64>,
}

/// The matrices of one tile size.
struct Matrices {
    /// `B^T`, square.
    feature: &'static [&'static [i64]],
    /// `A^T`, `tile` rows.
    output: &'static [&'static [i64]],
    /// `G`, three columns.
    weight: &'static [[f64; 3]],
}

/// F(2x2, 3x3).
const TWO: Matrices = Matrices {
    feature: &[&[1, 0, -1, 0], &[0, 1, 1, 0], &[0, -1, 1, 0], &[0, 1, 0, -1]],
    output: &[&[1, 1, 1, 0], &[0, 1, -1, -1]],
    weight: &[[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]],
};

/// F(4x4, 3x3).
const FOUR: Matrices = Matrices {
    feature: &[
        &[4, 0, -5, 0, 1, 0],
        &[0, -4, -4, 1, 1, 0],
        &[0, 4, -4, -1, 1, 0],
        &[0, -2, -1, 2, 1, 0],
        &[0, 2, -1, -2, 1, 0],
        &[0, 4, 0, -5, 0, 1],
    ],
    output: &[
        &[1, 1, 1, 1, 1, 0],
        &[0, 1, -1, 2, -2, 0],
        &[0, 1, 1, 4, 4, 0],
        &[0, 1, -1, 8, -8, 1],
    ],
    weight: &[
        [1.0 / 4.0, 0.0, 0.0],
        [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
        [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
        [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
        [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
        [0.0, 0.0, 1.0],
    ],
};

fn matrices(tile: usize) -> Matrices {
    if tile == 4 { FOUR } else { TWO }
}

/// The tile sizes for which transform matrices exist.
pub const TILES: [usize; 2] = [2, 4];

/// `B^T`, rows of the feature transform, for a tile size of [`TILES`].
pub fn feature_rows(tile: usize) -> &'static [&'static [i64]] {
    matrices(tile).feature
}

/// `A^T`, rows of the output transform.
pub fn output_rows(tile: usize) -> &'static [&'static [i64]] {
    matrices(tile).output
}

/// `G w G^T` of a 3x3 kernel, row by row.
pub fn transformed_kernel(tile: usize, kernel: &[f64]) -> Vec<f64> {
    let rows = matrices(tile).weight;
    let one = |a: &[f64; 3], b: &[f64; 3]| {
        let taps = kernel
            .chunks(3)
            .zip(a)
            .map(|(row, a)| a * row.iter().zip(b).map(|(w, b)| w * b).sum::<f64>());
        taps.sum()
    };
    rows.iter().flat_map(|a| rows.iter().map(move |b| one(a, b))).collect()
}

impl Winograd {
    /// Returns the number of rows and columns of a tile of features, `tile + 2`.
    pub fn side(&self) -> usize {
        self.tile + 2
    }

    /// Returns the number of places in the Winograd domain, each of which is a matrix product of
    /// its own.
    pub fn places(&self) -> usize {
        self.side() * self.side()
    }

    /// Returns the number of tiles down and across.
    pub fn tiles(&self) -> [usize; 2] {
        let sides = [self.conv.out_height(), self.conv.out_width()];
        sides.map(|side| side.div_ceil(self.tile.max(1)))
    }

    /// Returns the number of tiles of one channel.
    pub fn columns(&self) -> usize {
        let [down, across] = self.tiles();
        down * across
    }

    /// `B^T x B` of every tile, `[places, in_channels, columns]`, of an input
    /// `[in_channels, in_height, in_width]`. Wraps, so that shares may be transformed, too.
    pub fn features(&self, x: &[i64]) -> Vec<i64> {
        let (places, columns) = (self.places(), self.columns());
        let channels = self.conv.in_channels;
        let mut features = vec![0; places * channels * columns];
        let mut tile = vec![0; places];
        let rows = feature_rows(self.tile);
        let images = x.chunks_exact((self.conv.in_height * self.conv.in_width).max(1));
        for (channel, image) in images.enumerate() {
            for column in 0..columns {
                self.cut(image, column, &mut tile);
                let values = both_ways(rows, &tile, self.side());
                for (place, value) in values.into_iter().take(places).enumerate() {
                    features[(place * channels + channel) * columns + column] = value;
                }
            }
        }
        features
    }

    /// `A^T m A` of every tile, `[out_channels, out_height, out_width]`, of sums of products
    /// `[places, out_channels, columns]`. Wraps, so that shares may be transformed, too.
    pub fn outputs(&self, sums: &[i64]) -> Vec<i64> {
        let (places, columns) = (self.places(), self.columns());
        let (channels, across) = (self.conv.out_channels, self.tiles()[1]);
        let (height, width) = (self.conv.out_height(), self.conv.out_width());
        let rows = output_rows(self.tile);
        let mut outputs = vec![0; channels * height * width];
        let mut tile = vec![0; places];
        for (channel, image) in outputs.chunks_exact_mut((height * width).max(1)).enumerate() {
            for column in 0..columns {
                for (place, sum) in tile.iter_mut().enumerate() {
                    *sum = sums[(place * channels + channel) * columns + column];
                }
                let (top, left) = (column / across * self.tile, column % across * self.tile);
                let values = both_ways(rows, &tile, self.side());
                for (row, values) in values.chunks_exact(self.tile).take(self.tile).enumerate() {
                    if top + row < height {
                        let end = width.min(left + self.tile);
                        let start = (top + row) * width;
                        let line = &mut image[start + left..start + end];
                        line.copy_from_slice(&values[..end - left]);
                    }
                }
            }
        }
        outputs
    }

    /// What one tile sees of an image, with zeros around it.
    fn cut(&self, image: &[i64], column: usize, tile: &mut [i64]) {
        let across = self.tiles()[1];
        let [top, left, ..] = self.conv.padding;
        let first = [column / across * self.tile, column % across * self.tile];
        for (place, value) in tile.iter_mut().enumerate() {
            let at = [place / self.side(), place % self.side()];
            let y = (first[0] + at[0]).checked_sub(top).filter(|y| *y < self.conv.in_height);
            let x = (first[1] + at[1]).checked_sub(left).filter(|x| *x < self.conv.in_width);
            *value = y.zip(x).map_or(0, |(y, x)| image[y * self.conv.in_width + x]);
        }
    }
}

/// Elements of the largest tile of features.
const MOST: usize = 36;

/// `M t M^T` for a matrix of `side` columns, row by row; zeros behind it.
fn both_ways(rows: &[&[i64]], tile: &[i64], side: usize) -> [i64; MOST] {
    let (mut left, mut all) = ([0i64; MOST], [0i64; MOST]);
    for (row, sums) in rows.iter().zip(left.chunks_exact_mut(side)) {
        for (factor, values) in row.iter().zip(tile.chunks_exact(side)) {
            let terms = sums.iter_mut().zip(values);
            terms.for_each(|(sum, value)| *sum = sum.wrapping_add(factor.wrapping_mul(*value)));
        }
    }
    for (line, sums) in left.chunks_exact(side).zip(all.chunks_exact_mut(rows.len())) {
        for (row, sum) in rows.iter().zip(sums) {
            let products = row.iter().zip(line).map(|(factor, v)| factor.wrapping_mul(*v));
            *sum = products.fold(0, i64::wrapping_add);
        }
    }
    all
}
