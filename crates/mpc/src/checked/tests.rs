//! A network 784-128-128-10 between honest parties, and clients that are not: correlations are real, and
//! what a server says last is looked at.

use graph::{Conv, Linear, Rounding};
use he::rlwe::Fresh;
use ot::{CotReceiver, CotSender, SessionId, Source, setup_both};
use ring::Random;
use ring::word::{mask, signed};
use wire::testing::{Outcome, run_pair};
use wire::{Channel, Cost, Error, Result, tags};

use super::*;
use crate::auth::BOUND;
use crate::garbled::Clip;
use crate::linear::coefficient::ServerWeights;
use crate::linear::coefficient::Worker;

const WIDTHS: [usize; 4] = [784, 128, 128, 10];
const SHIFTS: [u32; 3] = [12, 9, 9];
/// Bits of results.
const OUT: u32 = 12;

struct Case {
    network: Network,
    weights: Vec<ServerWeights>,
    input: Vec<i64>,
    want: Vec<i64>,
}

/// What the client ends with and what its meter had before the run; what the server ends with.
type Left = (Outcome<(Result<Vec<u64>>, Cost)>, Outcome<Result<()>>);

fn dense(at: usize) -> Linear {
    Linear {
        conv: Conv::fully_connected(WIDTHS[at], WIDTHS[at + 1]),
        accumulator_bits: OUT + SHIFTS[at],
        weight_bits: 8,
        shift: SHIFTS[at],
        rounding: Rounding::Exact,
        addend: None,
        choice: None,
        square_bits: None,
    }
}

/// A layer that reads the one before it.
fn block(from: usize, linear: &Linear, clip: Option<Clip>) -> Block<'_> {
    let input = Operand { from, sums: None };
    Block { linear, input, addend: None, out_bits: OUT, windows: None, clip }
}

impl Case {
    /// Inputs from `low` on.
    fn new(seed: u64, low: i64) -> Self {
        let mut rng = Random::seeded(seed);
        let linears = [0, 1, 2].map(dense);
        let clip = |at| (at < 2).then_some(Clip { low: 0, saturate: 8 });
        let layers: Vec<Block<'_>> = linears
            .iter()
            .enumerate()
            .collect::<Vec<_>>()
            .into_iter()
            .map(|(at, linear)| block(at, linear, clip(at)))
            .collect();
        let entered = Entered { batch: 1, count: WIDTHS[0], low, bits: 8 };
        let network = Network::new(entered, &layers, Shown::Values).unwrap();
        let input: Vec<i64> = rng.uniform(WIDTHS[0], 8).iter().map(|x| *x as i64 + low).collect();
        let (mut weights, mut values) = (Vec::new(), input.clone());
        for (at, layer) in network.layers().enumerate() {
            let (inputs, outputs, shift) = (WIDTHS[at], WIDTHS[at + 1], SHIFTS[at]);
            let weight: Vec<i32> =
                rng.uniform(inputs * outputs, 8).iter().map(|w| signed(*w, 8) as i32).collect();
            let half = 1 << (shift - 1);
            let bias = rng.uniform(outputs, 12);
            let bias: Vec<i64> = bias.iter().map(|b| signed(*b, 12) + half).collect();
            let row = |(row, bias): (&[i32], &i64)| {
                let sum: i64 = row.iter().zip(&values).map(|(w, x)| i64::from(*w) * x).sum();
                let floor = signed(((sum + bias) >> shift) as u64 & mask(OUT), OUT);
                if at < 2 { floor.clamp(0, 255) } else { floor }
            };
            values = weight.chunks(inputs).zip(&bias).map(row).collect();
            weights.push(ServerWeights::new(layer, &weight, &bias, &mut (1 << 28)).unwrap());
        }
        Self { network, weights, input, want: values }
    }

    fn run(&self, conduct: Option<&dyn Conduct>) -> Left {
        let session = SessionId([3; 32]);
        let count = self.network.ots();
        let client = |ch: &mut Channel, ots: &mut CotReceiver| {
            let worker = &mut Worker { rng: &mut Random::seeded(51), threads: 1 };
            let ots = ots.take(count)?;
            match conduct {
                None => client(ch, &self.network, ots, &self.input, worker),
                Some(conduct) => client_as(ch, &self.network, ots, &self.input, worker, conduct),
            }
        };
        let server = |ch: &mut Channel, ots: &mut CotSender| {
            let worker = &mut Worker { rng: &mut Random::seeded(52), threads: 1 };
            server(ch, &self.network, ots.take(count)?, &self.weights, None, worker)
        };
        run_pair(
            |ch| {
                let made = setup_both(ch, &mut Random::seeded(1), &session, Source::SoftSpoken8);
                let (_, mut ots) = made.unwrap();
                ots.extend(ch, count).unwrap();
                let before = ch.meter().cost();
                (client(ch, &mut ots), before)
            },
            |ch| {
                let made = setup_both(ch, &mut Random::seeded(2), &session, Source::SoftSpoken8);
                let (mut ots, _) = made.unwrap();
                ots.extend(ch, count).unwrap();
                server(ch, &mut ots)
            },
        )
    }

