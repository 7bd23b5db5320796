//! What a client does, so that those of tests can do something else than the protocol says.

use he::rlwe::Fresh;
use ring::Bits;

/// What a client does. All that is not said is as the protocol has it.
pub trait Conduct: Send + Sync {
    /// Changes the corrections that commit to the inputs, bit after bit of all; the client goes on with the
    /// labels that it has.
    fn corrections(&self, corrections: &mut Bits) {
        let _ = corrections;
    }

    /// Changes a ciphertext of a layer after its errors were computed from what it said.
    fn ciphertext(&self, layer: usize, fresh: &mut Fresh) {
        let _ = (layer, fresh);
    }

    /// Changes the phases of a layer, mod 2^phase_bits, before the client commits to them.
    fn phases(&self, layer: usize, words: &mut [u64]) {
        let _ = (layer, words);
    }

    /// Changes the labels of the bits that the client has committed to for the circuits behind a layer, bit after bit
    /// of all values.
    fn labels(&self, layer: usize, labels: &mut [u128]) {
        let _ = (layer, labels);
    }

    /// Changes what the client of a test opens of its combinations: the high bits of those that are to be zero, then
    /// of small ones the low bits and the high bits.
    #[cfg(any(test, feature = "testing"))]
    fn opening(&self, opened: &mut [Vec<u64>]) {
        let _ = opened;
    }
}

/// A client that does what the protocol says.
#[derive(Clone, Copy, Debug)]
pub struct Honest;

impl Conduct for Honest {}
