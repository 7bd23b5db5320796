//! Which coefficients of a response are values of the output.

use super::{Packing, Place};

impl Packing {
    /// The number of useful coefficients of a response.
    pub(super) fn useful(&self, place: Place) -> usize {
        let outputs = self.conv.out_channels / self.conv.groups;
        let (set, block) =
            (place.block / self.channel_blocks(), place.block % self.channel_blocks());
        let groups = self.groups_of(place.group).skip(set * self.bundle.outputs());
        let channels = outputs.saturating_sub(block * self.out_channels).min(self.out_channels);
        let [rows, columns] = self.window.outputs;
        let [first_row, first_column] = self.first_output(place);
        let rows = self.conv.out_height().saturating_sub(first_row).min(rows);
        let columns = self.conv.out_width().saturating_sub(first_column).min(columns);
        let images = self.images_of(place.images).count();
        groups.take(self.bundle.outputs()).count() * channels * images * rows * columns
    }

    /// The useful coefficients of a response, ascending, each with the index of its
    /// value in the output: image after image in channel-major order.
    pub(super) fn outputs(&self, place: Place) -> Vec<(usize, usize)> {
        let outputs = self.conv.out_channels / self.conv.groups;
        let (set, block) =
            (place.block / self.channel_blocks(), place.block % self.channel_blocks());
        let of_set = self.groups_of(place.group).skip(set * self.bundle.outputs());
        let mut useful = Vec::with_capacity(self.useful(place));
        for (i, group) in of_set.take(self.bundle.outputs()) {
            let first = self.bundle.output_slot(i) * self.slot() + self.origin();
            let channels = block * self.out_channels..outputs;
            for (m, channel) in channels.take(self.out_channels).enumerate() {
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
