//! Where inputs, weights and outputs sit in polynomials.
//!
//! A *plane* is an input channel or, in the polyphase form of a convolution with
//! stride, one of its phases ([`view`]). A *tile* is a window of the padded plane,
//! T' positions long, and the same window of b images of a batch, n = 0 to b-1, takes
//! `T = b*T'`. A polynomial holds `C_w` planes of a tile; a weight polynomial yields
//! `M_w` output channels (Huang et al., Cheetah, section 3.1 and 4.2):
//!
//! ```text
//! input   x[s*U + c*T + n*T' + i*row + j]
//! weight  w[t*U + O + m*C_w*T - c*T - k*row - l],  O = (C_w-1)*T + (kh-1)*row + kw-1
//! output  y[(s+t)*U + O + m*C_w*T + n*T' + i*step*row + j*step]
//! ```
//!
//! The images share the weights. Taps reach less than T' and weights repeat every
//! `T = b*T'`, so the products of one image land on outputs of no other.
//!
//! Several groups of a grouped convolution share a polynomial ([`bundle`]): s and t
//! are the slots of a group's input and weights, `U = C_w*M_w*T` the size of a slot;
//! s = t = 0 with one group. Products that wrap around X^N + 1 land below the first
//! output as long as the slots, the last without what no window of it spans, fit in N.

mod bundle;
mod candidates;
mod folding;
mod outputs;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
mod view;

use std::fmt;

use graph::Conv;

use bundle::Bundle;
pub(super) use folding::Folding;
use view::{Axis, Window, planes};

/// The tile and channel packing of one layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packing {
    conv: Conv,
    /// Images in all.
    batch: usize,
    axes: [Axis; 2],
    window: Window,
    /// Planes of a group per polynomial, C_w.
    in_channels: usize,
    /// Output channels of a group per polynomial, M_w.
    out_channels: usize,
    bundle: Bundle,
}

/// A response: which bundle of groups, images, tile and block of output channels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) group: usize,
    images: usize,
    row: usize,
    column: usize,
    pub(super) block: usize,
}

/// A coefficient of a weight polynomial: slot, output, plane, row and column of taps.
type Term = (usize, usize, usize, [usize; 2]);

impl Packing {
    /// Most weights of one response that may differ from zero.
    fn weights_per_response(&self) -> usize {
        let taps = self.conv.group_channels() * self.conv.kernel[0] * self.conv.kernel[1];
        taps * self.out_channels * self.bundle.outputs()
    }

    /// Bundles of groups.
    fn groups(&self) -> usize {
        self.conv.groups.div_ceil(self.bundle.inputs())
    }

    /// Polynomials per tile and bundle.
    fn input_blocks(&self) -> usize {
        planes(&self.conv, &self.axes).div_ceil(self.in_channels)
    }

    /// Responses per tile and bundle; the last bundle may lack some.
    fn output_blocks(&self) -> usize {
        self.channel_blocks() * self.bundle.inputs().div_ceil(self.bundle.outputs())
    }

    /// Blocks of a group's output channels.
    fn channel_blocks(&self) -> usize {
        (self.conv.out_channels / self.conv.groups).div_ceil(self.out_channels)
    }

    fn tile_grid(&self) -> [usize; 2] {
        let [rows, columns] = self.window.outputs;
        [self.conv.out_height().div_ceil(rows), self.conv.out_width().div_ceil(columns)]
    }

    /// Tiles of an image.
    fn tiles(&self) -> usize {
        self.tile_grid().iter().product()
    }

    /// Sets of images that lie next to each other.
    fn sets(&self) -> usize {
        self.batch.div_ceil(self.window.images)
    }

    /// Images in all.
    fn batch(&self) -> usize {
        self.batch
    }

    /// Values of one image.
    fn image_inputs(&self) -> usize {
        self.conv.in_channels * self.conv.in_height * self.conv.in_width
    }

    /// Results of one image.
    fn image_outputs(&self) -> usize {
        self.conv.out_channels * self.conv.out_height() * self.conv.out_width()
    }

    /// The images of a set: place in the set, index.
    fn images_of(&self, set: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let first = set * self.window.images;
        (first..self.batch).take(self.window.images).enumerate()
    }

    /// Input polynomials in all.
    fn inputs(&self) -> usize {
        self.groups() * self.sets() * self.tiles() * self.input_blocks()
    }

