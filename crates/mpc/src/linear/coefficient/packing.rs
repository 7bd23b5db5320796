//! Where inputs, weights and outputs sit in polynomials.
//!
//! A *tile* is a window of the padded input, `T = tile_height * tile_width`
//! positions. A polynomial holds `C_w` channels of a tile; a weight polynomial
//! yields `M_w` output channels (Huang et al., Cheetah, section 3.1 and 4.2):
//!
//! ```text
//! input   x[c*T + i*tile_width + j]
//! weight  w[O + m*C_w*T - c*T - k*tile_width - l],  O = (C_w-1)*T + (kh-1)*tile_width + kw-1
//! output  y[O + m*C_w*T + i*stride*tile_width + j*stride]
//! ```
//!
//! Products that wrap around X^N + 1 land below O as long as `C_w*M_w*T <= N`.

use graph::Conv;

/// The tile and channel packing of one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packing {
    conv: Conv,
    /// Rows and columns of the output that one tile yields.
    out_tile: [usize; 2],
    /// Rows and columns of a tile.
    tile: [usize; 2],
    /// Distance of neighbouring outputs inside a tile.
    step: [usize; 2],
    /// Input channels per polynomial, C_w.
    in_channels: usize,
    /// Output channels per polynomial, M_w.
    out_channels: usize,
}

/// A response: which group, tile and block of output channels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) group: usize,
    row: usize,
    column: usize,
    pub(super) block: usize,
}

impl Packing {
    /// All packings worth pricing at ring degree `degree`.
    pub(super) fn candidates(conv: &Conv, degree: usize) -> Vec<Self> {
        let mut found = Vec::new();
        for out_tile in tilings(conv, degree) {
            let channels = cuts(conv.group_channels());
            found.extend(channels.filter_map(|c| Self::new(conv, degree, out_tile, c)));
        }
        found
    }

    fn new(conv: &Conv, degree: usize, out_tile: [usize; 2], in_channels: usize) -> Option<Self> {
        let (step, tile) = (step(conv), tile(conv, out_tile));
        let used = tile.iter().try_fold(in_channels, |used, side| used.checked_mul(*side))?;
        let most = degree.checked_div(used).filter(|most| *most > 0)?;
        let outputs = conv.out_channels / conv.groups;
        let out_channels = outputs.div_ceil(outputs.div_ceil(most));
        Some(Self { conv: conv.clone(), out_tile, tile, step, in_channels, out_channels })
    }

    /// Weights that meet in one output coefficient.
    pub(super) fn weights_per_response(&self) -> usize {
        self.conv.group_channels() * self.conv.kernel[0] * self.conv.kernel[1] * self.out_channels
    }

    pub(super) fn groups(&self) -> usize {
        self.conv.groups
    }

    /// Polynomials per tile and group.
    pub(super) fn input_blocks(&self) -> usize {
        self.conv.group_channels().div_ceil(self.in_channels)
    }

    /// Responses per tile and group.
    pub(super) fn output_blocks(&self) -> usize {
        (self.conv.out_channels / self.conv.groups).div_ceil(self.out_channels)
    }

    fn tile_grid(&self) -> [usize; 2] {
        let [rows, columns] = self.out_tile;
        [self.conv.out_height().div_ceil(rows), self.conv.out_width().div_ceil(columns)]
    }

    pub(super) fn tiles(&self) -> usize {
        self.tile_grid().iter().product()
    }

    /// Input polynomials in all.
    pub(super) fn inputs(&self) -> usize {
        self.groups() * self.tiles() * self.input_blocks()
    }

    /// Responses in all.
    pub(super) fn responses(&self) -> usize {
        self.groups() * self.tiles() * self.output_blocks()
    }

    /// Ciphertext products in all.
    pub(super) fn products(&self) -> usize {
        self.responses() * self.input_blocks()
    }

