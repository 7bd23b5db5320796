//! Clients that keep to the protocol, clients that do not, and a server that does not.

mod layer;
mod parts;

use gc::tagged::{ALPHA_BITS, BitTags, MacKeys};
use ot::ideal::deal;
use ot::{ReceiverBatch, SenderBatch, SessionId, Source, setup_both};
use ring::word::{mask, signed};
use ring::{Bits, Random};
use wire::testing::{Outcome, Tamper, run_pair, run_tampered};
use wire::{Channel, Cost, Error, Result, Role};

use super::check::{finish_client, receive_seed, shown_zero, sums_client};
use super::combine::ZERO;
use super::values::ones;
use super::*;
use crate::garbled::checked::{self, Checked};
use crate::garbled::{Clip, Function};
use crate::share::Share;

/// Values that go in and come out of the public layer, the bits of shares and of results.
const INPUTS: usize = 30;
const OUTPUTS: usize = 24;
const K: u32 = 20;
const P: u32 = 26;
/// Low bits that truncation leaves out.
const SKIP: u32 = 8;
const RELU: Function = Function { drop: 0, floor: false, clip: Some(Clip { low: 0, saturate: 8 }) };

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Client {
    Honest,
    /// Commits to its share of value `.0` plus `.1`.
    Shifts(usize, u64),
    /// Sends another correction for bit `.1` of value `.0`, and goes on as if it had not.
    Corrects(usize, u32),
    /// Commits to another sum of tags in combination `.0`.
    Tags(usize),
    /// Opens combination `.0` one higher, with the tag it would have if alpha were 1.
    Opens(usize),
    /// Opens another nonce than it committed with.
    Nonce,
}

/// A layer whose weights both know, of inputs to which the client has committed, then a ReLU.
struct Case {
    matrix: Vec<Vec<i64>>,
    inputs: Vec<u64>,
    /// What the layer's outputs stand for, `K` bits.
    results: Vec<i64>,
    relu: Checked,
}

/// What is left of a run: the client's results, the server's and their keys.
type Left = (Outcome<Result<Values>>, Outcome<Result<(Share, Keys)>>);

impl Case {
    fn new(seed: u64) -> Self {
        let mut rng = Random::seeded(seed);
        let weight = |word: u64| (word % 255) as i64 - 127;
        let matrix = (0..OUTPUTS).map(|_| (0..INPUTS).map(|_| weight(rng.word())).collect());
        let matrix = matrix.collect();
        let inputs = rng.uniform(INPUTS, K);
        let results = rng.uniform(OUTPUTS, K).iter().map(|word| signed(*word, K)).collect();
        let relu = Checked::map(OUTPUTS, (K, SKIP), K - SKIP, RELU, P).unwrap();
        Self { matrix, inputs, results, relu }
    }

    fn layer(&self, x: &[u128]) -> Vec<u128> {
        let product = |row: &Vec<i64>| {
            let terms = row.iter().zip(x).map(|(w, x)| (i128::from(*w) as u128).wrapping_mul(*x));
            terms.fold(0u128, u128::wrapping_add)
        };
        self.matrix.iter().map(product).collect()
    }

    /// The client's shares.
    fn products(&self) -> Vec<u64> {
        let x: Vec<u128> = self.inputs.iter().map(|x| u128::from(*x)).collect();
        self.layer(&x).into_iter().map(|p| p as u64 & mask(K)).collect()
    }

    /// The server's shares.
    fn others(&self) -> Share {
        let rows = self.results.iter().zip(self.products());
        Share::new(rows.map(|(y, p)| (*y as u64).wrapping_sub(p)).collect(), K)
    }

    /// Correlations for the inputs, the outputs and the masks.
    const fn ots() -> [usize; 3] {
        let k = K as usize;
        [k * INPUTS, k * OUTPUTS, COMBINATIONS * ALPHA_BITS as usize]
    }

