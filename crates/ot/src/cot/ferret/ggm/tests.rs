//! Trees of both parties, the check of them, and the search for Delta.

use super::*;
use aes::Aes128Enc;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use ring::Random;
use wire::Role;

use crate::session::SessionId;

const DOMAIN: Domain = Domain::new(SessionId([6; 32]), Role::Server);

/// Sizes with one tree a group, several, and a group that is not full.
#[test]
fn one_leaf_of_each_tree_differs_by_delta() {
    for (depth, trees) in [(4, 1), (5, 37), (10, 11), (13, 3)] {
        check(depth, trees, &mut Random::seeded(depth as u64));
    }
}

fn check(depth: usize, trees: usize, rng: &mut Random) {
    let (forest, delta) = (Forest::new(DOMAIN, rng.block(), depth), rng.block() | 1);
    let seeds: Vec<u128> = (0..trees * depth).map(|_| rng.block()).collect();
    let choices: Vec<u8> = seeds.iter().map(|_| rng.word() as u8 & 1).collect();
    let opened = seeds.iter().zip(&choices).map(|(q, c)| q ^ (delta & spread(*c)));
    let opened: Vec<u128> = opened.collect();
    let (mut q, mut t) = (vec![0; trees << depth], vec![0; trees << depth]);
    let (mut sent, mut sums) = (vec![0; trees * depth], [vec![0; trees], vec![0; trees]]);
    let first = 1000;
    forest.grow(first, delta, &seeds, &mut q, &mut sent, &mut sums[0]);
    forest.puncture(first, &opened, &choices, &mut t, &sent, &mut sums[1]);
    assert_eq!(sums[0], sums[1]);
    let bits = choices.chunks(depth);
    for ((q, t), bits) in q.chunks(1 << depth).zip(t.chunks(1 << depth)).zip(bits) {
        let hidden = bits.iter().fold(0, |at, bit| 2 * at + usize::from(1 - bit));
        for (at, (q, t)) in q.iter().zip(t).enumerate() {
            assert_eq!((q ^ t, q & 1), (if at == hidden { delta } else { 0 }, 0));
        }
        let sum = q.iter().fold(0, |sum, q| sum ^ q);
        assert_eq!(sum, delta & CLEAR);
    }
}

#[test]
fn sigma_is_an_orthomorphism() {
    let x = Random::seeded(1).block();
    let (high, low) = (x >> 64, x & u128::from(u64::MAX));
    assert_eq!(sigma(x), ((high ^ low) << 64) | high);
    assert_eq!(sigma(x) ^ x, (low << 64) | (high ^ low));
}

/// Blocks of this many bits, few enough to search all of them.
const TOY: u32 = 20;
/// Levels of which the toy's receiver knows `H(x xor Delta)`.
const KNOWN: usize = 256;

/// `H` on toy blocks: four Feistel rounds under a key in the place of AES.
fn toy(key: u128, x: u32) -> u32 {
    let half = TOY / 2;
    let mask = (1 << half) - 1;
    let sigma = (((x >> half) ^ x) & mask) << half | x >> half;
    let cipher = Aes128Enc::new(&key.to_le_bytes().into());
    let round = |number: u32, right: u32| {
        let mut block = (u128::from(number) << 32 | u128::from(right)).to_le_bytes().into();
        cipher.encrypt_block(&mut block);
        u32::from_le_bytes([block[0], block[1], block[2], block[3]]) & mask
    };
    let (mut left, mut right) = (sigma >> half, sigma & mask);
    for number in 0..4 {
        (left, right) = (right, left ^ round(number, right));
    }
    (left << half | right) ^ sigma
}

/// Tries to find Delta from `H(x xor Delta)` of known `x`, with so many evaluations of `H`, each
/// level under its `key`. A guess is compared with all levels of its key.
fn attack(key: impl Fn(usize) -> u128, known: &[(u32, u32)], evaluations: u32, delta: u32) -> bool {
    let one_key = key(0) == key(1);
    (0..evaluations).any(|guess| {
        let level = if one_key { 0 } else { guess as usize % known.len() };
        let hash = toy(key(level), guess);
        let under = if one_key { known } else { &known[level..=level] };
        under.iter().any(|(x, seen)| *seen == hash && x ^ guess == delta)
    })
}

#[test]
fn a_key_for_each_level_leaves_nothing_to_compare_a_guess_with() {
    let (mut found, mut trials) = ([0, 0], 0);
    let mut rng = Random::seeded(20);
    while trials < 20 {
        trials += 1;
        let (refill, delta) = (rng.block(), rng.word() as u32 & ((1 << TOY) - 1) | 1);
        let keys = [|_: usize, key: u128| key, |level: usize, key: u128| key ^ level as u128];
        for (form, found) in keys.iter().zip(&mut found) {
            let key = |level: usize| form(level, refill);
            let level = |level: usize| {
                let x = rng.word() as u32 & ((1 << TOY) - 1);
                (x, toy(key(level), x ^ delta))
            };
            let known: Vec<(u32, u32)> = (0..KNOWN).map(level).collect();
            // Twice what the attack on one key takes on average.
            let evaluations = 2 * (1 << TOY) / KNOWN as u32;
            *found += u32::from(attack(key, &known, evaluations, delta));
        }
    }
    assert!(found[0] >= 12, "one key: {found:?}");
    assert!(found[1] <= 1, "a key for each: {found:?}");
}

