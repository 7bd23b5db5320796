//! Bodies of the fuzz targets of this crate. Each panics when an invariant breaks.

use ring::simd::Level;
use ring::{Bits, Random};
use wire::{Message, Role, Segment};
use zeroize::Zeroizing;

use crate::base::lattice::{Capsules, Keys};
use crate::base::{Choices as BaseChoices, Offer};
use crate::cot::proof::{TreeChallenge, challenge_layout, prove};
use crate::cot::setup::{TreeSums, sums_layout};
use crate::cot::softspoken::{Corrections, Field, corrections_layout};
use crate::ideal::deal_pads;
use crate::job::{Entry, Job};
use crate::measure::Extension;
use crate::one_of_n::{Choices, Masked, Table, choices_layout, choose, masked_layout, respond};
use crate::rot::Column;
use crate::session::{Domain, SessionId};

/// Points of a base OT, their number from the first byte: what decodes has
/// exactly one encoding.
///
/// # Panics
/// When it has another.
pub fn points(data: &[u8]) {
    let Some((count, body)) = data.split_first() else { return };
    let count = usize::from(count % 5);
    let mut again = Vec::new();
    match (Offer::decode(body, &count), BaseChoices::decode(body, &count)) {
        (Ok(offer), Ok(choices)) => {
            offer.encode(&mut again);
            assert_eq!(again, body);
            again.clear();
            choices.encode(&mut again);
            assert_eq!(again, body);
        }
        (offer, choices) => assert!(offer.is_err() && choices.is_err()),
    }
}

/// Masked keys and capsules of base OTs, their number from the first byte: what decodes has exactly
/// one encoding.
///
/// # Panics
/// When it has another.
pub fn kem(data: &[u8]) {
    let Some((count, body)) = data.split_first() else { return };
    let (count, mut again) = (usize::from(count % 3), Vec::new());
    if let Ok(keys) = Keys::decode(body, &count) {
        keys.encode(&mut again);
        assert_eq!(again, body);
        again.clear();
    }
    let capsules = Capsules::decode(body, &count);
    assert_eq!(
        capsules.is_ok(),
        Capsules::bounds(&count) == (body.len() as u64, body.len() as u64)
    );
    if let Ok(capsules) = capsules {
        capsules.encode(&mut again);
        assert_eq!(again, body);
    }
}

/// Both messages of a 1-of-n OT, the sums and the challenge of a setup and the corrections of an
/// extension, the widths from the first bytes: whatever decodes is answered and finished without
/// complaint, but that neither challenge nor corrections are those of a peer that follows the protocol.
///
/// # Panics
/// When it is not.
pub fn ot_messages(data: &[u8]) {
    let Some(([count, choice, value, kind], body)) = data.split_first_chunk::<4>() else { return };
    let bits = u32::from(value % 64) + 1;
    let job = Job {
        count: usize::from(count % 16),
        choice_bits: u32::from(choice % 4) + 1,
        entry: match kind % 3 {
            0 => Entry::Word(bits),
            1 => Entry::Bits(bits % 16 + 1),
            _ => Entry::Pair(bits, 65 - bits),
        },
    };
    let jobs = [job];
    let (sender, receiver) = deal_pads(&mut Random::seeded(1), &jobs);
    let zero = || Column {
        planes: vec![Bits::zeros(job.count); job.entry.planes()],
        words: job.entry.words().map(|_| vec![0; job.count]).collect(),
    };
    if let Ok(choices) = Choices::decode(body, &choices_layout(&jobs)) {
        let table = Table((0..job.entries()).map(|_| zero()).collect());
        assert!(respond(sender, vec![table], &choices).is_ok());
    }
    if let Ok(masked) = Masked::decode(body, &masked_layout(&jobs)) {
        let first = vec![Bits::zeros(job.count); job.choice_bits as usize];
        let chooser = choose(receiver, &[first]);
        assert!(chooser.and_then(|(chooser, _)| chooser.finish(masked)).is_ok());
    }
    let sums: Vec<Segment> = sums_layout().to_vec();
    assert_eq!(TreeSums::decode(body, &sums).is_ok(), body.len() as u64 == sums[0].len());
    let field = Field::Gf4;
    if let Ok(challenge) = TreeChallenge::decode(body, &challenge_layout(field)) {
        let domain = Domain::new(SessionId([0; 32]), Role::Server);
        let trees = vec![Zeroizing::new(vec![1; 1 << field.bits()]); field.trees()];
        assert!(prove(&domain, field, 1, &trees, challenge).is_err());
    }
    if let Ok(corrections) = Corrections::decode(body, &corrections_layout(field, 1)) {
        let mut both = Extension::new([Level::best(); 2], field, &mut Random::seeded(1));
        assert!(both.send(1, corrections, &mut Vec::new()).is_err());
    }
}

#[cfg(test)]
mod tests {
    use ring::mutate::replay;

    const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

    #[test]
    fn points_stand_their_corpus() {
        replay(&format!("{CORPUS}/ot_points"), 100_000, super::points);
    }

    #[test]
    fn kem_messages_stand_their_corpus() {
        replay(&format!("{CORPUS}/ot_kem"), 20_000, super::kem);
    }

    #[test]
    fn ot_messages_stand_their_corpus() {
        replay(&format!("{CORPUS}/ot_messages"), 100_000, super::ot_messages);
    }
}