    fn plans() -> [BitTags; 3] {
        let tags = |count, bits, modulus| BitTags::new(count, bits, modulus).unwrap();
        [
            tags(INPUTS, K, K + ALPHA_BITS),
            tags(OUTPUTS, K, K + ALPHA_BITS),
            tags(COMBINATIONS, ALPHA_BITS, ALPHA_BITS),
        ]
    }

    fn cost(&self) -> Cost {
        let [inputs, outputs, masks] = Self::plans();
        commit_cost(K as usize, INPUTS)
            .then(tag_cost(&inputs))
            .then(commit_cost(K as usize, OUTPUTS))
            .then(tag_cost(&outputs))
            .then(self.relu.cost())
            .then(tag_cost(&masks))
            .then(check_cost(K + ALPHA_BITS, None))
    }

    fn client(&self, ch: &mut Channel, mut ots: ReceiverBatch, does: Client) -> Result<Values> {
        let mut rng = Random::seeded(77);
        let [inputs, outputs, masks] = Self::plans();
        let mut take = |count| ots.split_off(count);
        let [first, second, third] = Self::ots().map(&mut take);
        let committed = commit(ch, first, planes(&self.inputs))?;
        let x = tag_client(ch, &inputs, &committed)?;
        let p = x.linear(|x| self.layer(x));
        let mut words: Vec<u64> = p.values().iter().map(|word| *word as u64 & mask(K)).collect();
        assert_eq!(words, self.products());
        if let Client::Shifts(at, by) = does {
            words[at] = words[at].wrapping_add(by) & mask(K);
        }
        let honest = planes(&words);
        if let Client::Corrects(at, bit) = does {
            words[at] ^= 1 << bit;
        }
        let mut committed = commit(ch, second, planes(&words))?;
        committed.planes = honest;
        let bits = tag_client(ch, &outputs, &committed)?;
        let results = checked::client(ch, &self.relu, &committed)?;
        let random = random(third, ALPHA_BITS as usize, COMBINATIONS)?;
        let masks = tag_client(ch, &masks, &random)?;
        let relations = [p.less(&bits)?];
        match does {
            Client::Honest => check_client(ch, &relations, &masks, None, &mut rng)?,
            _ => cheat(ch, &relations[0], &masks, does, &mut rng)?,
        }
        Ok(results)
    }

    fn server(&self, ch: &mut Channel, mut ots: SenderBatch) -> Result<(Share, Keys)> {
        let mut rng = Random::seeded(78);
        let keys = MacKeys::new(*ots.delta(), &mut rng);
        let [inputs, outputs, masks] = Self::plans();
        let mut take = |count| ots.split_off(count);
        let [first, second, third] = Self::ots().map(&mut take);
        let committed = accept(ch, first, K as usize, INPUTS)?;
        let x = tag_server(ch, &inputs, &keys, &committed, &mut rng)?;
        let p = x.linear(|x| self.layer(x));
        let committed = accept(ch, second, K as usize, OUTPUTS)?;
        let bits = tag_server(ch, &outputs, &keys, &committed, &mut rng)?;
        let others = self.others();
        let (share, tags) =
            checked::server(ch, &self.relu, &keys, &committed, (&others, &[]), &mut rng)?;
        let random = accept_random(third, ALPHA_BITS as usize, COMBINATIONS)?;
        let masks = tag_server(ch, &masks, &keys, &random, &mut rng)?;
        check_server(ch, &[p.less(&bits)?], &masks, None, &keys, &mut rng)?;
        // The keys are shown to the test by the tags of ones and zeros.
        let alpha = Keys::new(vec![0], P + ALPHA_BITS).tags_of(&[1], &keys)[0];
        let mut shown = tags.betas.clone();
        shown.push(alpha);
        Ok((share, Keys::new(shown, P + ALPHA_BITS)))
    }

    fn run(&self, seed: u64, does: Client, tamper: Option<(Role, usize, Tamper)>) -> Left {
        let (sender, receiver) = deal(&mut Random::seeded(seed), Self::ots().iter().sum());
        run_tampered(tamper, |ch| self.client(ch, receiver, does), |ch| self.server(ch, sender))
    }

