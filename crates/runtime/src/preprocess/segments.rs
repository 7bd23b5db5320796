//! Segments of a plan: runs of steps whose correlations are held together.

use std::ops::Range;
use std::sync::Arc;

use crate::step::Step;
use crate::step::correlations::{MOST_BYTES, pad_bytes};

/// The steps of a segment, with their indices.
pub(crate) fn steps_of<'a>(
    steps: &'a [Arc<Step>],
    segment: &Range<usize>,
) -> impl Iterator<Item = (usize, &'a Step)> + Clone + use<'a> {
    let all = steps.iter().map(Arc::as_ref).enumerate();
    all.skip(segment.start).take(segment.len())
}

/// Cuts steps into segments whose correlations fit into memory together. While a step makes its own
/// correlations, those of no other step are held.
pub(crate) fn segments(steps: &[Arc<Step>]) -> Vec<Range<usize>> {
    let mut segments = Vec::new();
    let (mut start, mut held) = (0, 0usize);
    for (index, step) in steps.iter().map(Arc::as_ref).enumerate() {
        let bytes = if step.feeds_itself() { MOST_BYTES } else { pad_bytes(&step.demand()) };
        let bytes = bytes.saturating_add(pad_bytes(&step.mask_demand()));
        if held.saturating_add(bytes) > MOST_BYTES && index > start && held > 0 {
            segments.push(start..index);
            (start, held) = (index, 0);
        }
        held = held.saturating_add(bytes);
    }
    segments.push(start..steps.len());
    segments
}
