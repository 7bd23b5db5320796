//! Whether tests go right, from shares of what they compare.

use ring::Bits;
use wire::{Channel, Result};
use zeroize::Zeroizing;

use crate::boolean::compare::{self, Comparison};
use crate::correlations::Correlations;
use crate::share::{Share, sign_of};

/// Xor shares of whether tests of so many comparisons go right, a plane of all `count` trees for each
/// test, of values that lie comparison by comparison.
pub(super) fn outcomes(
    channel: &mut Channel,
    comparison: &Comparison,
    y: &Share,
    [count, comparisons]: [usize; 2],
    ots: &mut Correlations,
) -> Result<Vec<Bits>> {
    let found = compare::of_share(channel, comparison, y, ots)?;
    let mut all = sign_of(channel.role(), y.words(), y.bits());
    all.xor(&found.greater);
    let all = Zeroizing::new(all.to_words());
    let planes = all.chunks(count.max(1)).map(|plane| plane.iter().copied().collect());
    Ok(odd(planes, comparisons))
}

/// The xor of every so many planes: shares of whether an odd number of comparisons holds.
fn odd(planes: impl Iterator<Item = Bits>, comparisons: usize) -> Vec<Bits> {
    let mut tests: Vec<Bits> = Vec::new();
    for (at, plane) in planes.enumerate() {
        match tests.last_mut() {
            Some(test) if !at.is_multiple_of(comparisons) => test.xor(&plane),
            _ => tests.push(plane),
        }
    }
    tests
}
