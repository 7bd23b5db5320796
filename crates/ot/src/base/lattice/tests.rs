//! Both ends of the lattice half alone.

use super::*;
use crate::session::SessionId;
use ring::Random;

fn domain(session: u8) -> Domain {
    Domain::new(SessionId([session; 32]), Role::Client)
}

fn bits() -> Vec<u8> {
    (0..COUNT).map(|i| (i % 3 == 0).into()).collect()
}

fn chosen(session: u8) -> (Chooser, Keys) {
    choose(&domain(session), &mut Random::seeded(2), &bits())
}

fn offered(session: u8, keys: &Keys) -> ([Secrets; 2], Capsules, [u8; 32]) {
    offer(&domain(session), &mut Random::seeded(1), keys).unwrap()
}

/// The OTs in which the chooser's secret is the offerer's of the chosen side.
fn agreed(secrets: &[Secrets; 2], got: &Secrets) -> Vec<bool> {
    let fits = |(at, bit): (usize, u8)| secrets[usize::from(bit)][at] == got[at];
    bits().into_iter().enumerate().map(fits).collect()
}

#[test]
fn the_chosen_secret_and_no_other() {
    let (chooser, keys) = chosen(0);
    let (secrets, capsules, offerers) = offered(0, &keys);
    let (got, choosers) = chooser.finish(&domain(0), &capsules).unwrap();
    assert!(agreed(&secrets, &got).into_iter().all(|fits| fits));
    assert_eq!(offerers, choosers);
    for (at, bit) in bits().into_iter().enumerate() {
        assert!(secrets[usize::from(1 - bit)][at] != got[at]);
    }
    let mut all: Vec<_> = secrets.iter().flat_map(|side| side.iter()).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 2 * COUNT);
}

/// A key is the chooser's own on one side only, and only in its session, direction and place.
#[test]
fn a_masked_key_opens_to_the_public_key_on_its_side() {
    let domain = domain(0);
    let pair = generate_key_pair([5; 64]);
    let public = pair.public_key().as_slice();
    for side in [0, 1] {
        let masked = Masked::new(&domain, (9, side), public, &[6; TWEAK]);
        let open = |domain: &Domain, index, side| {
            masked.open(domain, (index, side), &masked.digest(domain, index))
        };
        assert!(open(&domain, 9, side) == *public);
        let other = open(&domain, 9, 1 - side);
        assert_eq!(other[VECTOR..], public[VECTOR..], "one matrix");
        let same = other.iter().zip(public).filter(|(a, b)| a == b).count();
        assert!(same < VECTOR / 100 + MATRIX, "{same} equal bytes");
        let places = [
            open(&domain, 8, side),
            open(&self::domain(1), 9, side),
            open(&Domain::new(SessionId([0; 32]), Role::Server), 9, side),
        ];
        assert!(places.iter().all(|place| place != public && *place != other));
    }
}

/// Whatever of a masked key is changed on the way, no side of that OT is the chooser's any more, and
/// all others are.
#[test]
fn a_changed_key_spoils_its_ot() {
    for place in [0, VECTOR - 2, VECTOR, VECTOR + MATRIX, MASKED - 1] {
        let (chooser, keys) = chosen(0);
        let mut body = Vec::new();
        keys.encode(&mut body);
        body[7 * MASKED + place] ^= 1;
        let changed = Keys::decode(&body, &COUNT).unwrap();
        let (secrets, capsules, offerers) = offered(0, &changed);
        let (got, choosers) = chooser.finish(&domain(0), &capsules).unwrap();
        let fits = agreed(&secrets, &got);
        assert!((0..COUNT).all(|at| fits[at] == (at != 7)), "{place}");
        assert!(secrets[0][7] != got[7] && secrets[1][7] != got[7]);
        assert!(offerers != choosers);
    }
}

/// A capsule that was changed gives the chooser another secret, and no error that tells its choice.
#[test]
fn a_changed_capsule_spoils_its_side() {
    for side in [0, 1] {
        let (chooser, keys) = chosen(0);
        let (secrets, mut capsules, offerers) = offered(0, &keys);
        for pair in &mut capsules.0 {
            pair[side][77] ^= 4;
        }
        let (got, choosers) = chooser.finish(&domain(0), &capsules).unwrap();
        let wanted: Vec<bool> = bits().iter().map(|bit| usize::from(*bit) != side).collect();
        assert_eq!(agreed(&secrets, &got), wanted);
        assert!(offerers != choosers);
    }
}

#[test]
fn keys_and_capsules_have_one_encoding_and_a_number() {
    let (chooser, keys) = chosen(0);
    let (_, capsules, _) = offered(0, &keys);
    let (mut body, mut bodies) = (Vec::new(), Vec::new());
    keys.encode(&mut body);
    capsules.encode(&mut bodies);
    assert_eq!((body.len(), bodies.len()), (COUNT * 1232, COUNT * 2176));
    assert!(Keys::decode(&body, &COUNT).unwrap() == keys);
    assert!(Capsules::decode(&bodies, &COUNT).unwrap() == capsules);
    for (short, count) in [(&body[1..], COUNT), (&body[..], COUNT - 1), (&body[..0], 1)] {
        assert!(matches!(Keys::decode(short, &count), Err(Error::Peer { .. })));
    }
    for (short, count) in [(&bodies[1..], COUNT), (&bodies[CAPSULE..], COUNT), (&bodies[..0], 1)] {
        assert!(matches!(Capsules::decode(short, &count), Err(Error::Peer { .. })));
    }
    // Twelve bits that are no residue.
    body[3..5].copy_from_slice(&[0x01, 0xfd]);
    assert!(matches!(Keys::decode(&body, &COUNT), Err(Error::Peer { .. })));
    let few = Keys(keys.0[1..].to_vec());
    assert!(offer(&domain(0), &mut Random::seeded(1), &few).is_err());
    let few = Capsules(capsules.0[1..].to_vec());
    assert!(chooser.finish(&domain(0), &few).is_err());
}

/// What the offerer sees has residues in the place of residues whatever the choice: their mean is that of
/// uniform ones, for both choices.
#[test]
fn masked_keys_look_alike_for_both_choices() {
    for bit in [0, 1] {
        let (_, keys) = choose(&domain(3), &mut Random::seeded(4), &[bit; COUNT]);
        let mut body = Vec::new();
        keys.encode(&mut body);
        let vectors =
            body.as_chunks::<MASKED>().0.iter().flat_map(|key| key[..VECTOR].as_chunks::<3>().0);
        let residues = vectors.flat_map(|[low, middle, high]| {
            let [low, middle, high] = [low, middle, high].map(|byte| u32::from(*byte));
            [low | (middle & 15) << 8, middle >> 4 | high << 4]
        });
        let (sum, count) =
            residues.fold((0, 0), |(sum, count), one| (sum + u64::from(one), count + 1));
        assert_eq!(count, 768 * COUNT as u64);
        // 1664 on average, of deviation 961 / sqrt(98304).
        let mean = sum as f64 / count as f64;
        assert!((mean - 1664.0).abs() < 5.0 * 961.0 / f64::sqrt(98304.0), "{mean}");
    }
}