    /// The responses in the order in which they are sent.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let blocks = self.output_blocks();
        self.tiles_of_groups()
            .flat_map(move |place| (0..blocks).map(move |block| Place { block, ..place }))
    }

    /// Groups and tiles in order, with block 0.
    fn tiles_of_groups(&self) -> impl Iterator<Item = Place> + '_ {
        let [rows, columns] = self.tile_grid();
        (0..self.groups()).flat_map(move |group| {
            (0..rows * columns).map(move |tile| Place {
                group,
                row: tile / columns,
                column: tile % columns,
                block: 0,
            })
        })
    }

    /// Index of the tile of `place` among all tiles of all groups.
    #[expect(dead_code)]
    pub(super) fn tile_index(&self, place: Place) -> usize {
        let [rows, columns] = self.tile_grid();
        (place.group * rows + place.row) * columns + place.column
    }

    /// The input polynomials of a share in channel-major order: by group, tile and
    /// block of channels. Padding is zero.
    pub(super) fn encode_inputs(&self, share: &[u64], degree: usize) -> Vec<Vec<u64>> {
        let blocks = self.input_blocks();
        let polynomials = self.tiles_of_groups().flat_map(|place| {
            (0..blocks).map(move |block| self.encode_input(share, degree, place, block))
        });
        polynomials.collect()
    }

    fn encode_input(&self, share: &[u64], degree: usize, place: Place, block: usize) -> Vec<u64> {
        let conv = &self.conv;
        let [height, width] = self.tile;
        let mut polynomial = vec![0; degree];
        for c in 0..self.in_channels {
            let channel = block * self.in_channels + c;
            if channel >= conv.group_channels() {
                break;
            }
            let plane = (place.group * conv.group_channels() + channel) * conv.in_height;
            for i in 0..height {
                let Some(row) = self.source(place, 0, i) else { continue };
                for j in 0..width {
                    let Some(column) = self.source(place, 1, j) else { continue };
                    let from = (plane + row) * conv.in_width + column;
                    let to = (c * height + i) * width + j;
                    if let (Some(to), Some(from)) = (polynomial.get_mut(to), share.get(from)) {
                        *to = *from;
                    }
                }
            }
        }
        polynomial
    }

    /// The row (axis 0) or column (axis 1) of the unpadded input that position `at`
    /// of the tile shows.
    fn source(&self, place: Place, axis: usize, at: usize) -> Option<usize> {
        let (index, pad, side) = match axis {
            0 => (place.row, self.conv.padding[0], self.conv.in_height),
            _ => (place.column, self.conv.padding[1], self.conv.in_width),
        };
        // With a kernel of one, only every stride-th position is packed.
        let spread = self.conv.stride[axis] / self.step[axis];
        let padded = (index * self.out_tile[axis] * self.step[axis] + at) * spread;
        padded.checked_sub(pad).filter(|source| *source < side)
    }

    /// The weight polynomials: group, output block, input block.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (usize, usize, usize)> + '_ {
        let (outputs, inputs) = (self.output_blocks(), self.input_blocks());
        let groups = (0..self.groups()).flat_map(move |g| (0..outputs).map(move |o| (g, o)));
        groups.flat_map(move |(g, o)| (0..inputs).map(move |i| (g, o, i)))
    }

    /// Powers of X at which a weight polynomial has coefficients, the same for all of
    /// them. The order is that of [`Self::weights`].
    pub(super) fn powers(&self) -> Vec<usize> {
        let [_, width] = self.tile;
        let area = self.tile[0] * width;
        let [down, right] = self.conv.dilation;
        let mut powers = Vec::new();
        for (m, c, k, l) in self.terms() {
            let channel = self.origin() + m * self.in_channels * area - c * area;
            powers.push(channel - k * down * width - l * right);
        }
        powers
    }

    /// Where the coefficients of one polynomial are in weights `[O, I/g, kh, kw]`;
    /// `None` for channels that the last blocks do not have.
    pub(super) fn weights(&self, group: usize, output: usize, input: usize) -> Vec<Option<usize>> {
        let conv = &self.conv;
        let (inputs, outputs) = (conv.group_channels(), conv.out_channels / conv.groups);
        let places = self.terms().map(|(m, c, k, l)| {
            let (out, channel) = (output * self.out_channels + m, input * self.in_channels + c);
            let from = ((group * outputs + out) * inputs + channel) * conv.kernel[0] + k;
            (out < outputs && channel < inputs).then_some(from * conv.kernel[1] + l)
        });
        places.collect()
    }

    /// Output channel, input channel, row and column of the kernel.
    fn terms(&self) -> impl Iterator<Item = (usize, usize, usize, usize)> + '_ {
        let [height, width] = self.conv.kernel;
        let each = self.in_channels * height * width;
        (0..self.out_channels * each).map(move |i| {
            let (m, rest) = (i / each, i % each);
            (m, rest / (height * width), rest / width % height, rest % width)
        })
    }

    /// O: the coefficient of the first output.
    fn origin(&self) -> usize {
        let [height, width] = self.tile;
        let [reach_height, reach_width] = reach(&self.conv);
        (self.in_channels - 1) * height * width + (reach_height - 1) * width + reach_width - 1
    }

    /// The useful coefficients of a response, ascending, each with the index of its
    /// value in the channel-major output.
    pub(super) fn outputs(&self, place: Place) -> Vec<(usize, usize)> {
        let conv = &self.conv;
        let [rows, columns] = self.out_tile;
        let outputs = conv.out_channels / conv.groups;
        let (out_height, out_width) = (conv.out_height(), conv.out_width());
        let mut useful = Vec::new();
        for m in 0..self.out_channels {
            let channel = place.block * self.out_channels + m;
            if channel >= outputs {
                break;
            }
            let channel = place.group * outputs + channel;
            let start = self.origin() + m * self.in_channels * self.tile[0] * self.tile[1];
            for i in 0..rows.min(out_height - place.row * rows) {
                for j in 0..columns.min(out_width - place.column * columns) {
                    let inside = i * self.step[0] * self.tile[1] + j * self.step[1];
                    let row = place.row * rows + i;
                    let column = place.column * columns + j;
                    useful
                        .push((start + inside, (channel * out_height + row) * out_width + column));
                }
            }
        }
        useful
    }
}

