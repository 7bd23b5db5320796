//! Correlations as labels of bits that the receiver commits to.
//!
//! The receiver has a random bit `c` and `t = q xor c*Delta`. To commit to bit `b` it says
//! `e = c xor b`. Then `t = K xor b*Delta` with `K = q xor e*Delta`: `t` is the label of `b` in a
//! garbled circuit under Delta whose zero label is `K`, and the receiver cannot know the other
//! label, since it would know Delta. A receiver that says another `e` commits to another bit.

use ring::Bits;
use wire::{Error, Result};
use zeroize::Zeroizing;

use super::batch::{ReceiverBatch, SenderBatch};
use crate::block::mask_of_secret;

/// Labels of 128 bits. Wiped on drop.
pub(super) type Labels = Zeroizing<Vec<u128>>;

impl SenderBatch {
    /// Returns the difference of the two labels of every bit. Secret; its lowest bit is 1.
    pub fn delta(&self) -> Zeroizing<u128> {
        self.delta.clone()
    }

    /// Turns the correlations into the zero labels of bits to which the receiver committed by
    /// `corrections`, one for each correlation.
    ///
    /// # Errors
    /// [`Error::Internal`] for another number of corrections.
    pub fn zero_labels(self, corrections: &Bits) -> Result<Labels> {
        if corrections.len() != self.len() {
            return Err(Error::internal("other corrections than there are correlations"));
        }
        let rows = self.blocks.iter().zip(corrections.iter());
        let zero = |(q, e): (&u128, u64)| q ^ (*self.delta & mask_of_secret(u128::from(e)));
        Ok(Zeroizing::new(rows.map(zero).collect()))
    }
}

impl ReceiverBatch {
    /// Commits to `bits`, one for each correlation. Returns the corrections, which go to the sender
    /// and are uniform to it, and the labels of the bits.
    ///
    /// # Errors
    /// [`Error::Internal`] for another number of bits.
    pub fn commit(self, bits: &Bits) -> Result<(Bits, Labels)> {
        if bits.len() != self.len() {
            return Err(Error::internal("other bits than there are correlations"));
        }
        let (mut corrections, labels) = self.random_labels();
        corrections.xor(bits);
        Ok((corrections, labels))
    }

    /// Returns the random choice bits and their labels: bits to which the receiver is committed
    /// without a message. The sender's corrections are zeros.
    pub fn random_labels(self) -> (Bits, Labels) {
        let choices = self.choices.iter().map(|choice| u64::from(*choice)).collect();
        (choices, Zeroizing::new(self.blocks.to_vec()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use ring::Random;

    use super::*;
    use crate::ideal::deal;

    #[test]
    fn receivers_hold_the_labels_of_their_bits() {
        let mut rng = Random::seeded(11);
        let (sender, receiver) = deal(&mut rng, 200);
        let bits: Bits = (0..200).map(|_| rng.word()).collect();
        let delta = *sender.delta();
        let (corrections, labels) = receiver.commit(&bits).unwrap();
        let zeros = sender.zero_labels(&corrections).unwrap();
        for ((label, zero), bit) in labels.iter().zip(zeros.iter()).zip(bits.iter()) {
            assert_eq!(*label, zero ^ (delta * u128::from(bit)));
        }
        assert_eq!(delta & 1, 1);
    }

    #[test]
    fn random_bits_are_committed_without_a_message() {
        let (sender, receiver) = deal(&mut Random::seeded(12), 70);
        let delta = *sender.delta();
        let (bits, labels) = receiver.random_labels();
        let zeros = sender.zero_labels(&Bits::zeros(70)).unwrap();
        assert!(bits.iter().sum::<u64>() > 0);
        for ((label, zero), bit) in labels.iter().zip(zeros.iter()).zip(bits.iter()) {
            assert_eq!(*label, zero ^ (delta * u128::from(bit)));
        }
    }

    #[test]
    fn other_numbers_of_bits_are_refused() {
        let (sender, receiver) = deal(&mut Random::seeded(13), 3);
        assert!(matches!(sender.zero_labels(&Bits::zeros(2)), Err(Error::Internal(_))));
        assert!(matches!(receiver.commit(&Bits::zeros(4)), Err(Error::Internal(_))));
    }
}
