//! Convolution in the Winograd domain.
//!
//! | | |
//! |---|---|
//! | In | images `[channels, height, width]`, this party's summands mod 2^bits |
//! | Out | `B^T x B` of every tile, for the products of [`oblivious`](super::ot_matmul); of these, extended or not, `A^T m A` |
//! | Reveals | nothing: all local |
//! | Security | the transforms are public and linear |
//! | Cost | none; the products are (m+2)^2 for m^2 outputs instead of 9*m^2 |
//! | Paper | Zeng et al., UFO, sections II-E and IV-A; Lavin, Gray (CVPR 2016) |
//!
//! What has to be extended where is for the plan to say (UFO, Fig. 10): the features' ring
//! holds the products, and if the results do not fit it, the products are extended before
//! the output's transform, or everything is computed in the ring of the results. Sums that
//! wrap around on the way do no harm: what counts is that the results fit.

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use graph::Conv;
use graph::winograd::{feature_rows, output_rows};
use zeroize::Zeroizing;

use crate::share::Share;

/// Most rows and columns of a tile of features.
const MOST_SIDE: usize = 6;
/// Most places of a tile.
const MOST_PLACES: usize = MOST_SIDE * MOST_SIDE;

/// Images cut into tiles that overlap by two rows and columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tiles {
    conv: Conv,
    tile: usize,
}

impl Tiles {
    /// Cuts results into tiles of `tile` rows and columns, 2 or 4. There is none but for dense
    /// 3x3 kernels with stride 1.
    pub fn new(conv: &Conv, tile: usize) -> Option<Self> {
        let dense = conv.kernel == [3, 3] && conv.stride == [1, 1] && conv.dilation == [1, 1];
        let fits = dense && conv.groups == 1 && graph::winograd::TILES.contains(&tile);
        fits.then(|| Self { conv: conv.clone(), tile })
    }

    /// The convolution.
    pub(super) fn conv(&self) -> &Conv {
        &self.conv
    }

    /// Returns the side of a tile of results.
    pub fn tile(&self) -> usize {
        self.tile
    }

    const fn side(&self) -> usize {
        self.tile + 2
    }

    /// Products for each tile.
    pub(super) const fn places(&self) -> usize {
        self.side() * self.side()
    }

    /// Tiles down and across.
    fn tiles(&self) -> [usize; 2] {
        [self.conv.out_height(), self.conv.out_width()].map(|side| side.div_ceil(self.tile))
    }

    /// `[places, output channels, input channels, tiles]` of one image.
    pub(super) fn sides(&self) -> [usize; 4] {
        let [down, across] = self.tiles();
        let columns = down.saturating_mul(across);
        [self.places(), self.conv.out_channels, self.conv.in_channels, columns]
    }

    /// Returns the features of one image's tiles, `[places, channels, tiles]`; local.
    pub fn features(&self, x: &Share) -> Share {
        Share::new(self.spread(x.words()).to_vec(), x.bits())
    }

    /// Returns the image out of products `[places, channels, tiles]`; local.
    pub fn outputs(&self, products: &Share) -> Share {
        Share::new(self.gather(1, products.words()), products.bits())
    }

    /// Returns the values of [`Tiles::features`] and [`Tiles::outputs`].
    pub fn counts(&self) -> [usize; 2] {
        let [places, _, inputs, columns] = self.sides();
        let Conv { out_channels, .. } = self.conv;
        [places * inputs * columns, out_channels * self.conv.out_height() * self.conv.out_width()]
    }

