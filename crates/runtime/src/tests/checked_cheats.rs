//! Suite `checked`: clients that break the protocol in one place, in runs that are prepared and in others.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread;

use graph::Model;
use mpc::checked::Conduct;
use wire::testing::rewritten_pair;
use wire::{Channel, Error, Result, memory_pair, tags};

use super::checked::{HIDDEN, model, residual, values};
use super::clear;
use crate::linear::checked::{CheckedNetwork, Deviation};
use crate::plan::kind::Kind;
use crate::plan::{Plan, Settings};
use crate::report::Report;
use crate::session::client::Client;
use crate::session::encoded::EncodedModel;
use crate::session::opening::Asking;
use crate::session::server::session;
use crate::step::{Action, Step};
use crate::suites;

/// A session of a client that runs `steps` in place of what it was offered, for each of `inputs`.
pub(super) fn session_of(
    (model, settings): (&Model, Settings),
    steps: impl FnOnce(Vec<Step>) -> Vec<Step> + Send,
    inputs: &[Vec<i64>],
) -> (Result<Vec<Vec<i64>>>, Result<Report>) {
    let plan = Plan::new(model.graph.clone(), settings).unwrap();
    session_between(memory_pair(), (model, &plan), steps, inputs)
}

/// [`session_of`] between two ends, of a server that has this plan.
pub(super) fn session_between(
    (mut ours, mut theirs): (Channel, Channel),
    (model, plan): (&Model, &Plan),
    steps: impl FnOnce(Vec<Step>) -> Vec<Step> + Send,
    inputs: &[Vec<i64>],
) -> (Result<Vec<Vec<i64>>>, Result<Report>) {
    let encoded = EncodedModel::new(plan, model.clone()).unwrap();
    thread::scope(|scope| {
        let encoded = &encoded;
        // A server that stops closes its end.
        let server = scope.spawn(move || session(plan, encoded, usize::MAX, &mut theirs));
        let client = || -> Result<Vec<Vec<i64>>> {
            let count = |_: &Plan| Ok(inputs.len());
            let mut client = Client::open(&mut ours, 1, None, Asking::default(), count)?;
            let (graph, settings) = (client.plan.graph().clone(), client.plan.settings());
            let suite = suites::named(&graph.suite)?;
            let honest = (suite.steps)(&graph, settings, client.plan.options())?;
            client.plan = Arc::new(Plan::of_steps(graph, steps(honest), settings));
            let mut all = Vec::new();
            for input in inputs {
                let one = std::slice::from_ref(input);
                all.extend(client.run(&mut ours, (one, &[]), Kind::Whole)?);
            }
            client.finish(&mut ours)?;
            Ok(all)
        };
        let results = client();
        drop(ours);
        (results, server.join().unwrap())
    })
}

/// Bits of the key under which the server's tags are.
const KEY_BITS: u32 = 40;

/// What a client does that breaks the protocol in one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cheat {
    /// Adds to a phase of a layer, a value of its share.
    Phase(usize, u64),
    /// Sends a wrong correction of the OTs of its inputs.
    Correction,
    /// Adds to what it encrypts.
    Ciphertext(usize, u64),
    /// Opens other combinations of this kind.
    Opening(usize),
    /// Opens another combination that has the tag of the right one if the last bit of the server's key is 0.
    Guess,
    /// Evaluates the circuits behind a layer on the labels of one value's bits for all values.
    Replay(usize),
}

impl Conduct for Cheat {
    fn ciphertext(&self, layer: usize, fresh: &mut he::rlwe::Fresh) {
        match self {
            Self::Ciphertext(at, by) if *at == layer => {
                fresh.body[0] = fresh.body[0].wrapping_add(*by) & ring::word::mask(52);
            }
            _ => {}
        }
    }

    fn phases(&self, layer: usize, words: &mut [u64]) {
        match self {
            Self::Phase(at, by) if *at == layer => words[1] = words[1].wrapping_add(*by),
            _ => {}
        }
    }

    fn labels(&self, layer: usize, labels: &mut [u128]) {
        if matches!(self, Self::Replay(at) if *at == layer) {
            labels.chunks_exact_mut(HIDDEN).for_each(|plane| plane.fill(plane[0]));
        }
    }

    fn corrections(&self, corrections: &mut ring::Bits) {
        if matches!(self, Self::Correction) {
            corrections.xor(&(0..corrections.len()).map(|at| u64::from(at == 3)).collect());
        }
    }

    fn opening(&self, opened: &mut [Vec<u64>]) {
        match self {
            Self::Opening(kind) => opened[*kind][0] ^= 1,
            Self::Guess => opened[0][0] ^= 1 << (KEY_BITS - 1),
            _ => {}
        }
    }
}

