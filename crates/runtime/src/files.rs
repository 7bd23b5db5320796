//! Keys, requests and answers of suite `lola` as files: for mail, queues and disks, where
//! client and server never meet.

use graph::{Graph, Model};
use mpc::linear::coefficient::Worker;
use mpc::linear::lola::{self, ServerKeys};
use wire::{Error, Message, Result, tags};
use zeroize::Zeroizing;

pub use crate::keys::files::KeyFiles;
use crate::keys::files::{Kind, decoded, header, lola_of, opened, runs, secret_of};
use crate::keys::lola::{generate, seeds};
pub use crate::keys::sealed::{open_secret, seal_secret};
use crate::plan::{Plan, Settings};
use crate::run::weights::encode;
use crate::session::input::{quantize, random};
use crate::step::keys::EvaluationKeys;
use crate::step::weights::Weights;

/// A client with a plan and its keys: encrypts and decrypts files.
pub struct Correspondent {
    plan: Plan,
    keys: EvaluationKeys,
}

/// What clients of a model need beside their keys: the public plan.
///
/// # Errors
/// [`Error::Misuse`] for a model of another suite.
pub fn public_plan(graph: Graph) -> Result<String> {
    let plan = Plan::new(graph, Settings::default())?;
    lola_of(&plan)?;
    Ok(plan.offer())
}

/// Returns the shape of one input of a public plan.
///
/// # Errors
/// [`Error::Peer`] for what is no plan.
pub fn planned_shape(offer: &str) -> Result<Vec<usize>> {
    let plan = Plan::from_offer(offer)?;
    let graph = plan.graph();
    Ok(graph.input_shape().to_vec())
}

/// Fresh keys for a public plan.
///
/// # Errors
/// [`Error::Peer`] for what is no plan, [`Error::Misuse`] for one of another suite.
pub fn generate_keys(offer: &str) -> Result<KeyFiles> {
    let plan = Plan::from_offer(offer)?;
    let lola = lola_of(&plan)?;
    let mut rng = random()?;
    let keys = generate(&plan, &mut rng)?;
    let seeds = seeds(&plan, &keys.nonce);
    let messages = lola::evaluation_keys(lola, &keys.secret, &seeds, &mut rng)?;
    let mut secret = Zeroizing::new(header(Kind::Secret, &plan, &keys.nonce));
    secret.extend(keys.secret.coefficients().iter().map(|x| (x + 1) as u8));
    let mut evaluation = header(Kind::Keys, &plan, &keys.nonce);
    messages.for_each(|message| message.encode(&mut evaluation));
    Ok(KeyFiles { secret, evaluation })
}

impl Correspondent {
    /// Reads the public plan and the file with the secret.
    ///
    /// # Errors
    /// [`Error::Peer`] for what is no plan or not its secret, [`Error::Misuse`] for a plan of
    /// another suite.
    pub fn new(offer: &str, secret: &[u8]) -> Result<Self> {
        let plan = Plan::from_offer(offer)?;
        Ok(Self { keys: secret_of(&plan, secret)?, plan })
    }

    /// Returns the plan that the client verified.
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the file with the request for one input in model units, or several with a leading
    /// axis.
    ///
    /// # Errors
    /// [`Error::Misuse`] for inputs that do not fit the model.
    pub fn encrypt(&self, values: &[f32], shape: &[usize], threads: usize) -> Result<Vec<u8>> {
        let inputs = Zeroizing::new(quantize(self.plan.graph(), values, shape)?);
        let lola = lola_of(&self.plan)?;
        let mut file = header(Kind::Request, &self.plan, &self.keys.nonce);
        let mut rng = random()?;
        for input in inputs.iter() {
            let worker = &mut Worker { rng: &mut rng, threads };
            let EvaluationKeys { secret, codec, .. } = &self.keys;
            for prime in 0..lola.primes().len() {
                let request = codec.encrypt(lola, secret, input, prime, worker)?;
                let messages = lola::request_messages(lola, request, prime)?;
                messages.iter().for_each(|message| message.encode(&mut file));
            }
        }
        Ok(file)
    }

    /// Returns the integers of the outputs in a file with an answer.
    ///
    /// # Errors
    /// [`Error::Peer`] for what is no answer to this client's keys.
    pub fn decrypt(&self, answer: &[u8]) -> Result<Vec<Vec<i64>>> {
        let (nonce, body) = opened(Kind::Answer, &self.plan, answer)?;
        if nonce != self.keys.nonce {
            return Err(Error::peer("an answer under these keys", "one under others"));
        }
        let lola = lola_of(&self.plan)?;
        let layouts = lola.answer_messages()?;
        let mut results = Vec::new();
        for mut part in runs(Kind::Answer, &layouts, body)? {
            let answer = lola::answer_of(decoded::<{ tags::LOLA_ANSWER }>(&mut part, &layouts)?);
            results.push(self.keys.codec.decrypt(&self.keys.secret, answer)?);
        }
        Ok(results)
    }
}

