//! Which value sits in which coefficient (Cheetah, section 4).
//!
//! A tile of the stride-1 view has `tile` outputs per channel and, with its halo,
//! S = (tile rows + kernel rows - 1) * (tile columns + kernel columns - 1) inputs.
//! A polynomial holds `in_block` channels of a tile, channel c, row i, column j at
//! coefficient `c*S + i*W + j` (W the tile's width with halo). The weights of
//! output slot m stand reversed below `base(m)`, the slots `in_block * S` apart; in
//! the product, coefficient `base(m) + i*W + j` is output (i, j) of slot m, summed
//! over the polynomial's channels. With in_block * out_block * S <= N no other
//! term, wrapped around or not, falls on these coefficients.

use ring::pack::packed_len;
use wire::{Error, Result};

use super::shape::{Shape, View};

/// How a convolution is cut into polynomials. Follows from public facts alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packing {
    pub(super) view: View,
    degree: usize,
    tile: [usize; 2],
    in_block: usize,
    out_block: usize,
}

/// A response: a tile and a block of output channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) tile: usize,
    pub(super) block: usize,
}

impl Packing {
    /// The packing with the fewest bytes, then the fewest products, for ciphertexts
    /// of `modulus_bits` and responses of `response_bits` at ring degree `degree`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for an impossible shape or a kernel with more taps than a
    /// polynomial has coefficients.
    pub fn choose(
        shape: &Shape,
        degree: usize,
        modulus_bits: u32,
        response_bits: u32,
    ) -> Result<Self> {
        let view = View::new(shape)?;
        let input = 16 + packed_len(degree, modulus_bits);
        let response = packed_len(degree, response_bits);
        let cost = |packing: &Self| {
            let bytes = packing.inputs() * input + packing.responses() * response;
            (bytes, packing.responses() * packing.in_blocks())
        };
        candidates(&view, degree)
            .min_by_key(cost)
            .ok_or_else(|| Error::misuse(format!("a kernel too large for degree {degree}")))
    }

    /// Ring degree N.
    pub const fn degree(&self) -> usize {
        self.degree
    }

    /// Ciphertexts that the client sends.
    pub fn inputs(&self) -> usize {
        self.tiles() * self.in_blocks()
    }

    /// Responses that the server sends.
    pub fn responses(&self) -> usize {
        self.tiles() * self.out_blocks()
    }

    /// Output channels per response.
    pub const fn out_block(&self) -> usize {
        self.out_block
    }

    /// The convolution.
    pub fn shape(&self) -> &Shape {
        self.view.shape()
    }

    /// Number of outputs, channel-major.
    pub fn outputs(&self) -> usize {
        self.view.outputs()
    }

    /// Output channels and outputs per channel.
    pub(super) fn out_channels(&self) -> [usize; 2] {
        let [rows, columns] = self.view.out;
        [self.shape().out_channels, rows * columns]
    }

    pub(super) fn tiles(&self) -> usize {
        self.tile_grid().iter().product()
    }

    pub(super) fn in_blocks(&self) -> usize {
        self.view.channels().div_ceil(self.in_block)
    }

    pub(super) fn out_blocks(&self) -> usize {
        self.shape().out_channels.div_ceil(self.out_block)
    }

