//! A comparison by a chain of digits: one message of choices and one of tables, no gates.
//!
//! | | |
//! |---|---|
//! | In | operands as in [`super`]; random OTs |
//! | Out | xor shares of what the [`Goal`] tells |
//! | Reveals | masked choices and masked rows |
//! | Security | perfect given the OTs: each key encrypts one row, and one entry is received |
//! | Cost | n bits up, about n^2/2 + 2n bits down; 2 rounds for any number of digits |
//! | Paper | 1-of-n OT as in `ot::one_of_n`; rows permuted by colours and tables that encrypt what opens the next as in Beaver, Micali, Rogaway (STOC 1990), with one-time keys |
//!
//! Digits are read from the lowest up, and a *state* goes from one to the next: the carry, and
//! what else the goal tracks. The table of a digit has, for each value of the asking party's
//! digit, a row for each state that comes in. A row is the *label* of the state that goes out:
//! the state under a random mask, which is its colour, and the key to the row of the next table
//! that stands in the place of this colour. The sender's OT share of a row is the key to it: it is
//! known before the tables below are made, so tables are made from the top down. The share of the
//! lowest table, which has one row, is sent in the clear and opens it.
//!
//! The receiver opens one row of each table and ends with the outcome under the sender's mask, which
//! is the sender's share. What other rows hold stays under keys that nothing delivers. The OTs
//! are consumed by value, so a second message of choices is never answered under the same keys.

mod goal;
mod rows;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod widths;

use ot::{Choices, Chooser, Entry, Job, Masked, SenderPads, choose, respond};
use ring::Bits;
use wire::{Channel, Cost, Lane, Lanes, Result, Role, Values};
use zeroize::Zeroizing;

use crate::correlations::Correlations;
use crate::defect::defect;
pub(super) use goal::Goal;

/// The public plan of a chain: its digits, the lowest first.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    goal: Goal,
    digits: Vec<Digit>,
}

/// One digit and the shape of its table's rows.
#[derive(Clone, Debug)]
struct Digit {
    /// The lowest bit.
    shift: u32,
    width: u32,
    /// Bits of the state that comes in; a row for each of its values.
    state: u32,
    /// Bits of the state that goes out, or of the outcome.
    colour: u32,
    /// Bits of the key to a row of the next table; none for the highest digit.
    key: u32,
    /// Whether the outcome goes out.
    last: bool,
}

impl Digit {
    fn rows(&self) -> usize {
        1 << self.state
    }

    /// Bits of a row.
    fn row(&self) -> usize {
        (self.colour + self.key) as usize
    }

    fn job(&self, count: usize) -> Job {
        let entry =
            Entry::Spared { bits: (self.colour + self.key) << self.state, spare: self.colour };
        Job { count, choice_bits: self.width, entry }
    }

    /// The digit of `operands` as planes, the lowest bit first.
    fn of(&self, operands: &[u64]) -> Vec<Bits> {
        (self.shift..self.shift + self.width).map(|bit| Bits::of_words(operands, bit)).collect()
    }

    /// The state or outcome that goes out when `state` comes in: of the digits of who asks and of
    /// the other party.
    fn next(&self, goal: Goal, state: u32, asked: u32, told: u32) -> u32 {
        let mut at = goal.state(self.shift, state);
        for bit in 0..self.width {
            at = goal.step(self.shift + bit, at, [asked, told].map(|d| (d >> bit) & 1 == 1));
        }
        if self.last { goal.outcome(at) } else { goal.code(self.shift + self.width, at) }
    }
}

impl Chain {
    /// Plans the chain of fewest bits for integers of `bits`; none where its rows are longer than
    /// a pad.
    pub(super) fn new(bits: u32, goal: Goal) -> Option<Self> {
        Some(Self::of_widths(bits, goal, widths::fewest_bits(bits, goal)?))
    }

    /// Plans digits of these widths, the highest first, which add up to `bits`.
    pub(super) fn of_widths(bits: u32, goal: Goal, widths: Vec<u32>) -> Self {
        let (mut digits, mut shift) = (Vec::with_capacity(widths.len()), bits);
        let mut key = 0;
        // From the top down, since a row has the key to the next table.
        for width in widths {
            let last = shift == bits;
            let colour = if last { goal.outcomes() } else { goal.state_bits(shift) };
            shift -= width;
            let state = if shift == 0 { 0 } else { goal.state_bits(shift) };
            digits.push(Digit { shift, width, state, colour, key, last });
            key += colour;
        }
        digits.reverse();
        Self { goal, digits }
    }

