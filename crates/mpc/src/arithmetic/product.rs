//! Products of two private bits, mod 2^l; the sender in the OTs begins.
//!
//! | | |
//! |---|---|
//! | In | a bit of each party per element; one random OT of l-bit words each |
//! | Out | shares of the products mod 2^l |
//! | Reveals | the sender's bit and the receiver's choice, masked |
//! | Security | semi-honest, given the OTs |
//! | Cost | l bits from the sender, then 1 bit from the receiver |
//! | Paper | Asharov et al., correlated transfer (CCS 2013), section 5, on random choices; Beaver (CRYPTO 1995) |
//!
//! As many bits as the 1-of-n OT of `mux.rs` takes, in which the receiver begins.
//! The sender shows `m = r1 - r0 - x` for its bit x and pads `r0, r1`, so that with the
//! random choice a the receiver holds `r_a - a*m = r0 + a*x`. Its own bit is `a xor e`,
//! and `(a xor e)*x = e*x + (1 - 2*e)*a*x` once e is known to both.

use ot::one_of_n::{choices_cost, choices_layout, masked_cost, masked_layout};
use ot::{Choices, Column, Job, Masked, ReceiverPads, SenderPads};
use ring::Bits;
use ring::word::mask;
use wire::{Channel, Cost, Lanes, Result, Role, Values};
use zeroize::Zeroizing;

use crate::correlations::Correlations;
use crate::defect::defect;

/// What [`run`] costs.
pub(crate) fn cost(sender: Role, job: Job) -> Cost {
    masked_cost(sender, &[job]).then(choices_cost(!sender, &[job]))
}

/// This party's shares; their low l bits count. `bits` are its own.
///
/// # Errors
/// [`Error::Misuse`](wire::Error::Misuse) when the OTs do not fit,
/// [`Error::Peer`](wire::Error::Peer),
/// [`Error::Transport`](wire::Error::Transport).
pub(crate) fn run(
    channel: &mut Channel,
    sender: Role,
    job: Job,
    bits: &Bits,
    mut ots: Correlations,
) -> Result<Vec<u64>> {
    let none = || defect("products came without their OTs");
    if channel.role() == sender {
        let ots = ots.send(&[job])?.pop().ok_or_else(none)?;
        send(channel, job, bits, ots)
    } else {
        let ots = ots.receive(&[job])?.pop().ok_or_else(none)?;
        receive(channel, job, bits, ots)
    }
}

/// `e*x - (1 - 2*e)*r0`.
fn send(channel: &mut Channel, job: Job, bits: &Bits, pads: SenderPads) -> Result<Vec<u64>> {
    let mut pads = pads.into_columns().into_iter();
    let (zero, one) = (words(pads.next()), words(pads.next()));
    let own = Zeroizing::new(bits.to_words());
    let differences = one.iter().zip(zero.iter()).zip(own.iter());
    let low = job.entry.words().next().map_or(0, mask);
    let shown = differences.map(|((one, zero), x)| one.wrapping_sub(*zero).wrapping_sub(*x) & low);
    let lanes = masked_layout(&[job]).into_iter();
    let shown: Masked = Lanes(lanes.zip([Values::Words(shown.collect())]).collect());
    channel.send(&shown)?;
    let asked: Choices = channel.receive(&choices_layout(&[job]))?;
    let e = asked.0.into_iter().flat_map(|(_, values)| match values {
        Values::Planes(planes) => planes,
        Values::Words(_) => Vec::new(),
    });
    let e = e.into_iter().next().unwrap_or_default();
    let terms = e.masks().zip(own.iter().zip(zero.iter()));
    let share =
        |(e, (x, zero)): (u64, (&u64, &u64))| signed_by(e, zero.wrapping_neg()).wrapping_add(e & x);
    Ok(terms.map(share).collect())
}

/// `(1 - 2*e)*(r_a - a*m)`.
fn receive(channel: &mut Channel, job: Job, bits: &Bits, pads: ReceiverPads) -> Result<Vec<u64>> {
    let (choices, opened) = pads.into_parts();
    let (a, opened) = (choices.into_iter().next().unwrap_or_default(), words(Some(opened)));
    let shown: Masked = channel.receive(&masked_layout(&[job]))?;
    let shown = shown.0.into_iter().flat_map(|(_, values)| match values {
        Values::Words(words) => words,
        Values::Planes(_) => Vec::new(),
    });
    let mut e = a.clone();
    e.xor(bits);
    let terms = a.masks().zip(e.masks()).zip(opened.iter().zip(shown));
    let share = |((a, e), (pad, shown)): ((u64, u64), (&u64, u64))| {
        signed_by(e, pad.wrapping_sub(a & shown))
    };
    let shares = terms.map(share).collect();
    let lanes = choices_layout(&[job]).into_iter();
    let asked: Choices = Lanes(lanes.zip([Values::Planes(vec![e])]).collect());
    channel.send(&asked)?;
    Ok(shares)
}

fn words(pad: Option<Column>) -> Zeroizing<Vec<u64>> {
    let first = pad.and_then(|mut pad| pad.words.first_mut().map(std::mem::take));
    Zeroizing::new(first.unwrap_or_default())
}

/// The negative of `word` where `ones` is all ones, `word` where it is zero.
fn signed_by(ones: u64, word: u64) -> u64 {
    (word ^ ones).wrapping_sub(ones)
}