/// A server without sockets.
pub struct Evaluator {
    plan: Plan,
    weights: Weights,
}

impl Evaluator {
    /// Plans a model and encodes its weights.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a model of another suite.
    pub fn new(model: Model) -> Result<Self> {
        graph::verify_model(&model).map_err(|e| Error::misuse(e.to_string()))?;
        let plan = Plan::new(model.graph.clone(), Settings::default())?;
        lola_of(&plan)?;
        let weights = encode(&plan, model)?;
        Ok(Self { plan, weights })
    }

    /// Returns the file with the answer to a request, under the client's evaluation keys.
    ///
    /// # Errors
    /// [`Error::Peer`] for files that are not of this model, of different clients, or damaged.
    pub fn evaluate(&self, keys: &[u8], request: &[u8], threads: usize) -> Result<Vec<u8>> {
        let lola = lola_of(&self.plan)?;
        let (nonce, requested) = opened(Kind::Request, &self.plan, request)?;
        let layouts = lola.request_messages();
        let all: Vec<_> = layouts.iter().flatten().cloned().collect();
        let parts = runs(Kind::Request, &all, requested)?;
        let keys = self.keys(keys, &nonce)?;
        let mut file = header(Kind::Answer, &self.plan, &nonce);
        let mut rng = random()?;
        for part in parts {
            let (mut rest, mut layouts) = (part, layouts.iter());
            let mut request = |_| {
                let layouts = layouts.next().map_or(&[][..], Vec::as_slice);
                Ok(lola::request_of(lola, decoded::<{ tags::LOLA_REQUEST }>(&mut rest, layouts)?))
            };
            let worker = &mut Worker { rng: &mut rng, threads };
            let weights = self.weights.of::<lola::ServerWeights>(None)?;
            let answer = lola::answer(lola, &keys, weights, &mut request, worker)?;
            let messages = lola::answer_messages(lola, answer)?;
            messages.iter().for_each(|message| message.encode(&mut file));
        }
        Ok(file)
    }

    fn keys(&self, file: &[u8], nonce: &[u8; 32]) -> Result<ServerKeys> {
        let (own, body) = opened(Kind::Keys, &self.plan, file)?;
        if own != *nonce {
            return Err(Error::peer("the keys of the request's client", "another client's"));
        }
        let lola = lola_of(&self.plan)?;
        let layouts = lola.key_layouts()?;
        let mut parts = runs(Kind::Keys, &layouts, body)?;
        let (Some(mut part), None) = (parts.next(), parts.next()) else {
            return Err(Error::peer(Kind::Keys.name(), "several"));
        };
        let messages = decoded::<{ tags::LOLA_KEYS }>(&mut part, &layouts)?;
        ServerKeys::new(lola, &seeds(&self.plan, nonce), messages.into_iter().map(Ok))
    }
}

/// Decodes a body as that of a file of some kind; for fuzzing.
///
/// # Panics
/// When what decodes is encoded in another way.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn inspect(plan: &Plan, kind: u8, body: &[u8]) {
    let (Ok(lola), nonce) = (lola_of(plan), [7; 32]) else { return };
    let kind = [Kind::Keys, Kind::Request, Kind::Answer][usize::from(kind % 3)];
    let layouts = match kind {
        Kind::Keys => lola.key_layouts().unwrap_or_default(),
        Kind::Request => lola.request_messages().into_iter().flatten().collect(),
        _ => lola.answer_messages().unwrap_or_default(),
    };
    let mut file = header(kind, plan, &nonce);
    file.extend(body);
    let Ok((_, body)) = opened(kind, plan, &file) else { return };
    let Ok(parts) = runs(kind, &layouts, body) else { return };
    for part in parts {
        let mut rest = part;
        let Ok(messages) = decoded::<{ tags::LOLA_KEYS }>(&mut rest, &layouts) else { continue };
        let mut again = Vec::new();
        messages.iter().for_each(|message| message.encode(&mut again));
        assert!(rest.is_empty() && again == part);
        match kind {
            Kind::Keys => {
                let messages = messages.into_iter().map(Ok);
                drop(ServerKeys::new(lola, &seeds(plan, &nonce), messages));
            }
            _ => {
                let messages = messages.into_iter().map(|m| lola::Request::new(m.0)).collect();
                for fresh in lola::request_of(lola, messages) {
                    let _ = fresh.expand(lola.params());
                }
            }
        }
    }
}
