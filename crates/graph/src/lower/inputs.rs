//! What the graph's input holds: numbers, positions in tables, masks.

use super::scale::Scales;
use crate::error::{Error, Result};
use crate::source::scaling::{HIDDEN_BITS, levels};
use std::collections::BTreeSet;
use std::ops::Range;

impl Scales<'_> {
    /// Rows of the largest table that is looked into: then the input is positions.
    pub(super) fn vocabulary(&self) -> Option<usize> {
        let tables = self.program.source.nodes.iter().filter_map(|node| node.op.table());
        tables.filter_map(|table| self.program.floats[table].shape.first().copied()).max()
    }

    /// Ranges of what the input has at each place on its first axis, where some are masks;
    /// the others are positions in tables, or numbers.
    pub(super) fn input_rows(&self) -> Result<Vec<[i64; 2]>> {
        let places = self.program.source.input.shape[0];
        let masks = self.mask_rows();
        if self.vocabulary().is_none() {
            let (_, all) = self.input()?;
            let row = |place| if masks.contains(&place) { [0, 1] } else { all };
            return Ok(if masks.is_empty() { vec![] } else { (0..places).map(row).collect() });
        }
        let mut ranges = vec![[0, 1]; places];
        for node in &self.program.source.nodes {
            let Some(table) = node.op.table() else { continue };
            let rows = self.program.floats[table].shape[0] as i64;
            let Some(shown) = self.rows_of_input(&node.inputs[0]) else {
                let why = "looks up at what is not a slice of the input";
                return Err(Error::unsupported(&node.name, why, "give it token ids"));
            };
            let of = |range: &mut [i64; 2]| *range = [0, range[1].max(rows - 1)];
            ranges[shown].iter_mut().for_each(of);
        }
        Ok(ranges)
    }

    /// Scale and clip bounds of an input of hidden states no further than `side` from 0, above
    /// a mask: its 1 is clipped to the integer 1, which no scale above 1 would show.
    pub(super) fn masked_input(&self, side: f64) -> (f64, [i64; 2]) {
        let largest = levels(self.activation_bits + HIDDEN_BITS);
        ((side / largest).min(1.0), [-(largest as i64), largest as i64])
    }

    /// The places on the input's first axis that are read as masks.
    pub(super) fn mask_rows(&self) -> BTreeSet<usize> {
        let read = self.program.source.nodes.iter().filter_map(|node| {
            let place = node.op.mask_place(&self.around(node))?;
            node.inputs.get(place)
        });
        read.filter_map(|tensor| self.rows_of_input(tensor)).flatten().collect()
    }

    /// The places on the input's first axis that `tensor` shows, if it shows no more than that.
    fn rows_of_input(&self, tensor: &str) -> Option<Range<usize>> {
        let input = &self.program.source.input;
        let Some(node) = self.writer(tensor) else {
            return (tensor == input.name).then_some(0..input.shape[0]);
        };
        let shown = node.op.shown()?;
        if node.inputs.first() != Some(&input.name) {
            return None;
        }
        let each = input.shape.iter().skip(1).product::<usize>().max(1);
        Some(shown.start / each..(shown.end - 1) / each + 1)
    }
}
