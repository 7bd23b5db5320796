//! Additive shares.

use std::fmt;

use ring::Bits;
use ring::word::{mask, signed};
use wire::{Error, Result, Role};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// One party's additive share of a vector of signed integers:
/// `x = client + server mod 2^bits`. Prints only its length and width.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Share {
    words: Vec<u64>,
    bits: u32,
}

impl Share {
    /// Wraps this party's summands, reducing them mod 2^bits (1 to 64).
    pub fn new(mut words: Vec<u64>, bits: u32) -> Self {
        words.iter_mut().for_each(|word| *word &= mask(bits));
        Self { words, bits }
    }

    /// Makes the share of a value that only one party knows: `values` for its owner, zeros for the
    /// other.
    pub fn known(values: Option<&[i64]>, count: usize, bits: u32) -> Self {
        match values {
            Some(values) => Self::new(values.iter().map(|v| *v as u64).collect(), bits),
            None => Self::new(vec![0; count], bits),
        }
    }

    /// Returns the number of shared values.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Returns whether nothing is shared.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the width of the ring.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns this party's summands. Local arithmetic only: sending them reveals the value.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Checks that there are `count` values mod 2^bits, as `what` was planned for.
    ///
    /// # Errors
    /// [`Error::Misuse`] for others.
    pub(crate) fn check(&self, count: usize, bits: u32, what: &str) -> Result<()> {
        if (self.len(), self.bits) == (count, bits) {
            return Ok(());
        }
        Err(Error::misuse(format!("a share that does not fit its {what}")))
    }

    /// Takes the values into a narrower ring, without a message.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a wider one, which needs a protocol.
    pub fn narrow(&self, bits: u32) -> Result<Self> {
        if bits > self.bits {
            return Err(Error::misuse(format!("a {}-bit share has no {bits} bits", self.bits)));
        }
        Ok(Self::new(self.words.clone(), bits))
    }

    /// The values at `indices`, in that order.
    pub fn gather(&self, indices: impl IntoIterator<Item = usize>) -> Self {
        let words = indices.into_iter().map(|i| self.words.get(i).copied().unwrap_or(0));
        Self { words: words.collect(), bits: self.bits }
    }

    /// Returns `self + factor * other` element by element; local.
    pub fn add_scaled(&self, other: &Self, factor: i64) -> Self {
        let sums = self.words.iter().zip(&other.words);
        let sums = sums.map(|(x, y)| x.wrapping_add(y.wrapping_mul(factor as u64)));
        Self::new(sums.collect(), self.bits)
    }

    /// The values plus a public constant, which the server adds; local.
    pub fn plus(&self, role: Role, constant: i64) -> Self {
        let constant = server_only(role, constant as u64);
        Self::new(self.words.iter().map(|word| word.wrapping_add(constant)).collect(), self.bits)
    }

    /// Adds the two halves back together, as signed integers.
    pub fn reconstruct(client: &Self, server: &Self) -> Vec<i64> {
        let sums = client.words.iter().zip(&server.words).map(|(c, s)| c.wrapping_add(*s));
        sums.map(|word| signed(word, client.bits)).collect()
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Share(<{} hidden values of {} bits>)", self.len(), self.bits)
    }
}

/// `value` for the server, zero for the client, without a branch on anything secret.
pub(crate) fn server_only(role: Role, value: u64) -> u64 {
    match role {
        Role::Server => value,
        Role::Client => 0,
    }
}

/// What this party adds to the carry out of the lower bits for its share of
/// `[x >= 0]`: its top bit, flipped by the server.
pub(crate) fn sign_of(role: Role, words: &[u64], bits: u32) -> Bits {
    let top = Bits::of_words(words, bits - 1);
    match role {
        Role::Client => top,
        Role::Server => top.not(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_never_print_their_value() {
        let share = Share::new(vec![42; 3], 8);
        assert_eq!(format!("{share:?}"), "Share(<3 hidden values of 8 bits>)");
    }

    #[test]
    fn narrowing_keeps_small_values() {
        let (client, server) = (Share::new(vec![1000], 20), Share::new(vec![(1 << 20) - 1005], 20));
        assert_eq!(Share::reconstruct(&client, &server), [-5]);
        let narrow = |s: &Share| s.narrow(5);
        assert!(matches!((narrow(&client), narrow(&server)),
            (Ok(c), Ok(s)) if Share::reconstruct(&c, &s) == [-5]));
        assert!(client.narrow(21).is_err());
    }
}