    /// Runs a client that is caught: the server says that it is the client's doing, and sends no result.
    fn caught(&self, conduct: &dyn Conduct) {
        let (client, server) = self.run(Some(conduct));
        assert!(matches!(&server.value, Err(Error::Peer { .. })), "{:?}", server.value);
        assert!(client.value.0.is_err());
        let sent = server.frames.iter().filter_map(|frame| frame.first());
        assert!(sent.into_iter().all(|tag| *tag != tags::RESULT));
    }
}

#[test]
fn results_are_exact_at_the_cost_that_was_planned() {
    for (seed, low) in [(1, 0), (2, -128)] {
        let case = Case::new(seed, low);
        let (client, server) = case.run(None);
        let (value, before) = client.value;
        server.value.unwrap();
        let got: Vec<i64> = value.unwrap().iter().map(|word| signed(*word, OUT)).collect();
        assert_eq!(got, case.want);
        assert!(case.want.iter().any(|want| want.abs() > 40));
        let mut all = before;
        all = all.then(case.network.cost());
        assert_eq!((all.bytes(), all.rounds), (client.cost.bytes(), client.cost.rounds));
    }
}

/// Adds to a phase of a layer.
struct Shifts(usize, usize, u64);

impl Conduct for Shifts {
    fn phases(&self, layer: usize, words: &mut [u64]) {
        if layer == self.0 {
            words[self.1] = words[self.1].wrapping_add(self.2);
        }
    }
}

/// Adds to a coefficient of a ciphertext of a layer.
struct Encrypts(usize, usize, u64);

impl Conduct for Encrypts {
    fn ciphertext(&self, layer: usize, fresh: &mut Fresh) {
        if layer == self.0 {
            fresh.body[self.1] = fresh.body[self.1].wrapping_add(self.2) & mask(52);
        }
    }
}

/// Opens something else.
struct Opens(usize, u64);

impl Conduct for Opens {
    fn opening(&self, opened: &mut [Vec<u64>]) {
        opened[self.0][5] ^= self.1;
    }
}

#[test]
fn a_client_that_opens_what_it_has_is_honest() {
    let case = Case::new(3, 0);
    let (client, server) = case.run(Some(&Honest));
    assert!(client.value.0.is_ok() && server.value.is_ok());
}

#[test]
fn clients_that_shift_their_shares_get_no_result() {
    let case = Case::new(4, 0);
    for layer in 0..3 {
        let top = 1 << (case.network.stages[layer].layer.phase_bits() - 1);
        for by in [1, 1 << 9, top] {
            case.caught(&Shifts(layer, 7, by));
        }
    }
}

#[test]
fn clients_that_encrypt_something_else_get_no_result() {
    let case = Case::new(5, 0);
    for by in [BOUND as u64 + 64, 1 << (52 - OUT - SHIFTS[1]), 1 << 51] {
        case.caught(&Encrypts(1, 3, by));
    }
}

#[test]
fn clients_that_open_something_else_get_no_result() {
    let case = Case::new(6, 0);
    for (kind, by) in [(0, 1), (0, 1 << 39), (1, 2), (2, 1)] {
        case.caught(&Opens(kind, by));
    }
}

#[test]
fn what_fits_no_parameters_is_refused() {
    let entered = Entered { batch: 1, count: WIDTHS[0], low: 0, bits: 8 };
    let wide = Linear { shift: 40, accumulator_bits: OUT + 40, ..dense(0) };
    let inexact = Linear { rounding: Rounding::Stochastic, ..dense(0) };
    let refused = |linears: &[&Linear]| {
        let layers: Vec<Block<'_>> =
            linears.iter().enumerate().map(|(at, linear)| block(at, linear, None)).collect();
        matches!(Network::new(entered, &layers, Shown::Values), Err(Error::Misuse(_)))
    };
    assert!(refused(&[]) && refused(&[&wide]) && refused(&[&inexact]) && refused(&[&dense(2)]));
    assert!(!refused(&[&dense(0), &dense(1)]));
}

/// A server may offer trees of any size, and its client plans them before it knows anything of the server.
#[test]
fn trees_larger_than_a_client_plans_unseen_are_refused() {
    let forest = |comparisons, values| Forest {
        trees: 1,
        paths: graph::ops::Paths::Complete(1),
        comparisons,
        values,
        outputs: values,
        batch: 1,
        bits: 16,
    };
    let plan = |forest| crate::garbled::checked::Checked::leaves(forest, (45, 7), 38);
    assert!(plan(forest(2, 3)).is_ok());
    let many = Forest { trees: 1 << 24, ..forest(2, 3) };
    for large in [forest(1 << 20, 1), forest(1, 1 << 23), many] {
        assert!(matches!(plan(large), Err(Error::Misuse(_))));
    }
}
