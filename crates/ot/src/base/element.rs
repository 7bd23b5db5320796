//! Vectors of three polynomials modulo 3329, as ML-KEM-768 writes its public keys (FIPS 203,
//! algorithms 5 and 6 with d = 12): sums, differences, encoding, and a hash to them.
//!
//! Sums, differences and the hash take the same time whatever their operands are. Only decoding
//! branches on values, which are the peer's bytes.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes256, Block};

/// The modulus.
const Q: u16 = 3329;
/// Coefficients of three polynomials of degree 255.
const LEN: usize = 3 * 256;
/// Bytes of an encoded vector: twelve bits a coefficient.
pub(super) const BYTES: usize = LEN * 3 / 2;

/// A vector, every coefficient below the modulus.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Element([u16; LEN]);

impl Element {
    /// Out of a key of 256 bits: the output of AES-256 in counter mode, two coefficients to 64 bits.
    /// A pair of them is uniform but for 2^-40.
    pub(super) fn expand(key: &[u8; 32]) -> Self {
        let cipher = Aes256::new(&(*key).into());
        let mut stream = [[0; 16]; LEN / 4];
        stream.iter_mut().zip(0u128..).for_each(|(block, at)| *block = at.to_le_bytes());
        cipher.encrypt_blocks(Block::cast_slice_from_core_mut(&mut stream));
        let mut all = [0; LEN];
        let (halves, _) = stream.as_flattened().as_chunks::<8>();
        let (pairs, _) = all.as_chunks_mut::<2>();
        for (pair, half) in pairs.iter_mut().zip(halves) {
            // The word is a fraction of 2^64, of which these are the first two digits in base 3329.
            let mut fraction = u64::from_le_bytes(*half);
            for coefficient in pair {
                let product = u128::from(fraction) * u128::from(Q);
                *coefficient = (product >> 64) as u16;
                fraction = product as u64;
            }
        }
        Self(all)
    }

    /// `self + other`.
    pub(super) fn plus(&self, other: &Self) -> Self {
        self.with(other, |a, b| (a + b).wrapping_sub(Q))
    }

    /// `self - other`.
    pub(super) fn minus(&self, other: &Self) -> Self {
        self.with(other, u16::wrapping_sub)
    }

    /// `difference` gives a number from -3329 to 3328, to which 3329 is added where it is negative.
    fn with(&self, other: &Self, difference: impl Fn(u16, u16) -> u16) -> Self {
        Self(std::array::from_fn(|at| {
            let difference = difference(self.0[at], other.0[at]);
            let negative = (difference >> 15).wrapping_neg();
            difference.wrapping_add(Q & negative)
        }))
    }

    /// Twelve bits a coefficient, lowest bit first.
    pub(super) fn encode(&self) -> [u8; BYTES] {
        let mut all = [0; BYTES];
        let (triples, _) = all.as_chunks_mut::<3>();
        for (bytes, [low, high]) in triples.iter_mut().zip(self.0.as_chunks().0) {
            *bytes = [*low as u8, (low >> 8 | high << 4) as u8, (high >> 4) as u8];
        }
        all
    }

    /// None where a coefficient is not below the modulus.
    pub(super) fn decode(bytes: &[u8; BYTES]) -> Option<Self> {
        let read = Self::read(bytes);
        read.0.iter().all(|coefficient| *coefficient < Q).then_some(read)
    }

    /// Takes bytes that are known to be an encoding.
    pub(super) fn read(bytes: &[u8; BYTES]) -> Self {
        let mut all = [0; LEN];
        let (pairs, _) = all.as_chunks_mut::<2>();
        for (pair, [low, middle, high]) in pairs.iter_mut().zip(bytes.as_chunks().0) {
            let [low, middle, high] = [low, middle, high].map(|byte| u16::from(*byte));
            *pair = [low | (middle & 15) << 8, middle >> 4 | high << 4];
        }
        Self(all)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    fn element(number: u8) -> Element {
        Element::expand(&[number; 32])
    }

    fn constant(value: u16) -> Element {
        Element([value; LEN])
    }

    #[test]
    fn sums_and_differences_are_those_of_residues() {
        let (a, b) = (element(1), element(2));
        let (sum, difference) = (a.plus(&b), a.minus(&b));
        for at in 0..LEN {
            let [a, b] = [a.0[at], b.0[at]].map(u32::from);
            assert_eq!(u32::from(sum.0[at]), (a + b) % 3329);
            assert_eq!(u32::from(difference.0[at]), (a + 3329 - b) % 3329);
        }
        assert!(sum.minus(&b) == a && difference.plus(&b) == a);
        let (zero, one, most) = (constant(0), constant(1), constant(Q - 1));
        assert!(most.plus(&one) == zero && zero.minus(&one) == most);
        assert!(most.plus(&most) == constant(Q - 2) && most.minus(&most) == zero);
        assert!(zero.plus(&zero) == zero && zero.minus(&most) == one);
    }

    #[test]
    fn a_vector_has_one_encoding() {
        let some = element(3);
        assert!(Element::decode(&some.encode()).unwrap() == some);
        assert_eq!(constant(0xabc).encode()[..3], [0xbc, 0xca, 0xab]);
        // 3328 is the last residue.
        let most = constant(Q - 1).encode();
        assert!(Element::decode(&most).is_some());
        for place in [0, 1, LEN - 1] {
            let mut above = constant(Q - 1);
            above.0[place] = Q;
            assert!(Element::decode(&above.encode()).is_none(), "{place}");
        }
        assert!(Element::decode(&[0xff; BYTES]).is_none());
    }

    #[test]
    fn the_hash_reaches_all_residues_about_equally_often() {
        let mut counts = [0u32; Q as usize];
        for number in 0..=255 {
            element(number).0.iter().for_each(|at| counts[usize::from(*at)] += 1);
        }
        // 59.06 on average, of deviation 7.7; the seeds are fixed.
        assert!(counts.iter().all(|count| (20..110).contains(count)));
        let mean = f64::from((256 * LEN) as u32) / f64::from(Q);
        let square = |count: &u32| (f64::from(*count) - mean).powi(2) / mean;
        let chi: f64 = counts.iter().map(square).sum();
        assert!((chi - 3328.0).abs() < 5.0 * (2.0 * 3328.0f64).sqrt(), "{chi}");
    }

    /// Computed with `openssl enc -aes-256-ecb` and integers of Python.
    #[test]
    fn the_hash_is_pinned() {
        let start: Vec<u16> = element(7).0[..4].to_vec();
        let digest: [u8; 32] = Sha256::digest(element(7).encode()).into();
        assert_eq!(
            (start, &digest[..8]),
            (vec![2768, 759, 2121, 945], [226, 46, 61, 92, 75, 175, 190, 90].as_slice())
        );
    }
}
