//! Which coefficients of a response are values of the output.

use std::ops::Range;

use super::{Packing, Place};

impl Packing {
    /// The number of useful coefficients of a response.
    pub(super) fn useful(&self, place: Place) -> usize {
        let channels = self.channels_of(place).len();
        let [rows, columns] = self.window.outputs;
        let [first_row, first_column] = self.first_output(place);
        let rows = self.conv.out_height().saturating_sub(first_row).min(rows);
        let columns = self.conv.out_width().saturating_sub(first_column).min(columns);
        let images = self.images_of(place.images).count();
        self.bundled(place).count() * channels * images * rows * columns
    }

    /// The groups of a response: place in the bundle, index.
    fn bundled(&self, place: Place) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (set, outputs) = (place.block / self.channel_blocks(), self.bundle.outputs());
        self.groups_of(place.group).skip(set * outputs).take(outputs)
    }

    /// The output channels of a response in each of its groups.
    fn channels_of(&self, place: Place) -> Range<usize> {
        let first = place.block % self.channel_blocks() * self.out_channels;
        first..(self.conv.out_channels / self.conv.groups).min(first + self.out_channels)
    }

    /// The useful coefficients of a response, ascending, each with the index of its
    /// value in the output: image after image in channel-major order.
    pub(super) fn outputs(&self, place: Place) -> Vec<(usize, usize)> {
        let outputs = self.conv.out_channels / self.conv.groups;
        let mut useful = Vec::with_capacity(self.useful(place));
        for (i, group) in self.bundled(place) {
            let first = self.bundle.output_slot(i) * self.slot() + self.origin();
            for (m, channel) in self.channels_of(place).enumerate() {
                let at = first + m * self.in_channels * self.window.area;
                for (n, image) in self.images_of(place.images) {
                    let plane = image * self.conv.out_channels + group * outputs + channel;
                    self.outputs_of(place, plane, at + n * self.window.each, &mut useful);
                }
            }
        }
        useful
    }

    /// Adds the outputs of one channel of one image, whose first coefficient is `at`; `plane`
    /// counts the channels of all images.
    fn outputs_of(&self, place: Place, plane: usize, at: usize, useful: &mut Vec<(usize, usize)>) {
        let (height, width) = (self.conv.out_height(), self.conv.out_width());
        let ([rows, columns], [down, right]) = (self.window.outputs, &self.axes);
        let [first_row, first_column] = self.first_output(place);
        for (i, row) in (first_row..height).take(rows).enumerate() {
            let line = at + i * down.step * self.window.row;
            for (j, column) in (first_column..width).take(columns).enumerate() {
                useful.push((line + j * right.step, (plane * height + row) * width + column));
            }
        }
    }
}
