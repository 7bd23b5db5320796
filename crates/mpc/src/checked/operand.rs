//! What layers read: integers that were entered or came out of circuits, and public sums of them.

use gc::tagged::{ALPHA_BITS, MacKeys};
use ring::word::mask;
use wire::{Error, Result};

use crate::auth::{Keys, Values};
use crate::defect::defect;
use crate::share::Share;

/// Integers that a layer reads, as a linear map of what was entered or of a layer's results. Both parties
/// apply it to what they hold, tags and keys included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operand {
    /// Where they come from: 0 for what the client enters, `i + 1` for the results of layer `i`.
    pub from: usize,
    /// The positions that each of the sums adds up, one vector a sum; `None` takes all integers as they are.
    pub sums: Option<Vec<Vec<usize>>>,
}

/// An operand that is added to a layer's accumulators, each times the multiplier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Addend {
    pub(super) operand: Operand,
    pub(super) multiplier: i64,
}

/// What a party of the server's side holds of a tensor: its shares, and the keys of the client's.
pub(super) type Held = (Share, Keys);

impl Operand {
    /// Returns how many integers it has, `counts` being those of all tensors before.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a tensor that is not there yet, or a position that it does not have.
    pub(super) fn count(&self, counts: &[usize]) -> Result<usize> {
        let foreign = || Error::misuse("a layer that reads what is not there");
        let count = *counts.get(self.from).ok_or_else(foreign)?;
        match &self.sums {
            None => Ok(count),
            Some(sums) if sums.iter().flatten().all(|at| *at < count) => Ok(sums.len()),
            Some(_) => Err(foreign()),
        }
    }

    /// Returns the client's integers and tags, for a layer that computes mod 2^bits.
    pub(super) fn values(&self, made: &[Values], bits: u32) -> Result<Values> {
        let all = made.get(self.from).ok_or_else(missing)?;
        match &self.sums {
            None => all.narrowed(bits + ALPHA_BITS),
            Some(sums) => all.linear(|words| added(sums, words)).narrowed(bits + ALPHA_BITS),
        }
    }

    /// Returns the server's shares mod 2^bits and the keys of the client's.
    pub(super) fn held(&self, made: &[Held], bits: u32) -> Result<Held> {
        let (share, keys) = made.get(self.from).ok_or_else(missing)?;
        let modulus = bits + ALPHA_BITS;
        let Some(sums) = &self.sums else {
            let words = share.words().iter().map(|word| word & mask(bits)).collect();
            return Ok((Share::new(words, bits), keys.narrowed(modulus)?));
        };
        let sum = |at: &Vec<usize>| {
            let words = at.iter().filter_map(|at| share.words().get(*at));
            words.fold(0u64, |a, b| a.wrapping_add(*b)) & mask(bits)
        };
        let share = Share::new(sums.iter().map(sum).collect(), bits);
        Ok((share, keys.linear(|words| added(sums, words)).narrowed(modulus)?))
    }
}

impl Addend {
    /// Adds the client's integers to the phases of a layer of `bits` bits, above whose lowest they stand.
    pub(super) fn to_phases(&self, made: &[Values], bits: u32, phases: &Values) -> Result<Values> {
        let added = self.operand.values(made, bits)?.linear(|words| self.times(words));
        phases.more(&added.raised(phases.modulus())?)
    }

    /// Adds the server's shares to its `share` of a layer of `bits` bits, which has low bits beneath them,
    /// and the keys to those of the phases.
    pub(super) fn to_held(&self, made: &[Held], bits: u32, (share, phases): &Held) -> Result<Held> {
        let (own, keys) = self.operand.held(made, bits)?;
        let beneath = share.bits().checked_sub(bits).ok_or_else(missing)?;
        let more = |(word, own): (&u64, &u64)| {
            let own = own.wrapping_mul(self.multiplier as u64) << beneath;
            word.wrapping_add(own) & mask(share.bits())
        };
        let words = share.words().iter().zip(own.words()).map(more).collect();
        let added = keys.linear(|words| self.times(words)).raised(phases.modulus())?;
        Ok((Share::new(words, share.bits()), phases.more(&added)?))
    }

    fn times(&self, words: &[u128]) -> Vec<u128> {
        words.iter().map(|word| word.wrapping_mul(self.multiplier as u128)).collect()
    }
}

/// What the server holds of what the client enters: nothing but keys.
pub(super) fn entered(of_x: Keys, low: i64, bits: u32, keys: &MacKeys) -> Held {
    let count = of_x.len();
    (Share::new(vec![0; count], bits), of_x.plus(&vec![low as u128; count], keys))
}

/// The sum of the words at each of the positions, mod 2^128.
fn added(sums: &[Vec<usize>], words: &[u128]) -> Vec<u128> {
    let sum = |at: &Vec<usize>| {
        at.iter().filter_map(|at| words.get(*at)).fold(0u128, |a, b| a.wrapping_add(*b))
    };
    sums.iter().map(sum).collect()
}

fn missing() -> Error {
    defect("a layer reads what is not there")
}