    /// `B^T x B` of every tile of the images `x`, `[places, channels, tiles of all images]`.
    pub(super) fn spread(&self, x: &[u64]) -> Zeroizing<Vec<u64>> {
        let [places, _, channels, columns] = self.sides();
        let plane = self.conv.in_height * self.conv.in_width;
        let images = x.len() / (channels * plane).max(1);
        let mut all = Zeroizing::new(vec![0; places * channels * images * columns]);
        let rows = feature_rows(self.tile);
        let mut tile = Zeroizing::new([0; MOST_PLACES]);
        for (index, from) in x.chunks_exact(plane.max(1)).enumerate() {
            let (image, channel) = (index / channels, index % channels);
            for column in 0..columns {
                self.cut(from, column, &mut tile[..places]);
                both_ways(rows, &mut tile);
                let to = (channel * images + image) * columns + column;
                let to = all.iter_mut().skip(to).step_by(channels * images * columns);
                to.zip(tile.iter()).for_each(|(to, value)| *to = *value);
            }
        }
        all
    }

    /// `A^T m A` of every tile of `[places, channels, tiles of all images]`: the images.
    pub(super) fn gather(&self, images: usize, products: &[u64]) -> Vec<u64> {
        let [places, channels, _, columns] = self.sides();
        let plane = self.conv.out_height() * self.conv.out_width();
        let mut all = vec![0; images * channels * plane];
        let rows = output_rows(self.tile);
        let mut tile = Zeroizing::new([0; MOST_PLACES]);
        for (index, to) in all.chunks_exact_mut(plane.max(1)).enumerate() {
            let (image, channel) = (index / channels, index % channels);
            for column in 0..columns {
                let from = (channel * images + image) * columns + column;
                let from = products.iter().skip(from).step_by(channels * images * columns);
                tile[..places].iter_mut().zip(from).for_each(|(to, value)| *to = *value);
                both_ways(rows, &mut tile);
                self.paste(&tile[..], column, to);
            }
        }
        all
    }

    /// What one tile sees of an image, with zeros around it.
    fn cut(&self, image: &[u64], column: usize, tile: &mut [u64]) {
        let (across, conv) = (self.tiles()[1].max(1), &self.conv);
        let first = [column / across * self.tile, column % across * self.tile];
        let at = |axis: usize, place: usize, side: usize| {
            (first[axis] + place).checked_sub(conv.padding[axis]).filter(|at| *at < side)
        };
        for (row, values) in tile.chunks_exact_mut(self.side()).enumerate() {
            let y = at(0, row, conv.in_height);
            for (place, value) in values.iter_mut().enumerate() {
                let x = at(1, place, conv.in_width);
                *value = y.zip(x).map_or(0, |(y, x)| image[y * conv.in_width + x]);
            }
        }
    }

    /// Writes a tile of results as far as it lies in the image.
    fn paste(&self, tile: &[u64], column: usize, image: &mut [u64]) {
        let (across, width) = (self.tiles()[1].max(1), self.conv.out_width());
        let [top, left] = [column / across * self.tile, column % across * self.tile];
        let count = self.tile.min(width - left);
        let lines = image.chunks_exact_mut(width).skip(top);
        for (line, values) in lines.zip(tile.chunks_exact(self.tile).take(self.tile)) {
            line[left..left + count].copy_from_slice(&values[..count]);
        }
    }
}

/// `M t M^T`, in place, of a square matrix of as many columns as `M`.
fn both_ways(rows: &[&[i64]], tile: &mut [u64; MOST_PLACES]) {
    let side = rows.first().map_or(0, |row| row.len());
    let mut half = Zeroizing::new([0u64; MOST_PLACES]);
    for (row, to) in rows.iter().zip(half.chunks_exact_mut(side)) {
        for (factor, from) in row.iter().zip(tile.chunks_exact(side)) {
            let terms = to.iter_mut().zip(from);
            terms.for_each(|(to, t)| *to = to.wrapping_add(t.wrapping_mul(*factor as u64)));
        }
    }
    for (from, to) in
        half.chunks_exact(side).zip(tile.chunks_exact_mut(rows.len())).take(rows.len())
    {
        for (row, to) in rows.iter().zip(to) {
            let products = row.iter().zip(from).map(|(f, t)| t.wrapping_mul(*f as u64));
            *to = products.fold(0, u64::wrapping_add);
        }
    }
}