/// Height and width that the dilated kernel covers.
fn reach(conv: &Conv) -> [usize; 2] {
    [0, 1].map(|axis| (conv.kernel[axis] - 1) * conv.dilation[axis] + 1)
}

/// A kernel of one position lets both parties drop what the stride skips.
fn step(conv: &Conv) -> [usize; 2] {
    if conv.kernel == [1, 1] { [1, 1] } else { conv.stride }
}

fn tile(conv: &Conv, out_tile: [usize; 2]) -> [usize; 2] {
    let (reach, step) = (reach(conv), step(conv));
    [0, 1].map(|axis| (out_tile[axis] - 1) * step[axis] + reach[axis])
}

/// Output tiles that fit: the whole output, or cut into equal rows and columns.
fn tilings(conv: &Conv, degree: usize) -> Vec<[usize; 2]> {
    /// Cuts tried beyond the coarsest that fit.
    const FINER: usize = 3;
    let (height, width) = (conv.out_height(), conv.out_width());
    let mut found: Vec<[usize; 2]> = Vec::new();
    let fits = |out: [usize; 2]| {
        let [rows, columns] = tile(conv, out);
        rows.checked_mul(columns).is_some_and(|area| area <= degree)
    };
    if !fits([1, 1]) {
        return found;
    }
    for (columns, out_width) in (1..).zip(cuts(width)) {
        let fitting = cuts(height).map(|out_height| [out_height, out_width]);
        found.extend(fitting.filter(|out| fits(*out)).take(FINER));
        if columns > 2 && found.len() > 4 * FINER {
            break;
        }
    }
    found
}

/// The sizes of the largest part when `whole` is cut into 1, 2, ... `whole` even
/// parts, each once: about `2 * sqrt(whole)` values, descending.
fn cuts(whole: usize) -> impl Iterator<Item = usize> {
    let first = (whole > 0).then_some(whole);
    std::iter::successors(first, move |part| {
        let smaller = part.checked_sub(1).filter(|smaller| *smaller > 0)?;
        Some(whole.div_ceil(whole.div_ceil(smaller)))
    })
}

#[cfg(test)]
mod tests {
    use super::cuts;

    #[test]
    fn cuts_are_the_distinct_quotients() {
        for whole in 0..300usize {
            let mut all: Vec<_> = (1..=whole).map(|parts| whole.div_ceil(parts)).collect();
            all.dedup();
            assert_eq!(cuts(whole).collect::<Vec<_>>(), all);
        }
    }
}
