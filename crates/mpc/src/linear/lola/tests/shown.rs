//! What the parties see: nothing that depends on weights, results and nothing else.

use he::bfv::{Fresh, SecretKey};
use ring::{Random, Seed};
use wire::testing::{Outcome, Tamper, run_tampered};
use wire::{Channel, Error, Packed, Result, Role, Segment};
use zeroize::Zeroizing;

use super::super::*;
use super::{Clear, conv, linear};
use crate::linear::lola::layout::NOTHING;
use crate::linear::lola::{evaluate, weights::ServerWeights};
use crate::linear::testing::{Tampered, pinned};
use crate::linear::transport::Worker;

fn small() -> Network {
    let layers = vec![
        linear(conv([1, 3], 6, 3, [0; 4])),
        Layer::Square { multipliers: [1, 0] },
        linear(graph::Conv::fully_connected(12, 5)),
    ];
    Network { inputs: 36, layers, output_bits: 30, input: None, batch: 1 }
}

fn seeds() -> Seeds {
    Seeds([1, 2, 3].map(|i| Seed([i; 16])))
}

fn input() -> Vec<i64> {
    (0..36).map(|i| i % 8).collect()
}

fn receive_all<const TAG: u8>(
    channel: &mut Channel,
    layouts: Vec<Vec<Segment>>,
) -> Result<Vec<Packed<TAG>>> {
    layouts.iter().map(|layout| channel.receive(layout)).collect()
}

fn client(channel: &mut Channel, plan: &Plan) -> Result<Vec<i64>> {
    let mut rng = Random::seeded(1);
    let secret = SecretKey::generate(plan.params(), &mut rng).unwrap();
    for message in evaluation_keys(plan, &secret, &seeds(), &mut rng)? {
        channel.send(&message)?;
    }
    let codec = Client::new(plan)?;
    for prime in 0..plan.primes().len() {
        let worker = &mut Worker { rng: &mut rng, threads: 1 };
        let request = codec.encrypt(plan, &secret, &input(), prime, worker)?;
        let messages = request_messages(plan, request, prime)?;
        messages.iter().try_for_each(|message| channel.send(message))?;
    }
    let answer = receive_all(channel, plan.answer_messages()?)?;
    codec.decrypt(&secret, answer_of(answer))
}

fn server(channel: &mut Channel, plan: &Plan, weights: &ServerWeights) -> Result<()> {
    let layouts = plan.key_layouts()?;
    let keys = layouts.iter().map(|layout| channel.receive(layout));
    let keys = ServerKeys::new(plan, &seeds(), keys)?;
    let mut layouts = plan.request_messages().into_iter();
    let mut request =
        |_| Ok(request_of(plan, receive_all(channel, layouts.next().unwrap_or_default())?));
    let (mut rng, threads) = (Random::seeded(2), 1);
    let worker = &mut Worker { rng: &mut rng, threads };
    let answer = answer(plan, &keys, weights, &mut request, worker)?;
    let messages = answer_messages(plan, answer)?;
    messages.iter().try_for_each(|message| channel.send(message))
}

type Both = (Outcome<Result<Vec<i64>>>, Outcome<Result<()>>);

fn run(plan: &Plan, weights: &ServerWeights, tamper: Tampered) -> Both {
    let ours = |channel: &mut Channel| client(channel, plan);
    let theirs = |channel: &mut Channel| server(channel, plan, weights);
    run_tampered(tamper, ours, theirs)
}

#[test]
fn transcripts_are_pinned_and_cost_what_was_planned() {
    let clear = Clear::new(small());
    let plan = Plan::new(&clear.network).unwrap();
    let weights = ServerWeights::new(&plan, &clear.weights, 1).unwrap();
    let both = run(&plan, &weights, None);
    pinned("lola", &both);
    assert_eq!(both.0.value.unwrap(), clear.run(&input()));
    assert_eq!(both.0.cost, plan.key_cost().unwrap().then(plan.cost().unwrap()));
}

