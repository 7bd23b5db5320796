//! Suite `checked`: clients that break the protocol in one place, in runs that are prepared and in others.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread;

use graph::Model;
use mpc::checked::Conduct;
use wire::{Error, Result, memory_pair};

use super::checked::{HIDDEN, model, residual, values};
use crate::linear::checked::{CheckedNetwork, Deviation};
use crate::plan::kind::Kind;
use crate::plan::options::OptionsByStep;
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
    let (mut ours, mut theirs) = memory_pair();
    let plan = Plan::new(model.graph.clone(), settings).unwrap();
    let encoded = EncodedModel::new(&plan, model.clone()).unwrap();
    thread::scope(|scope| {
        let (plan, encoded) = (&plan, &encoded);
        // A server that stops closes its end.
        let server = scope.spawn(move || session(plan, encoded, usize::MAX, &mut theirs));
        let client = || -> Result<Vec<Vec<i64>>> {
            let count = |_: &Plan| Ok(inputs.len());
            let mut client = Client::open(&mut ours, 1, None, Asking::default(), count)?;
            let (graph, settings) = (client.plan.graph().clone(), client.plan.settings());
            let honest = suites::steps(&graph, settings, &OptionsByStep::default())?;
            client.plan = Arc::new(Plan::of_steps(graph, steps(honest), settings));
            let mut all = Vec::new();
            for input in inputs {
                let one = std::slice::from_ref(input);
                all.extend(client.run(&mut ours, one, Kind::Whole)?);
            }
            client.finish(&mut ours)?;
            Ok(all)
        };
        let results = client();
        drop(ours);
        (results, server.join().unwrap())
    })
}

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
        if let Self::Opening(kind) = self {
            opened[*kind][0] ^= 1;
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

/// Whatever the weights are, the server names the client as guilty and the client gets no result.
#[test]
fn clients_that_cheat_get_no_result_and_are_named() {
    let mut other = model("checked");
    for weights in other.weights.values_mut() {
        weights.weight.iter_mut().for_each(|w| *w = -*w);
    }
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
