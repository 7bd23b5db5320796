//! Products of the server's weights with what the client knows, by OT.
//!
//! | | |
//! |---|---|
//! | In | server: weights `[places, rows, inner]` of few bits each; client: `x`, `[places, inner, columns]`, mod 2^bits; random OTs, one for each bit of a weight |
//! | Out | shares of `w*x`, `[places, rows, columns]`, mod 2^bits |
//! | Reveals | masked choices; corrections that the pads which are not opened hide |
//! | Security | semi-honest, given the OTs |
//! | Cost | a bit up for each OT; down columns*(bits - k) bits where its bit counts 2^k, or an odd multiple of that ([`Product::costs`]); two rounds, those of all products of a network together |
//! | Paper | Zeng et al., UFO, section II-C and Fig. 4, section III-1; Asharov et al., correlated transfer (CCS 2013), section 5; Mohassel, Zhang, SecureML (S&P 2017), section IV-D (several columns under one choice, and fewer bits for higher ones) |
//!
//! For a bit b of a weight that meets the row x of a place, the client has two streams `s0`
//! and `s1` (`ot::Keystream`), the server the one of its choice. The client sends
//! `s0 + x - s1`, so that the server has `s0 + b*x`, and keeps `-s0`. Both add that up times
//! what the bit is worth: of a vector that counts 2^k times its value only `bits - k` bits
//! matter. A part of all weights that no bit stands for is a public factor of a sum that the
//! client makes alone.
//!
//! What is sent, and when, depends on the plan only: each weight takes all its bits.

mod columns;
mod layer;
mod message;
mod plan;
mod preprocess;
mod receiver;
mod right;
mod sender;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod weights;

use std::fmt;
use std::ops::Range;

use ot::SenderPads;
use ring::Bits;
use ring::lane::Lane;
use ring::word::mask;
use wire::{Channel, Error, Lanes, Result, Values};
use zeroize::Zeroizing;

use crate::correlations::Correlations;
use crate::parallel;

pub use layer::Layer;
use message::{Choices, Corrections};
use plan::Piece;
pub use plan::{MESSAGE, Product};
pub use preprocess::{Feed, PreprocessedClient, PreprocessedServer, Source};
use receiver::{Opened, Receiver};
pub use right::Right;
use sender::Sender;
pub use weights::Weights;

/// Bytes of corrections that wait to be sent.
const MOST_WAITING: usize = 32 << 20;

/// What a party has of one part after the server's choices, for one use.
pub struct Asked(End);

enum End {
    /// The client's pads, and what was asked for.
    Sender(SenderPads, Bits),
    /// The server's pads.
    Receiver(Opened),
}

/// Sends the choices of part number `part` of the rows; the client has no `weights` and
/// receives them.
///
/// # Errors
/// [`Error::Misuse`] when the weights or the OTs do not fit the plan, [`Error::Peer`],
/// [`Error::Transport`].
pub fn ask(
    channel: &mut Channel,
    plan: &Product,
    part: usize,
    weights: Option<&Weights>,
    mut ots: Correlations,
) -> Result<Asked> {
    let lines = lines(plan, part)?;
    let (job, layout) = (plan.job(&lines), plan.asked(&lines));
    match weights {
        None => {
            let ots = ots.send(&[job])?.pop().ok_or_else(sender::other)?;
            let asked: Choices = channel.receive(&layout)?;
            let planes = asked.0.into_iter().flat_map(|(_, values)| match values {
                Values::Planes(planes) => planes,
                Values::Words(_) => Vec::new(),
            });
            let bits = planes.into_iter().next().ok_or_else(sender::other)?;
            Ok(Asked(End::Sender(ots, bits)))
        }
        Some(weights) => {
            let chosen = weights.chosen.get(part).ok_or_else(sender::other)?;
            let ots = ots.receive(&[job])?.pop().ok_or_else(sender::other)?;
            let (opened, asked) = receiver::mask(ots, chosen)?;
            let values = [Values::Planes(vec![asked])];
            let asked: Choices = Lanes(layout.into_iter().zip(values).collect());
            channel.send(&asked)?;
            Ok(Asked(End::Receiver(opened)))
        }
    }
}

/// Returns the client's share of part number `part` of the rows, without what no bit stands for.
///
/// # Errors
/// [`Error::Misuse`] when `x` or what was asked for does not fit the plan,
/// [`Error::Transport`].
pub fn client(
    channel: &mut Channel,
    plan: &Product,
    part: usize,
    x: &Right,
    asked: Asked,
    threads: usize,
) -> Result<Zeroizing<Vec<u64>>> {
    let lines = lines(plan, part)?;
    let End::Sender(pads, asked) = asked.0 else { return Err(sender::other()) };
    if x.len() != plan.inputs() || pads.job() != plan.job(&lines) {
        return Err(Error::misuse("a factor that does not fit its product"));
    }
    match x {
        Right::Narrow(x) => send(channel, plan, &lines, x, (pads, asked), threads),
        Right::Middle(x) => send(channel, plan, &lines, x, (pads, asked), threads),
        Right::Wide(x) => send(channel, plan, &lines, x, (pads, asked), threads),
    }
}

