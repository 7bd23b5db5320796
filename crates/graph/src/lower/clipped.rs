//! Integers that are bounded by clips, wherever these are in the integer graph.

use super::build::Builder;
use crate::ir::{Node, Op};
use crate::ops::{self, Offset, Pad, Relu, Reshape, View};
use crate::source::scaling::TOLERANCE;

/// A range of integers with zero in it, and whether a state was among what has them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounded {
    pub(super) range: [i64; 2],
    pub(super) found: bool,
}

impl Bounded {
    fn with(&mut self, low: i64, high: i64) {
        self.range = [self.range[0].min(low), self.range[1].max(high)];
    }
}

impl Builder<'_> {
    /// The integers that `tensor` may have, where all of it are results of clips, states and constants, all in one
    /// scale; `None` where it has others. Of the state `own` nothing is assumed but that its integers are
    /// the others'.
    pub(super) fn bounded(&self, tensor: usize, own: Option<usize>) -> Option<Bounded> {
        let scale = self.format_of(tensor).scale;
        let mut tensors = vec![tensor];
        let mut all = Bounded { range: [0, 0], found: false };
        while let Some(tensor) = tensors.pop() {
            if (self.format_of(tensor).scale / scale - 1.0).abs() > TOLERANCE {
                return None;
            }
            if own == Some(tensor) {
                all.found = true;
                continue;
            }
            if let Some(state) = self.graph.states.iter().find(|state| state.before == tensor) {
                // What another state becomes is not known yet.
                if own.is_some() {
                    return None;
                }
                all.with(state.range[0], state.range[1]);
                all.found = true;
                continue;
            }
            let (index, node) = self.written_by(tensor)?;
            if let Some(Relu { saturate, low }) = node.op.get() {
                all.with(*low, low + (1 << saturate) - 1);
            } else if node.op.is::<Offset>() && node.inputs.iter().all(|zeros| self.is_zero(*zeros))
            {
                let constants = self.weights.get(&index)?.bias.iter();
                constants.for_each(|constant| all.with(*constant, *constant));
            } else if node.op.is::<View>() || node.op.is::<Reshape>() || node.op.is::<ops::Concat>()
            {
                tensors.extend(&node.inputs);
            } else {
                return None;
            }
        }
        Some(all)
    }

    /// Whether a tensor only shows zeros that were put around another.
    fn is_zero(&self, tensor: usize) -> bool {
        let views = |op: &Op| op.is::<View>() || op.is::<Reshape>();
        let Some((_, view)) = self.written_by(tensor).filter(|(_, node)| views(&node.op)) else {
            return false;
        };
        let Some((_, pad)) = view.inputs.first().and_then(|input| self.written_by(*input)) else {
            return false;
        };
        let padded = self.graph.arrangement(pad);
        let shown = self.graph.arrangement(view);
        let zero = |place: &Option<usize>| {
            place.is_none_or(|place| matches!(padded.get(place), Some(None)))
        };
        pad.op.is::<Pad>() && !shown.is_empty() && shown.iter().all(zero)
    }

    fn written_by(&self, tensor: usize) -> Option<(usize, &Node)> {
        self.graph.nodes.iter().enumerate().find(|(_, node)| node.output == tensor)
    }
}
