//! Which packings are worth pricing.

use graph::Conv;

use super::Packing;
use super::bundle::Bundle;
use super::view::{Axis, Window, planes};

impl Packing {
    /// All packings of `batch` images worth pricing at ring degree `degree`.
    pub(in super::super) fn candidates(
        conv: &Conv,
        batch: usize,
        degree: usize,
    ) -> impl Iterator<Item = Self> + '_ {
        let views = [false, true].map(|polyphase| Axis::both(conv, polyphase));
        let views = views.into_iter().take(if views[0] == views[1] { 1 } else { 2 });
        views.flat_map(move |axes| {
            let windows = windows(conv, &axes, degree).into_iter();
            let beside = move |window| beside(conv, batch, window, degree);
            windows.flat_map(beside).flat_map(move |window| {
                let shape = Shape { conv, batch, axes, window, degree };
                apart(shape).chain(bundled(shape))
            })
        })
    }
}

/// A window for one image and for several next to each other.
fn beside(
    conv: &Conv,
    batch: usize,
    window: Window,
    degree: usize,
) -> impl Iterator<Item = Window> {
    /// Numbers of images tried with a tile: planes that are cut are large.
    const FEW: usize = 2;
    let whole = window.outputs == [conv.out_height(), conv.out_width()];
    let several = coarse(batch).filter(|images| *images > 1);
    let fitting = several.filter_map(move |images| window.beside(images, degree));
    fitting.take(if whole { batch } else { FEW }).chain([window])
}

/// A layer seen through one window.
#[derive(Clone, Copy)]
struct Shape<'a> {
    conv: &'a Conv,
    batch: usize,
    axes: [Axis; 2],
    window: Window,
    degree: usize,
}

impl Shape<'_> {
    fn packing(self, in_channels: usize, out_channels: usize, bundle: Bundle) -> Packing {
        let Self { conv, batch, axes, window, .. } = self;
        Packing { conv: conv.clone(), batch, axes, window, in_channels, out_channels, bundle }
    }
}

/// Each group on its own: C_w by cuts, and the largest M_w that it leaves.
fn apart(shape: Shape<'_>) -> impl Iterator<Item = Packing> + '_ {
    let Shape { conv, axes, window, degree, .. } = shape;
    let outputs = conv.out_channels / conv.groups;
    cuts(planes(conv, &axes)).filter_map(move |in_channels| {
        let most = window.slots(degree) / in_channels;
        let out_channels = outputs.div_ceil(outputs.div_ceil(Some(most).filter(|m| *m > 0)?));
        Some(shape.packing(in_channels, out_channels, Bundle::APART))
    })
}

/// Several groups together.
fn bundled(shape: Shape<'_>) -> impl Iterator<Item = Packing> + '_ {
    let Shape { conv, axes, window, degree, .. } = shape;
    let outputs = if conv.groups > 1 { conv.out_channels / conv.groups } else { 0 };
    let slots = window.slots(degree);
    let pairs = coarse(planes(conv, &axes))
        .flat_map(move |inputs| coarse(outputs).map(move |outputs| (inputs, outputs)));
    pairs.flat_map(move |(in_channels, out_channels)| {
        let units = slots.checked_div(in_channels * out_channels).unwrap_or(0);
        let bundles = (units > 1).then(|| Bundle::candidates(conv.groups, units));
        let bundles = bundles.into_iter().flatten();
        bundles.map(move |bundle| shape.packing(in_channels, out_channels, bundle))
    })
}

/// Tiles that fit: the whole output, or cut into equal rows and columns.
fn windows(conv: &Conv, axes: &[Axis; 2], degree: usize) -> Vec<Window> {
    /// Cuts tried beyond the coarsest that fit.
    const FINER: usize = 3;
    let (height, width) = (conv.out_height(), conv.out_width());
    let mut found: Vec<Window> = Vec::new();
    let window = |outputs| Window::new(axes, outputs, degree);
    if window([1, 1]).is_none() {
        return found;
    }
    for (columns, out_width) in (1..).zip(cuts(width)) {
        let fitting = cuts(height).filter_map(|out_height| window([out_height, out_width]));
        found.extend(fitting.take(FINER));
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

/// The parts of [`cuts`] that are a quarter smaller than the one before.
fn coarse(whole: usize) -> impl Iterator<Item = usize> {
    let mut least = usize::MAX;
    cuts(whole).filter(move |part| {
        let kept = *part <= least;
        least = if kept { part * 3 / 4 } else { least };
        kept
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_the_distinct_quotients() {
        for whole in 0..300usize {
            let mut all: Vec<_> = (1..=whole).map(|parts| whole.div_ceil(parts)).collect();
            all.dedup();
            assert_eq!(cuts(whole).collect::<Vec<_>>(), all);
        }
    }

    #[test]
    fn coarse_cuts_reach_one() {
        for whole in 1..300usize {
            assert_eq!(coarse(whole).last(), Some(1));
            assert!(coarse(whole).all(|part| cuts(whole).any(|cut| cut == part)));
        }
    }
}