/// Returns the server's share of part number `part` of the rows.
///
/// # Errors
/// [`Error::Misuse`] when the weights or what was asked for do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn server(
    channel: &mut Channel,
    plan: &Product,
    part: usize,
    weights: &Weights,
    asked: Asked,
    threads: usize,
) -> Result<Zeroizing<Vec<u64>>> {
    let lines = lines(plan, part)?;
    let End::Receiver(pads) = asked.0 else { return Err(sender::other()) };
    let chosen = weights.chosen.get(part).filter(|chosen| chosen.len() == pads.len());
    let chosen = chosen.ok_or_else(sender::other)?;
    let receiver = Receiver { plan, lines: &lines, chosen, pads: &pads };
    match plan.bits {
        ..=16 => receive::<u16>(channel, &receiver, threads),
        17..=32 => receive::<u32>(channel, &receiver, threads),
        _ => receive::<u64>(channel, &receiver, threads),
    }
}

/// Returns `w*x` for an `x` that the server knows.
pub fn known(plan: &Product, weights: &Weights, x: &Right, threads: usize) -> Zeroizing<Vec<u64>> {
    reduced(plan, x.product(plan, &weights.full, threads))
}

/// Returns what no bit stands for, for an `x` that the client knows.
pub fn without_bits(plan: &Product, x: &Right) -> Zeroizing<Vec<u64>> {
    reduced(plan, x.sums(plan, plan.offset))
}

fn reduced(plan: &Product, mut words: Zeroizing<Vec<u64>>) -> Zeroizing<Vec<u64>> {
    words.iter_mut().for_each(|word| *word &= mask(plan.bits));
    words
}

fn lines(plan: &Product, part: usize) -> Result<Range<usize>> {
    let lines = plan.parts().into_iter().nth(part);
    lines.ok_or_else(|| Error::misuse("a part that its product does not have"))
}

fn send<T: Lane>(
    channel: &mut Channel,
    plan: &Product,
    lines: &Range<usize>,
    x: &[T],
    (pads, asked): (SenderPads, Bits),
    threads: usize,
) -> Result<Zeroizing<Vec<u64>>> {
    let sender = Sender::new(plan, lines, x, pads, &asked)?;
    let mut shares = Sums::<T>::new(plan, lines);
    let mut message = Corrections(Vec::new());
    let mut waiting = 0;
    for pieces in plan.messages(lines) {
        let made = parallel::map(threads, pieces.iter().collect(), |piece| sender.piece(piece));
        message.0.clear();
        for (piece, (part, sums)) in pieces.iter().zip(made) {
            message.0.extend_from_slice(&part);
            shares.add(piece, &sums, u64::MAX);
        }
        // Sending does not wait, and a slow link would leave all corrections in memory.
        waiting += message.0.len();
        channel.send(&message)?;
        if waiting > MOST_WAITING {
            channel.flush()?;
            waiting = 0;
        }
    }
    Ok(shares.finish())
}

fn receive<T: Lane>(
    channel: &mut Channel,
    receiver: &Receiver<'_>,
    threads: usize,
) -> Result<Zeroizing<Vec<u64>>> {
    let (plan, lines) = (receiver.plan, receiver.lines);
    let mut shares = Sums::<T>::new(plan, lines);
    for pieces in plan.messages(lines) {
        let layout = plan.layout(&pieces);
        let message: Corrections = channel.receive(&layout)?;
        let parts = pieces.iter().zip(message.segments(&layout)).collect();
        let made =
            parallel::map(threads, parts, |(piece, bytes)| receiver.piece::<T>(piece, bytes));
        pieces.iter().zip(made).for_each(|(piece, sums)| shares.add(piece, &sums, 1));
    }
    Ok(shares.finish())
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Asked(<hidden>)")
    }
}

/// A party's share of some rows, in the making.
struct Sums<'a, T: Lane> {
    plan: &'a Product,
    first: usize,
    words: Zeroizing<Vec<T>>,
}

impl<'a, T: Lane> Sums<'a, T> {
    fn new(plan: &'a Product, lines: &Range<usize>) -> Self {
        let words = Zeroizing::new(vec![T::default(); lines.len() * plan.columns]);
        Self { plan, first: lines.start, words }
    }

    /// Adds a piece's sums, times what its bit is worth, times `sign`.
    fn add(&mut self, piece: &Piece, sums: &[T], sign: u64) {
        let importance = self.plan.choices.get(piece.choice).map_or(0, |c| c.importance);
        let factor = T::of(importance.wrapping_mul(sign));
        let start = (piece.line - self.first) * self.plan.columns;
        let words = self.words.iter_mut().skip(start).zip(sums);
        words.for_each(|(word, sum)| *word = word.plus(sum.times(factor)));
    }

    fn finish(self) -> Zeroizing<Vec<u64>> {
        let words = self.words.iter().map(|word| word.wide()).collect();
        reduced(self.plan, Zeroizing::new(words))
    }
}
