//! The leaves of a comparison: one message of choices and one of masked table entries.

use ot::{Choices, Masked, choose, respond};
use ring::Bits;
use wire::{Channel, Result};
use zeroize::Zeroizing;

use super::{Comparison, Leaf};
use crate::correlations::Correlations;

/// The leaves at the party that asks.
pub(super) fn asked_leaves(
    channel: &mut Channel,
    plan: &Comparison,
    operands: &[u64],
    ots: &mut Correlations,
) -> Result<Vec<Bits>> {
    let jobs = plan.jobs(operands.len());
    let digits: Vec<Vec<Bits>> = plan.leaves.iter().map(|leaf| leaf.digit(operands)).collect();
    let digits = Zeroizing::new(digits);
    let (chooser, choices) = choose(ots.receive(&jobs)?, &digits)?;
    channel.send(&choices)?;
    let masked: Masked = channel.receive(&ot::one_of_n::masked_layout(&jobs))?;
    let own = |leaf: &Leaf| [0, 1].map(|_| Bits::of_words(operands, leaf.shift));
    Ok(plan.place(chooser.finish(masked)?, own))
}

/// The leaves at the party that has the tables.
pub(super) fn told_leaves(
    channel: &mut Channel,
    plan: &Comparison,
    operands: &[u64],
    ots: &mut Correlations,
) -> Result<Vec<Bits>> {
    let (count, jobs) = (operands.len(), plan.jobs(operands.len()));
    let next = plan.next(operands);
    let table = |leaf: &Leaf| {
        let (own, next) = (Zeroizing::new(leaf.digit(operands)), Zeroizing::new(leaf.digit(&next)));
        Comparison::table(leaf, &own, &next, count)
    };
    let tables = plan.leaves.iter().map(table).collect();
    let ots = ots.send(&jobs)?;
    let choices: Choices = channel.receive(&ot::one_of_n::choices_layout(&jobs))?;
    let (shares, masked) = respond(ots, tables, &choices)?;
    channel.send(&masked)?;
    let flipped = |words: &[u64], leaf: &Leaf| Bits::of_words(words, leaf.shift).not();
    Ok(plan.place(shares, |leaf| [flipped(operands, leaf), flipped(&next, leaf)]))
}
