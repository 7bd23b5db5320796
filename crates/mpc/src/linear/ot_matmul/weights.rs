//! The server's weights, ready for OTs.

use std::fmt;
use std::ops::Range;

use ring::Bits;
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::plan::Product;

/// Weights `[places, rows, inner]` and the bits that they are made of.
pub struct Weights {
    pub(super) full: Zeroizing<Vec<i32>>,
    /// The choice of every OT, in order, part by part.
    pub(super) chosen: Vec<Bits>,
}

impl Weights {
    /// Makes weights of the `full` ones and, for each, of the number whose bits choose.
    ///
    /// # Errors
    /// [`Error::Misuse`] for others than the plan's.
    pub fn new(plan: &Product, full: Vec<i32>, chosen: &[u32]) -> Result<Self> {
        let full = Zeroizing::new(full);
        let count = plan.lines() * plan.inner;
        if full.len() != count || chosen.len() != count {
            return Err(Error::misuse("weights that do not fit their product"));
        }
        let part = |lines: Range<usize>| {
            choices(plan, &chosen[lines.start * plan.inner..lines.end * plan.inner])
        };
        let chosen = plan.parts().into_iter().map(part).collect();
        Ok(Self { full, chosen })
    }

    /// Returns the weights, `[places, rows, inner]`.
    pub fn full(&self) -> &[i32] {
        &self.full
    }

    /// Returns the number of bytes that they take.
    pub fn bytes(&self) -> usize {
        4 * self.full.len() + self.chosen.iter().map(Bits::len).sum::<usize>() / 8
    }
}

/// The choices of some rows: of each row, one bit of all its weights after another.
fn choices(plan: &Product, rows: &[u32]) -> Bits {
    let count = rows.len() * plan.choices.len();
    let mut words = vec![0u64; count.div_ceil(64)];
    let mut at = 0;
    for row in rows.chunks_exact(plan.inner) {
        for choice in &plan.choices {
            for number in row {
                words[at / 64] |= u64::from(number >> choice.bit & 1) << (at % 64);
                at += 1;
            }
        }
    }
    Bits::new(words, count)
}

impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Weights(<{} hidden>)", self.full.len())
    }
}