    /// The OTs for `count` comparisons; the lowest digit's are first.
    pub(super) fn jobs(&self, count: usize) -> Vec<Job> {
        self.digits.iter().map(|digit| digit.job(count)).collect()
    }

    /// The answer's layout: the masked entries of each digit, then the key to the lowest's row.
    fn layout(&self, count: usize) -> Vec<Lane> {
        let mut layout = ot::one_of_n::masked_layout(&self.jobs(count));
        layout.push(self.opening(count));
        layout
    }

    fn opening(&self, count: usize) -> Lane {
        Lane::Planes { planes: self.digits.first().map_or(0, Digit::row), count }
    }

    /// What the answer costs when `sender` sends it.
    pub(super) fn answer_cost(&self, sender: Role, count: usize) -> Cost {
        Cost::message(sender, Masked::body_len(&self.layout(count)))
    }

    /// Answers masked digits. Returns the sender's shares of what goes out of each digit, the
    /// lowest first, and the message.
    fn answer(
        &self,
        mut pads: Vec<SenderPads>,
        operands: &[u64],
        choices: &Choices,
    ) -> Result<(States, Masked)> {
        let masks: States = Zeroizing::new(pads.iter_mut().map(SenderPads::take_spare).collect());
        let (mut keys, mut parts) = (Vec::new(), Vec::new());
        let digits = self.digits.iter().zip(&choices.0).zip(pads).enumerate();
        for (at, ((digit, part), pads)) in digits.rev() {
            let below = at.checked_sub(1).and_then(|below| masks.get(below));
            let masks = [masks.get(at), below].map(|mask| mask.map_or(&[][..], Vec::as_slice));
            let table = rows::table(digit, self.goal, operands, masks, keys);
            let (shares, masked) = respond(vec![pads], vec![table], &Lanes(vec![part.clone()]))?;
            keys = rows::of(shares, digit.row());
            parts.push(masked.0);
        }
        let opening = keys.pop().ok_or_else(|| defect("a chain without digits"))?;
        let mut message: Vec<_> = parts.into_iter().rev().flatten().collect();
        message.push((self.opening(operands.len()), Values::Planes(opening)));
        Ok((masks, Lanes(message)))
    }

    /// Opens a row of each table, and returns the receiver's shares of what goes out of each digit,
    /// the lowest first.
    fn open(&self, chooser: Chooser, mut answer: Masked) -> Result<States> {
        let Some((_, Values::Planes(mut key))) = answer.0.pop() else {
            return Err(defect("an answer of a chain has no end"));
        };
        let mut states: States = Zeroizing::new(Vec::with_capacity(self.digits.len()));
        for (digit, column) in self.digits.iter().zip(chooser.finish(answer)?) {
            let colour = states.last().map_or(&[][..], Vec::as_slice);
            let mut label = rows::opened(rows::of(vec![column], digit.row()), colour, &key);
            key = label.split_off(digit.colour as usize);
            states.push(label);
        }
        Ok(states)
    }
}

/// A party's shares of the states that go out of the digits, or of the outcome of the last.
pub(super) type States = Zeroizing<Vec<Vec<Bits>>>;

/// The shares of the outcome.
///
/// # Errors
/// [`wire::Error::Internal`] without digits.
pub(super) fn outcome(mut states: States) -> Result<Vec<Bits>> {
    states.pop().ok_or_else(|| defect("a chain without digits"))
}

/// The chain at the party that asks.
///
/// # Errors
/// As [`super::run`].
pub(super) fn asked(
    channel: &mut Channel,
    plan: &Chain,
    operands: &[u64],
    ots: &mut Correlations,
) -> Result<States> {
    let jobs = plan.jobs(operands.len());
    let digits = Zeroizing::new(plan.digits.iter().map(|d| d.of(operands)).collect::<Vec<_>>());
    let (chooser, choices) = choose(ots.receive(&jobs)?, &digits)?;
    channel.send(&choices)?;
    let answer = channel.receive(&plan.layout(operands.len()))?;
    plan.open(chooser, answer)
}

/// The chain at the party that has the tables.
///
/// # Errors
/// As [`super::run`].
pub(super) fn told(
    channel: &mut Channel,
    plan: &Chain,
    operands: &[u64],
    ots: &mut Correlations,
) -> Result<States> {
    let jobs = plan.jobs(operands.len());
    let pads = ots.send(&jobs)?;
    let choices: Choices = channel.receive(&ot::one_of_n::choices_layout(&jobs))?;
    let (shares, answer) = plan.answer(pads, operands, &choices)?;
    channel.send(&answer)?;
    Ok(shares)
}