#[test]
fn every_level_of_every_tree_and_its_tags_have_a_key_of_their_own() {
    let expander = |depth, first| Expander::new(Forest::new(DOMAIN, 7, depth), first);
    let empty = |tree, level| {
        let mut expander = expander(13, tree);
        (1..=level).for_each(|level| expander.enter(level));
        expander.empty(level)[0]
    };
    let trees = [0, 1, 2, 255, 256, 257, 1 << 20];
    let all: Vec<u128> =
        trees.iter().flat_map(|tree| (1..=13).map(move |level| empty(*tree, level))).collect();
    let distinct: std::collections::BTreeSet<u128> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len());
    for (depth, room) in [(12, 2), (11, 4), (10, 8)] {
        let mut expander = expander(depth, 300);
        for level in 1..=depth {
            expander.enter(level);
            let wanted: Vec<u128> = (300..300 + room).map(|tree| empty(tree, level)).collect();
            assert_eq!(expander.empty(level)[..room], wanted);
        }
    }
}

/// One tree of a sender that cheats, at a receiver whose position follows from `choices`.
struct Cheat {
    forest: Forest,
    delta: u128,
    /// The sender's blocks `q`.
    seeds: Vec<u128>,
    sent: Vec<u128>,
    /// The weighted sum of the tags that the sender claims.
    sum: u128,
}

impl Cheat {
    const DEPTH: usize = 5;

    fn honest(rng: &mut Random) -> Self {
        let forest = Forest::new(DOMAIN, rng.block(), Self::DEPTH);
        let (delta, seeds) = (rng.block() | 1, (0..Self::DEPTH).map(|_| rng.block()).collect());
        let mut cheat = Self { forest, delta, seeds, sent: vec![0; Self::DEPTH], sum: 0 };
        let mut sums = [0];
        let mut leaves = [0; 1 << Self::DEPTH];
        forest.grow(0, delta, &cheat.seeds, &mut leaves, &mut cheat.sent, &mut sums);
        [cheat.sum] = sums;
        cheat
    }

    /// The leaves of a receiver with these choice bits, and whether it is content with them.
    fn receive(&self, choices: &[u8]) -> (Vec<u128>, bool) {
        let open = |(q, c): (&u128, &u8)| q ^ (self.delta & spread(*c));
        let opened: Vec<u128> = self.seeds.iter().zip(choices).map(open).collect();
        let (mut leaves, mut sums) = (vec![0; 1 << Self::DEPTH], [0]);
        self.forest.puncture(0, &opened, choices, &mut leaves, &self.sent, &mut sums);
        (leaves, sums == [self.sum])
    }

    /// The choice bits of all positions, and the bits of the position from the first level on.
    fn positions() -> impl Iterator<Item = Vec<u8>> {
        (0..1u8 << Self::DEPTH).map(|at| (0..Self::DEPTH).map(|level| at >> level & 1).collect())
    }
}

/// What a sender gains from an error in the correction of a level when nobody looks: the receiver's
/// leaves, and with them all that is computed from them, are wrong in a way that depends on its
/// position.
#[test]
fn an_error_that_is_not_checked_tells_positions_apart() {
    let mut rng = Random::seeded(5);
    let honest = Cheat::honest(&mut rng);
    let right: Vec<_> = Cheat::positions().map(|at| honest.receive(&at)).collect();
    assert!(right.iter().all(|(_, content)| *content));
    for level in 1..Cheat::DEPTH {
        let mut cheat = Cheat { sent: honest.sent.clone(), ..Cheat::honest(&mut rng) };
        (cheat.forest, cheat.delta) = (honest.forest, honest.delta);
        (cheat.seeds, cheat.sum) = (honest.seeds.clone(), honest.sum);
        cheat.sent[level - 1] ^= 1 << 77;
        let errors = |at: &Vec<u8>, right: &Vec<u128>| -> Vec<bool> {
            let wrong = cheat.receive(at).0;
            wrong.iter().zip(right).map(|(wrong, right)| wrong != right).collect()
        };
        let places: Vec<_> =
            Cheat::positions().zip(&right).map(|(at, (right, _))| errors(&at, right)).collect();
        let distinct: std::collections::BTreeSet<_> = places.iter().collect();
        assert!(distinct.len() >= 1 << level, "the place tells the first {level} bits");
        // The check refuses all of them.
        assert!(Cheat::positions().all(|at| !cheat.receive(&at).1), "level {level}");
    }
}

/// A sender may fit its tags to a position that it guesses. It passes there, and at the leaf beside
/// it, which only the last level tells apart; the leaves are the same for both.
#[test]
fn a_sender_that_guesses_a_position_passes_there_alone() {
    let mut rng = Random::seeded(6);
    for (level, guess) in (1..Cheat::DEPTH).zip(Cheat::positions().skip(9)) {
        let mut cheat = Cheat::honest(&mut rng);
        cheat.sent[level - 1] ^= 1 << 99;
        let (mut leaves, _) = cheat.receive(&guess);
        let place = |at: &[u8]| at.iter().fold(0, |place, bit| 2 * place + usize::from(1 - bit));
        leaves[place(&guess)] ^= cheat.delta;
        let (mut tags, mut expander) = (Tags::new(cheat.forest), Expander::new(cheat.forest, 0));
        (1..Cheat::DEPTH).for_each(|level| expander.enter(level));
        cheat.sent[Cheat::DEPTH - 1] = tags.make(&mut expander, &leaves)[0];
        cheat.sum = tags.weigh(0, 0, &cheat.sent);
        for at in Cheat::positions() {
            let (mut received, content) = cheat.receive(&at);
            assert_eq!(content, place(&at) | 1 == place(&guess) | 1, "level {level}");
            if content {
                received[place(&at)] ^= cheat.delta;
                assert_eq!(received, leaves);
            }
        }
    }
}