    /// Whether results, tags and costs are as they should be.
    fn holds(&self, (client, server): Left) {
        assert_eq!((client.cost, server.cost), (self.cost(), self.cost()));
        let (values, (share, keys)) = (client.value.unwrap(), server.value.unwrap());
        let others = self.others();
        let (alpha, betas) = keys.betas.split_last().unwrap();
        for (at, beta) in betas.iter().enumerate() {
            // Low bits of either share are left out before they are added up.
            let sum = (self.products()[at] >> SKIP) + (others.words()[at] >> SKIP);
            let wanted = signed(sum & mask(K - SKIP), K - SKIP).clamp(0, 255) as u64;
            let got = share.words()[at].wrapping_add(values.values[at] as u64) & mask(P);
            assert_eq!(got, wanted);
            let tag = alpha.wrapping_mul(values.values[at]).wrapping_add(*beta);
            assert_eq!(values.tags[at], tag & ones(P + ALPHA_BITS));
        }
    }
}

fn planes(words: &[u64]) -> Vec<Bits> {
    (0..K).map(|bit| Bits::of_words(words, bit)).collect()
}

/// The check of a client that opens what it should not.
fn cheat(
    ch: &mut Channel,
    relation: &Values,
    masks: &Values,
    does: Client,
    rng: &mut Random,
) -> Result<()> {
    let modulus = relation.modulus();
    let mut seed = receive_seed(ch)?;
    let lists = std::slice::from_ref(relation);
    let mut shown = shown_zero(&sums_client(&seed, ZERO, lists, masks, modulus)?, modulus);
    let (opened, tags) = (&mut shown.opened[0], &mut shown.tags);
    match does {
        Client::Tags(at) => tags[at] ^= 1,
        Client::Opens(at) => {
            opened[at] = (opened[at] + 1) & mask(ALPHA_BITS);
            tags[at] = tags[at].wrapping_add(1 << K) & ones(modulus);
        }
        Client::Nonce => seed.0[0] ^= 1,
        _ => {}
    }
    match finish_client(ch, &seed, vec![shown], rng) {
        // A client that cheats does not stop where an honest one would.
        Err(Error::Peer { .. }) => {
            ch.send(&crate::bytes::Bytes::<{ wire::tags::CHECK_NONCE }>(vec![0; 32]))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

fn is_peer<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Peer { .. }))
}

#[test]
fn honest_runs_pass_for_the_cost_said() {
    for seed in 0..20 {
        let case = Case::new(seed);
        case.holds(case.run(seed + 100, Client::Honest, None));
    }
}

/// The bytes of commitments, tags, tagged circuits in three halves and the check.
#[test]
fn the_transcript_is_pinned() {
    let (client, server) = Case::new(1).run(101, Client::Honest, None);
    let line = format!("checked relu: {} {}", client.transcript, server.transcript);
    let pinned = include_str!("../../../../tests/golden/transcripts.txt");
    assert!(pinned.lines().any(|pinned| pinned == line), "not pinned: {line}");
}

#[test]
fn real_correlations_make_the_same() {
    let case = Case::new(3);
    let count: usize = Case::ots().iter().sum();
    for source in [Source::SoftSpoken8, Source::Auto] {
        let session = SessionId([9; 32]);
        let (client, server) = run_pair(
            |ch| {
                let mut rng = Random::seeded(1);
                let (_, mut ots) = setup_both(ch, &mut rng, &session, source).unwrap();
                ots.extend(ch, count).unwrap();
                let before = ch.meter().cost();
                let value = case.client(ch, ots.take(count).unwrap(), Client::Honest);
                (value, before)
            },
            |ch| {
                let mut rng = Random::seeded(2);
                let (mut ots, _) = setup_both(ch, &mut rng, &session, source).unwrap();
                ots.extend(ch, count).unwrap();
                case.server(ch, ots.take(count).unwrap())
            },
        );
        let ((value, before), whole) = (client.value, client.cost);
        assert_eq!(before.then(case.cost()).bytes(), whole.bytes());
        let cost = case.cost();
        let client = Outcome { value, cost, transcript: String::new(), frames: Vec::new() };
        case.holds((client, Outcome { cost, ..server }));
    }
}