#[test]
fn weights_show_in_no_length() {
    let mut clear = Clear::new(small());
    let plan = Plan::new(&clear.network).unwrap();
    let lengths = [0, 7].map(|value| {
        for weights in clear.weights.iter_mut().flatten() {
            weights.weight = Zeroizing::new(vec![value; weights.weight.len()]);
        }
        let weights = ServerWeights::new(&plan, &clear.weights, 1).unwrap();
        let (ours, theirs) = run(&plan, &weights, None);
        let lengths: Vec<usize> = theirs.frames.iter().map(Vec::len).collect();
        (ours.transcript, ours.cost, lengths)
    });
    assert_eq!(lengths[0], lengths[1]);
}

#[test]
fn damaged_messages_are_errors() {
    let clear = Clear::new(small());
    let plan = Plan::new(&clear.network).unwrap();
    let weights = ServerWeights::new(&plan, &clear.weights, 1).unwrap();
    let request = plan.key_layouts().unwrap().len();
    for (sender, frame) in [(Role::Client, 0), (Role::Client, request), (Role::Server, 0)] {
        for how in Tamper::ALL {
            let (ours, theirs) = run(&plan, &weights, Some((sender, frame, how)));
            let error = match sender {
                Role::Client => theirs.value.err(),
                Role::Server => ours.value.err(),
            };
            match how {
                Tamper::Retag | Tamper::Oversize => {
                    assert!(matches!(error, Some(Error::Peer { .. })), "{how:?}");
                }
                Tamper::Truncate | Tamper::Close => assert!(error.is_some()),
                _ => {}
            }
        }
    }
}

/// All slots of the answers, as the client can decrypt them, and the bits by which the noise
/// of results stays below its bound.
#[test]
fn slots_without_results_are_uniform_and_noise_is_within_its_bound() {
    let clear = Clear::new(small());
    let plan = Plan::new(&clear.network).unwrap();
    let weights = ServerWeights::new(&plan, &clear.weights, 1).unwrap();
    let rng = &mut Random::seeded(5);
    let secret = SecretKey::generate(plan.params(), rng).unwrap();
    let messages = evaluation_keys(&plan, &secret, &seeds(), rng).unwrap();
    let keys = ServerKeys::new(&plan, &seeds(), messages.map(Ok)).unwrap();
    let codec = Client::new(&plan).unwrap();
    let worker = &mut Worker { rng, threads: 1 };
    let encrypted = |prime, worker: &mut Worker<'_>| -> Vec<Fresh> {
        codec.encrypt(&plan, &secret, &input(), prime, worker).unwrap()
    };
    let mut requests: Vec<_> =
        (0..plan.primes().len()).map(|prime| encrypted(prime, worker)).collect();
    let fresh = requests[0].iter().map(|fresh| fresh.expand(plan.params()).unwrap()).collect();
    let results = evaluate::run(&plan, &keys, &weights.primes[0], fresh, 1).unwrap();
    let bound = evaluate::noise(&plan, plan.primes()[0]).unwrap().bits();
    for result in &results {
        let slots = secret.open(&weights.encoders[0], result).unwrap();
        let noise = secret.noise(&weights.encoders[0], result, &slots).unwrap();
        assert!(noise < bound && noise > bound - 20.0, "noise of {noise} bits, bound {bound}");
    }
    let mut request = |prime: usize| Ok(std::mem::take(&mut requests[prime]));
    let answer = answer(&plan, &keys, &weights, &mut request, worker).unwrap();
    let encoders = plan.encoders(plan.params()).unwrap();
    let owners = plan.result().unwrap().owners();
    let each = owners.len();
    for (index, response) in answer.iter().enumerate() {
        let encoder = &encoders[index / each];
        let slots = secret.decrypt(encoder, response).unwrap();
        let mut bins = [0f64; 16];
        let free = slots.iter().zip(&owners[index % each]).filter(|(_, owner)| **owner == NOTHING);
        let count = free.clone().count() as f64;
        free.for_each(|(slot, _)| bins[(slot * 16 / encoder.prime()) as usize] += 1.0);
        let expected = count / 16.0;
        let statistic: f64 = bins.iter().map(|n| (n - expected).powi(2) / expected).sum();
        assert!(count > 8000.0 && statistic < 60.0, "chi-square {statistic}");
    }
}