    /// All responses in the order in which they are sent.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let blocks = self.out_blocks();
        (0..self.tiles()).flat_map(move |tile| (0..blocks).map(move |block| Place { tile, block }))
    }

    /// The coefficients of a response that hold outputs, ascending.
    pub fn useful(&self, response: usize) -> Vec<usize> {
        self.places().nth(response).map_or_else(Vec::new, |place| self.kept(place))
    }

    pub(super) fn kept(&self, place: Place) -> Vec<usize> {
        let width = self.halo()[1];
        let slots = 0..self.out_range(place.block).len();
        let cells = slots.flat_map(|slot| self.cells(place.tile).map(move |cell| (slot, cell)));
        cells.map(|(slot, [row, column])| self.base(slot) + row * width + column).collect()
    }

    /// Number of coefficients in [`Packing::kept`].
    pub(super) fn kept_len(&self, place: Place) -> usize {
        let [rows, columns] = self.tile_size(place.tile);
        self.out_range(place.block).len() * rows * columns
    }

    /// The outputs that [`Packing::kept`] holds, in the same order.
    pub(super) fn destinations(&self, place: Place) -> impl Iterator<Item = usize> {
        let [rows, columns] = self.view.out;
        let [top, left] = self.tile_corner(place.tile);
        self.out_range(place.block).flat_map(move |channel| {
            self.cells(place.tile)
                .map(move |[row, column]| (channel * rows + top + row) * columns + left + column)
        })
    }

    /// Input polynomial `block` of `tile`: N values of a share in channel-major order.
    pub(super) fn input(&self, share: &[u64], tile: usize, block: usize) -> Vec<u64> {
        let ([height, width], [top, left]) = (self.halo(), self.tile_corner(tile));
        let mut poly = vec![0; self.degree];
        let first = block * self.in_block;
        let channels = first..self.view.channels().min(first + self.in_block);
        let rows = channels.flat_map(|channel| (0..height).map(move |row| (channel, row)));
        for (line, (channel, row)) in poly.chunks_mut(width).zip(rows) {
            for (column, value) in line.iter_mut().enumerate() {
                let pixel = self.view.pixel(channel, top + row, left + column);
                *value = pixel.and_then(|at| share.get(at)).copied().unwrap_or(0);
            }
        }
        poly
    }

    /// Whether any output channel of `out` sees any channel of input block `block`:
    /// a fact of the shape, not of the weights.
    pub(super) fn connected(&self, block: usize, out: usize) -> bool {
        let first = block * self.in_block;
        self.out_range(out).any(|channel| {
            let seen = self.view.seen_by(channel);
            seen.start < first + self.in_block && first < seen.end
        })
    }

    /// The weight polynomial between input block `block` and output block `out`.
    pub(super) fn weights(&self, weights: &[i32], block: usize, out: usize) -> Vec<i64> {
        let ([height, width], mut poly) = (self.halo(), vec![0; self.degree]);
        let first = block * self.in_block;
        for (slot, channel) in self.out_range(out).enumerate() {
            let seen = self.view.seen_by(channel);
            for source in seen.start.max(first)..seen.end.min(first + self.in_block) {
                for ([row, column], weight) in self.view.taps(channel, source) {
                    let back = (source - first) * height * width + row * width + column;
                    poly[self.base(slot) - back] = i64::from(weights[weight]);
                }
            }
        }
        poly
    }

    fn tile_grid(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.view.out[axis].div_ceil(self.tile[axis]))
    }

    /// First output row and column of a tile.
    fn tile_corner(&self, tile: usize) -> [usize; 2] {
        let across = self.tile_grid()[1];
        [tile / across * self.tile[0], tile % across * self.tile[1]]
    }

    /// Output rows and columns of a tile; the last ones may be smaller.
    fn tile_size(&self, tile: usize) -> [usize; 2] {
        let corner = self.tile_corner(tile);
        [0, 1].map(|axis| self.tile[axis].min(self.view.out[axis] - corner[axis]))
    }

    fn cells(&self, tile: usize) -> impl Iterator<Item = [usize; 2]> {
        let [rows, columns] = self.tile_size(tile);
        (0..rows).flat_map(move |row| (0..columns).map(move |column| [row, column]))
    }

    fn out_range(&self, block: usize) -> std::ops::Range<usize> {
        let first = block * self.out_block;
        first..self.shape().out_channels.min(first + self.out_block)
    }

    /// Input rows and columns of a tile.
    fn halo(&self) -> [usize; 2] {
        [0, 1].map(|axis| self.tile[axis] + self.view.kernel[axis] - 1)
    }

    /// Coefficient of output (0, 0) of `slot`.
    fn base(&self, slot: usize) -> usize {
        let [height, width] = self.halo();
        let [rows, columns] = self.view.kernel;
        let last_channel = ((slot + 1) * self.in_block - 1) * height * width;
        last_channel + (rows - 1) * width + columns - 1
    }
}

fn candidates(view: &View, degree: usize) -> impl Iterator<Item = Packing> {
    let [rows, columns] = view.out.map(parts);
    let tiles =
        rows.into_iter().flat_map(move |r| columns.clone().into_iter().map(move |c| [r, c]));
    let channels = parts(view.channels());
    tiles.flat_map(move |tile| {
        let area: usize = [0, 1].iter().map(|a| tile[*a] + view.kernel[*a] - 1).product();
        let room = degree / area;
        let blocks = channels.clone().into_iter().filter(move |block| *block <= room);
        blocks.map(move |in_block| {
            let most = view.shape().out_channels.min(room / in_block);
            let count = view.shape().out_channels.div_ceil(most);
            let out_block = view.shape().out_channels.div_ceil(count);
            Packing { view: view.clone(), degree, tile, in_block, out_block }
        })
    })
}

/// The sizes ceil(total / n), descending, each once.
fn parts(total: usize) -> Vec<usize> {
    let mut sizes = vec![total];
    let mut size = total;
    while size > 1 {
        // The fewest parts that are smaller than `size`.
        let count = total.div_ceil(size - 1);
        size = total.div_ceil(count);
        sizes.push(size);
    }
    sizes
}