#[test]
fn a_client_that_shifts_a_share_is_caught() {
    let case = Case::new(4);
    let shifts = [1, 1 << SKIP, 1 << (K - 1), mask(K), 3 << 10];
    for (seed, by) in shifts.into_iter().enumerate() {
        for at in [0, OUTPUTS - 1] {
            let (_, server) = case.run(seed as u64, Client::Shifts(at, by), None);
            assert!(is_peer(&server.value), "{by} at {at}");
        }
    }
}

#[test]
fn a_client_that_flips_a_top_bit_is_always_caught() {
    // A combination sees a top bit with probability 1/2; one combination would miss half of these.
    for seed in 0..40 {
        let case = Case::new(seed);
        let (_, server) =
            case.run(seed, Client::Shifts(seed as usize % OUTPUTS, 1 << (K - 1)), None);
        assert!(is_peer(&server.value), "{seed}");
    }
}

#[test]
fn a_client_that_sends_wrong_corrections_is_caught() {
    let case = Case::new(5);
    for bit in 0..K {
        let (_, server) = case.run(u64::from(bit), Client::Corrects(bit as usize, bit), None);
        assert!(is_peer(&server.value), "bit {bit}");
    }
}

#[test]
fn a_client_that_opens_something_else_is_caught() {
    let case = Case::new(6);
    for does in [
        Client::Tags(0),
        Client::Tags(COMBINATIONS - 1),
        Client::Opens(0),
        Client::Opens(17),
        Client::Nonce,
    ] {
        let (_, server) = case.run(8, does, None);
        assert!(is_peer(&server.value), "{does:?}");
    }
}

#[test]
fn a_client_that_is_silent_at_the_end_does_not_pass() {
    let case = Case::new(6);
    let (_, server) = case.run(9, Client::Honest, Some((Role::Client, 3, Tamper::Drop)));
    assert!(server.value.is_err());
}

/// The server's verdict on a client that cheats does not depend on what the server has.
#[test]
fn the_abort_does_not_depend_on_the_servers_shares() {
    for seed in 0..12 {
        let case = Case { results: Case::new(seed + 50).results, ..Case::new(7) };
        let (_, server) = case.run(1, Client::Shifts(2, 1), None);
        assert!(is_peer(&server.value));
        let (client, server) = case.run(1, Client::Honest, None);
        assert!(client.value.is_ok() && server.value.is_ok());
    }
}

/// A false word of the tags of bit 19 of the last input: the client closes before it opens its tags
/// if that bit is 1, and sees nothing wrong if it is 0.
#[test]
fn a_server_that_sends_a_false_word_learns_whether_tags_are_equal() {
    for bit in [0, 1] {
        let mut case = Case::new(8);
        let last = case.inputs.last_mut().unwrap();
        *last = *last & mask(K - 1) | bit << (K - 1);
        let (client, server) = case.run(3, Client::Honest, Some((Role::Server, 0, Tamper::Flip)));
        assert_eq!(is_peer(&client.value), bit == 1);
        assert_eq!(server.value.is_ok(), bit == 0);
        // Corrections, corrections, opening; and the nonce only if all is well.
        assert_eq!(client.frames.len(), if bit == 1 { 3 } else { 4 });
    }
}

#[test]
fn messages_that_are_tampered_with_end_in_an_error() {
    let case = Case::new(9);
    for (role, frames) in [(Role::Client, 4), (Role::Server, 6)] {
        for frame in 0..frames {
            for tamper in [Tamper::Retag, Tamper::Oversize, Tamper::Truncate, Tamper::Close] {
                let (client, server) = case.run(2, Client::Honest, Some((role, frame, tamper)));
                let last = role == Role::Client && frame + 1 == frames;
                assert!(client.value.is_err() || last, "{role:?} {frame} {tamper:?}");
                assert!(server.value.is_err(), "{role:?} {frame} {tamper:?}");
            }
        }
    }
}
