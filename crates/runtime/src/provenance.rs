//! What a server says of its model beside the plan, and how it is offered.
//!
//! The offer is the plan's canonical JSON with one field before it, or two: the commitment to the
//! model's file, always as many digits, and the model card where there is one. Both parties hash
//! all of it and compare.

use sha2::{Digest, Sha256};
use wire::{Error, Result};

/// Most bytes of a model card.
pub const MOST_CARD: usize = 4096;
/// In place of a commitment that there is not.
const NONE: [u8; 32] = [0; 32];

/// What a server says of its model: nothing that its client could check by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The commitment to the file of the model, weights included; none of a model that was never
    /// in a file, or in one without a salt.
    pub commitment: Option<[u8; 32]>,
    /// The model card, at most [`MOST_CARD`] bytes; nobody has verified its signature here.
    pub card: Option<String>,
}

impl Provenance {
    /// Returns what is offered: the canonical JSON of a plan, with these fields before its own.
    pub(crate) fn offer(&self, plan: &str) -> String {
        let commitment = hexadecimal(&self.commitment.unwrap_or(NONE));
        let card = self.card.as_ref().map_or(String::new(), |card| {
            // Texts always have a JSON form.
            format!("\"card\":{},", serde_json::to_string(card).unwrap_or_default())
        });
        let plan = plan.strip_prefix('{').unwrap_or_default();
        format!("{{\"commitment\":\"{commitment}\",{card}{plan}")
    }

    /// Returns the SHA-256 of [`Provenance::offer`].
    pub(crate) fn digest(&self, plan: &str) -> [u8; 32] {
        Sha256::digest(self.offer(plan)).into()
    }

    /// Checks what the fields of an offer say.
    pub(crate) fn read(commitment: Option<&str>, card: Option<String>) -> Result<Self> {
        let bad = |got: &str| Error::peer("a commitment and a card", got);
        let commitment =
            commitment.map(|digits| digest_of(digits).ok_or_else(|| bad("other digits")));
        let commitment = commitment.transpose()?.filter(|commitment| *commitment != NONE);
        if card.as_ref().is_some_and(|card| card.len() > MOST_CARD) {
            return Err(bad("a longer card"));
        }
        Ok(Self { commitment, card })
    }
}

/// A digest as people compare it: 64 hexadecimal digits in lower case.
pub fn hexadecimal(digest: &[u8; 32]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads 64 hexadecimal digits, `None` for anything else.
pub fn digest_of(digits: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (place, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_back() {
        let digest = [0xa7; 32];
        assert_eq!(digest_of(&hexadecimal(&digest)), Some(digest));
        for bad in ["", "a7", &"g".repeat(64), &"\u{e9}".repeat(32), &"a7".repeat(33)] {
            assert_eq!(digest_of(bad), None);
        }
    }

    #[test]
    fn zeros_stand_for_no_commitment_and_cards_are_bounded() {
        let of = |digits: &str, card: usize| Provenance::read(Some(digits), Some("c".repeat(card)));
        assert_eq!(of(&"0".repeat(64), 1).map(|read| read.commitment), Ok(None));
        assert_eq!(of(&"0a".repeat(32), 4096).map(|read| read.commitment), Ok(Some([10; 32])));
        assert!(of("", 1).is_err() && of(&"0".repeat(64), 4097).is_err());
    }
}