/// A session of such a client, of runs that are prepared or not.
pub(super) fn cheating(
    (model, prepared): (&Model, bool),
    cheat: Cheat,
    input: &[Vec<i64>],
) -> (Result<Vec<Vec<i64>>>, Result<Report>) {
    let steps = |mut steps: Vec<Step>| {
        let Action::Linear(layer) = &mut steps[0].action else { unreachable!("one network") };
        let network = layer.downcast_mut::<CheckedNetwork>().unwrap();
        network.conduct = Deviation(Some(Arc::new(cheat)));
        steps
    };
    let offline = NonZeroU32::new(prepared.into());
    session_of((model, Settings { offline, ..Settings::default() }), steps, input)
}

/// The model with all weights of the other sign.
fn turned() -> Model {
    let mut other = model("checked");
    for weights in other.weights.values_mut() {
        weights.weight.iter_mut().for_each(|w| *w = -*w);
    }
    other
}

/// A client that guesses a bit of the server's key passes in half of all runs, whatever the weights are, and gets
/// what an honest one gets.
#[test]
fn how_often_a_run_ends_early_does_not_depend_on_weights() {
    const SESSIONS: usize = 40;
    let values = values(2, 1);
    for model in [model("checked"), turned()] {
        let input = vec![model.graph.quantize_input(&values).unwrap()];
        let mut passed = 0;
        for _ in 0..SESSIONS {
            let (client, server) = cheating((&model, false), Cheat::Guess, &input);
            if let Ok(results) = client {
                server.unwrap();
                assert_eq!(results, clear(&model, &values));
                passed += 1;
            } else {
                assert!(matches!(&server, Err(Error::Peer { .. })), "{server:?}");
            }
        }
        // Five deviations around a half: outside with a probability below 2^-20.
        assert!((5..=35).contains(&passed), "{passed} of {SESSIONS}");
    }
}

/// Behind a ciphertext that is changed on its way, as in the attack on the default suite, the server's tags are not those
/// of the client, whose honest part closes when it sees that.
#[test]
fn rewritten_ciphertexts_get_no_result() {
    let model = model("checked");
    let plan = Plan::new(model.graph.clone(), Settings::default()).unwrap();
    let input = vec![model.graph.quantize_input(&values(2, 1)).unwrap()];
    for layer in 0..3 {
        let mut sent = 0;
        let rewrite = move |frame: &mut Vec<u8>| {
            if frame[0] == tags::COEFFICIENT_INPUTS {
                sent += 1;
                // Somewhere in the numbers, which are padded nowhere.
                let middle = frame.len() / 2;
                frame[middle] ^= u8::from(sent == layer + 1) << 7;
            }
        };
        let ends = rewritten_pair(rewrite);
        let (client, server) = session_between(ends, (&model, &plan), |steps| steps, &input);
        assert!(client.is_err() && server.is_err(), "{layer}");
    }
}

/// Whatever the weights are, the server names the client as guilty and the client gets no result.
#[test]
fn clients_that_cheat_get_no_result_and_are_named() {
    let other = turned();
    let input = vec![model("checked").graph.quantize_input(&values(2, 1)).unwrap()];
    let cheats = [
        Cheat::Phase(0, 1),
        Cheat::Phase(0, 1 << 20),
        Cheat::Phase(1, 1 << 12),
        Cheat::Phase(2, 1),
        Cheat::Correction,
        Cheat::Ciphertext(0, 1 << 40),
        Cheat::Ciphertext(1, 1 << 20),
        Cheat::Opening(0),
        Cheat::Opening(1),
        Cheat::Opening(2),
        Cheat::Replay(0),
    ];
    for cheat in cheats {
        for model in [(&model("checked"), false), (&other, false), (&other, true)] {
            let (client, server) = cheating(model, cheat, &input);
            assert!(client.is_err(), "{cheat:?}");
            assert!(matches!(&server, Err(Error::Peer { .. })), "{cheat:?}: {server:?}");
        }
    }
}

/// A share is shifted before the sum, in it and behind it, by amounts that stay below a last place and above.
#[test]
fn clients_that_cheat_in_residual_sums_get_no_result() {
    let model = residual();
    let values = super::inputs(&mut ring::Random::seeded(8), 1);
    let input = vec![model.graph.quantize_input(&values).unwrap()];
    for layer in 0..3 {
        for by in [1, 1 << 18] {
            let how = (&model, layer > 0);
            let (client, server) = cheating(how, Cheat::Phase(layer, by), &input);
            assert!(client.is_err() && matches!(&server, Err(Error::Peer { .. })), "{server:?}");
        }
    }
}