    /// Responses in all where each takes `together` blocks of a tile.
    fn responses_of(&self, together: usize) -> usize {
        let (inputs, outputs) = (self.bundle.inputs(), self.bundle.outputs());
        let of =
            |groups: usize| (groups.div_ceil(outputs) * self.channel_blocks()).div_ceil(together);
        let bundles = self.conv.groups / inputs * of(inputs) + of(self.conv.groups % inputs);
        bundles * self.sets() * self.tiles()
    }

    /// Terms of a weight polynomial.
    fn terms_each(&self) -> usize {
        let [down, right] = self.axes;
        let each = self.in_channels * self.out_channels * down.taps * right.taps;
        self.bundle.weights() * each
    }

    /// Whether the bundle of `place` has its block.
    fn holds(&self, place: Place) -> bool {
        let first = place.block / self.channel_blocks() * self.bundle.outputs();
        place.block < self.output_blocks()
            && place.group * self.bundle.inputs() + first < self.conv.groups
    }

    /// Bundles, sets of images and tiles in order, with block 0.
    fn tiles_of_groups(&self) -> impl Iterator<Item = Place> + '_ {
        let ([_, columns], tiles, sets) = (self.tile_grid(), self.tiles(), self.sets());
        (0..self.groups()).flat_map(move |group| {
            (0..sets * tiles).map(move |i| Place {
                group,
                images: i / tiles,
                row: i % tiles / columns,
                column: i % columns,
                block: 0,
            })
        })
    }

    /// Index of the tile of `place` among all tiles of all bundles and images.
    fn tile_index(&self, place: Place) -> usize {
        let ([rows, columns], sets) = (self.tile_grid(), self.sets());
        ((place.group * sets + place.images) * rows + place.row) * columns + place.column
    }

    /// The input polynomials of a share, image after image in channel-major order: by
    /// bundle, set of images, tile and block of planes. Padding is zero.
    fn encode_inputs(&self, share: &[u64], degree: usize) -> Vec<Vec<u64>> {
        let blocks = self.input_blocks();
        let polynomials = self.tiles_of_groups().flat_map(|place| {
            (0..blocks).map(move |block| self.encode_input(share, degree, place, block))
        });
        polynomials.collect()
    }

    fn encode_input(&self, share: &[u64], degree: usize, place: Place, block: usize) -> Vec<u64> {
        let mut polynomial = vec![0; degree];
        for (i, group) in self.groups_of(place.group) {
            for c in 0..self.in_channels {
                let Some((channel, phases)) = self.plane(block * self.in_channels + c) else {
                    break;
                };
                let channel = group * self.conv.group_channels() + channel;
                let at = self.bundle.input_slot(i) * self.slot() + c * self.window.area;
                self.encode_plane(share, &mut polynomial, place, (channel, phases), at);
            }
        }
        polynomial
    }

    /// Puts one plane's windows of all images of the set at coefficient `at`.
    fn encode_plane(
        &self,
        share: &[u64],
        polynomial: &mut [u64],
        place: Place,
        plane: (usize, [usize; 2]),
        at: usize,
    ) {
        for (n, image) in self.images_of(place.images) {
            let first = image * self.image_inputs();
            let share = share.get(first..).unwrap_or_default();
            self.encode_window(share, polynomial, place, plane, at + n * self.window.each);
        }
    }

    /// Puts one plane's window of the first image in `share` at coefficient `at`.
    fn encode_window(
        &self,
        share: &[u64],
        polynomial: &mut [u64],
        place: Place,
        (channel, phases): (usize, [usize; 2]),
        at: usize,
    ) {
        let ([height, width], [down, right]) = (self.window.sides, &self.axes);
        let [first_row, first_column] = self.first_output(place);
        for i in 0..height {
            let Some(row) = down.source(first_row, phases[0], i) else { continue };
            let line = (channel * self.conv.in_height + row) * self.conv.in_width;
            for j in 0..width {
                let Some(column) = right.source(first_column, phases[1], j) else { continue };
                let to = polynomial.get_mut(at + i * self.window.row + j);
                if let (Some(to), Some(from)) = (to, share.get(line + column)) {
                    *to = *from;
                }
            }
        }
    }

    /// Row and column of the output at which a tile begins.
    fn first_output(&self, place: Place) -> [usize; 2] {
        let [rows, columns] = self.window.outputs;
        [place.row * rows, place.column * columns]
    }

    /// The groups of a bundle: place in the bundle, index.
    fn groups_of(&self, bundle: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
        let first = bundle * self.bundle.inputs();
        let groups = (first..self.conv.groups).take(self.bundle.inputs());
        groups.enumerate()
    }

    /// Channel and phases of a plane of a group; `None` past the last one.
    fn plane(&self, index: usize) -> Option<(usize, [usize; 2])> {
        let [down, right] = self.axes.map(|axis| axis.phases);
        let channel = index / (down * right);
        let phases = [index / right % down, index % right];
        (channel < self.conv.group_channels()).then_some((channel, phases))
    }

    /// U: coefficients of a slot.
    fn slot(&self) -> usize {
        self.in_channels * self.out_channels * self.window.area
    }

    /// Powers of X at which a weight polynomial has coefficients, the same for all of
    /// them. The order is that of [`Self::weights`].
    fn powers(&self) -> Vec<usize> {
        let slots: Vec<usize> = self.bundle.weight_slots().collect();
        let [down, right] = &self.axes;
        let mut powers = Vec::new();
        for (slot, m, c, [k, l]) in self.terms() {
            let slot = slots.get(slot).map_or(0, |slot| slot * self.slot());
            let channel = slot + self.origin() + (m * self.in_channels) * self.window.area;
            let tap = down.offset(k) * self.window.row + right.offset(l);
            powers.push(channel - c * self.window.area - tap);
        }
        powers
    }

    /// Where the coefficients of one polynomial are in weights `[O, I/g, kh, kw]`;
    /// `None` for channels that the last blocks do not have, taps that a phase does
    /// not have, and between groups.
    fn weights(&self, group: usize, output: usize, input: usize) -> Vec<Option<usize>> {
        if self.conv.is_fully_connected() && self.bundle.weights() == 1 {
            return self.matrix(output, input);
        }
        let place = |term| self.weight(group, output, input, term);
        self.terms().map(place).collect()
    }

    /// The weights of a matrix, of which a block is a part of some rows.
    fn matrix(&self, output: usize, input: usize) -> Vec<Option<usize>> {
        let Conv { out_channels: rows, in_channels: columns, .. } = self.conv;
        let mut places = Vec::with_capacity(self.out_channels * self.in_channels);
        for row in (0..self.out_channels).map(|m| output * self.out_channels + m) {
            let own = (0..self.in_channels).map(|c| input * self.in_channels + c);
            let place = |column| (row < rows && column < columns).then_some(row * columns + column);
            places.extend(own.map(place));
        }
        places
    }

    fn weight(
        &self,
        bundle: usize,
        output: usize,
        input: usize,
        (slot, m, c, taps): Term,
    ) -> Option<usize> {
        let (conv, blocks) = (&self.conv, self.channel_blocks());
        let group = bundle * self.bundle.inputs() + self.bundle.group(output / blocks, slot)?;
        let outputs = conv.out_channels / conv.groups;
        let out = output % blocks * self.out_channels + m;
        let (channel, phases) = self.plane(input * self.in_channels + c)?;
        let k = self.axes[0].tap(phases[0], taps[0])?;
        let l = self.axes[1].tap(phases[1], taps[1])?;
        let from = ((group * outputs + out) * conv.group_channels() + channel) * conv.kernel[0] + k;
        (group < conv.groups && out < outputs).then_some(from * conv.kernel[1] + l)
    }

    fn terms(&self) -> impl Iterator<Item = Term> + '_ {
        let [height, width] = self.axes.map(|axis| axis.taps);
        let each = self.in_channels * height * width;
        let of_slot = self.out_channels * each;
        (0..self.bundle.weights() * of_slot).map(move |i| {
            let (slot, m, rest) = (i / of_slot, i % of_slot / each, i % each);
            (slot, m, rest / (height * width), [rest / width % height, rest % width])
        })
    }

    /// O: the coefficient of the first output of a slot.
    fn origin(&self) -> usize {
        (self.in_channels - 1) * self.window.area + self.window.reach - 1
    }
}

/// Tiles, channels per polynomial, and what is special.
impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [down, right] = self.axes.map(|axis| axis.phases);
        write!(f, "tiles {}, C_w {}, M_w {}", self.tiles(), self.in_channels, self.out_channels)?;
        if down * right > 1 {
            write!(f, ", polyphase {down}x{right}")?;
        }
        if self.window.images > 1 {
            write!(f, ", {} images", self.window.images)?;
        }
        match self.bundle {
            Bundle::APART => Ok(()),
            Bundle::Grid { inputs, outputs } => {
                write!(f, ", block-diagonal, {inputs} groups in, {outputs} out")
            }
            Bundle::Free { count } => write!(f, ", progression-free, {count} groups"),
        }
    }
}
