//! Windows that slide over an image: what the largest value and the sum have in common.

use super::checks::{ensure, same_width};
use super::geometry::{Window, check_window};
use super::operator::Site;
use crate::error::Check;

/// Checks shapes and widths; tells whether results may be negative.
pub(super) fn verify(window: &Window, site: &Site<'_>) -> Check<bool> {
    let (input, output) = (site.input(), site.output);
    check_window(window)?;
    ensure(input.shape == [window.channels, window.height, window.width], || {
        format!("window on {:?}", input.shape)
    })?;
    let side = [window.channels, window.out_height(), window.out_width()];
    ensure(output.shape == side, || format!("output is {side:?}, not {:?}", output.shape))?;
    same_width(input, output)?;
    Ok(input.format.signed)
}

/// Positions that all windows read.
pub(super) fn listed(window: &Window) -> usize {
    let outputs = window.channels * window.out_height() * window.out_width();
    outputs.saturating_mul(window.size())
}

/// Folds the real elements of every window.
pub(super) fn pool<T: Copy>(window: &Window, x: &[T], start: T, fold: fn(T, T) -> T) -> Vec<T> {
    let (height, width) = (window.out_height(), window.out_width());
    let [top, left, ..] = window.padding;
    let reach = |o: usize, axis: usize, pad: usize, side: usize| {
        let first = o * window.stride[axis];
        let end = (first + window.kernel[axis]).saturating_sub(pad).min(side);
        first.saturating_sub(pad)..end
    };
    let mut out = Vec::with_capacity(window.channels * height * width);
    for image in x.chunks_exact(window.height * window.width) {
        for (oy, ox) in (0..height).flat_map(|oy| (0..width).map(move |ox| (oy, ox))) {
            let rows = reach(oy, 0, top, window.height);
            let columns = reach(ox, 1, left, window.width);
            let taps = rows.flat_map(|y| &image[y * window.width..][columns.clone()]);
            out.push(taps.fold(start, |a, b| fold(a, *b)));
        }
    }
    out
}
