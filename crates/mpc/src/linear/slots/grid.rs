//! Where the pixels of a channel lie in its slots.
//!
//! Output `(y, x)` lies at slot `(y*stride)*width + x*stride` of a grid that holds the
//! input and those positions, so that tap `(dy, dx)` reads `dy*width + dx` slots further
//! on. What that reads from another row or channel is multiplied by a weight of zero.

use std::collections::BTreeMap;

use graph::Conv;
use wire::{Error, Result};

/// Largest side of a grid: rows and columns of a plane that no ring holds.
const LARGEST_SIDE: usize = 1 << 16;

/// The slots of one channel.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    /// Slots from one row to the next.
    pub(super) width: usize,
    /// Slots of a channel, a power of two.
    pub(super) block: usize,
    /// Distances at which some output reads some input, in ascending order.
    pub(super) shifts: Vec<Shift>,
}

/// Taps that read at the same distance; at any slot at most one of them reads a pixel.
#[derive(Clone, Debug)]
pub(super) struct Shift {
    /// Slots from an output to what it reads.
    pub(super) distance: isize,
    /// Row and column of each tap in the kernel.
    pub(super) taps: Vec<[usize; 2]>,
}

impl Grid {
    /// The grid of `conv`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a convolution without outputs or of absurd size.
    pub(super) fn new(conv: &Conv) -> Result<Self> {
        let side = |axis| side(conv, axis).ok_or_else(|| refusal(conv));
        let (height, width) = (side(0)?, side(1)?);
        let block = (height * width).next_power_of_two();
        let mut shifts: BTreeMap<isize, Vec<[usize; 2]>> = BTreeMap::new();
        let columns = live(conv, 1);
        for row in live(conv, 0) {
            for column in &columns {
                let distance = reach(conv, 0, row) * width as isize + reach(conv, 1, *column);
                shifts.entry(distance).or_default().push([row, *column]);
            }
        }
        let shifts = shifts.into_iter().map(|(distance, taps)| Shift { distance, taps });
        Ok(Self { width, block, shifts: shifts.collect() })
    }

    /// The slot of output `(y, x)` of `conv`.
    pub(super) fn output(&self, conv: &Conv, y: usize, x: usize) -> usize {
        y * conv.stride[0] * self.width + x * conv.stride[1]
    }
}

/// Rows (axis 0) or columns (axis 1) of the grid.
fn side(conv: &Conv, axis: usize) -> Option<usize> {
    let (input, output) = sides(conv, axis);
    let last = output.checked_sub(1)?.checked_mul(conv.stride[axis])?;
    let side = input.max(last + 1);
    (side <= LARGEST_SIDE && input > 0).then_some(side)
}

/// Positions of input and output along an axis.
pub(super) fn sides(conv: &Conv, axis: usize) -> (usize, usize) {
    match axis {
        0 => (conv.in_height, conv.out_height()),
        _ => (conv.in_width, conv.out_width()),
    }
}

/// How far in front of the slot of an output a tap reads.
pub(super) fn reach(conv: &Conv, axis: usize, tap: usize) -> isize {
    (tap * conv.dilation[axis]) as isize - conv.padding[axis] as isize
}

/// The taps that read something for some output.
fn live(conv: &Conv, axis: usize) -> Vec<usize> {
    let (input, outputs) = sides(conv, axis);
    let reads = |tap: &usize| {
        let reach = reach(conv, axis, *tap);
        let mut from = (0..outputs).map(|out| (out * conv.stride[axis]) as isize + reach);
        from.any(|at| (0..input as isize).contains(&at))
    };
    (0..conv.kernel[axis]).filter(reads).collect()
}

fn refusal(conv: &Conv) -> Error {
    Error::misuse(format!(
        "a convolution of {}x{} pixels to {}x{} has no place in slots; \
         its sides must be between 1 and {LARGEST_SIDE}",
        conv.in_height,
        conv.in_width,
        conv.out_height(),
        conv.out_width()
    ))
}
