//! Linear layers whose encryption runs before the input exists.
//!
//! | | |
//! |---|---|
//! | In | as online; in preprocessing nothing but the weights |
//! | Out | as online: the same error bounds, around the same value |
//! | Reveals | to the server: the client's share minus a uniform mask |
//! | Security | the client's mask r is uniform mod 2^P and used once, of several runs each its own: it is moved into the layer |
//! | Cost | in preprocessing what the layer costs online otherwise; online P/8 per value of the inputs up, one round |
//! | Paper | Mishra et al., Delphi (USENIX Security 2020), section 4.1; UFO, Fig. 4 |
//!
//! In preprocessing the layer runs on r: the parties hold phases and masks of W*r. Layers that are
//! prepared together take one exchange: all that the client asks, then all answers; the server
//! sends none until it has read everything, so that no party waits for one that waits. It
//! multiplies where it waits for the client, or when it answers.
//! Online the client
//! sends `x_c - r`; the server multiplies that, plus its own share, in the clear, and adds
//! it to its mask before both round.
//!
//! Masks of several runs are encrypted together ([`Layer::for_runs`]), as a batch of inputs is: each run
//! then consumes its own part.

use std::sync::{Arc, Weak};

use he::rlwe::SecretKey;
use ring::word::mask;
use wire::{Channel, Cost, Meanwhile, Packed, Result, Role, Segment, tags};
use zeroize::Zeroizing;

use super::clear;
use super::client::{receive_phases, send_inputs};
use super::layer::Layer;
use super::product::ServerWeights;
use super::products::Products;
use super::shares::{check, client_share, server_share};
use crate::defect::defect;
use crate::linear::transport::{SharedKeys, Worker};
use crate::share::Share;

type Masked = Packed<{ tags::COEFFICIENT_MASKED }>;

/// The client's half of a layer that it has asked for.
pub struct ClientAsked {
    mask: Zeroizing<Vec<u64>>,
}

/// The server's half of a layer whose answers wait to be made and sent.
pub struct ServerAsked {
    pub(super) products: Arc<Products>,
}

/// The client's half of a preprocessed layer, for one run or, until it is split, for several.
pub struct PreprocessedClient {
    mask: Zeroizing<Vec<u64>>,
    phases: Zeroizing<Vec<u64>>,
}

/// The server's half of a preprocessed layer, for one run or, until it is split, for several.
pub struct PreprocessedServer {
    masks: Zeroizing<Vec<u64>>,
}

impl Layer {
    /// Takes the inputs of the layer as those of `runs` runs (at least 1, a divisor of their number), whose
    /// masks are encrypted together and which run one after another.
    #[must_use]
    pub fn for_runs(self, runs: usize) -> Self {
        Self { runs: runs.max(1), ..self }
    }

    /// Returns the number of runs whose inputs are encrypted together.
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// Returns the number of values of the output of one run.
    pub fn run_outputs(&self) -> usize {
        self.outputs() / self.runs
    }

    /// Returns the number of values of the input of one run.
    pub fn run_inputs(&self) -> usize {
        self.inputs() / self.runs
    }

    /// Returns what a run costs after the layer was prepared at [`Layer::cost`].
    pub fn prepared_cost(&self) -> Cost {
        Cost::message(Role::Client, Masked::body_len(&[self.masked()]))
    }

    fn masked(&self) -> Segment {
        Segment { count: self.run_inputs(), bits: self.plain_bits }
    }
}

impl ClientAsked {
    /// Sends a fresh mask encrypted.
    ///
    /// # Errors
    /// [`Error::Misuse`](wire::Error::Misuse) for a key that does not fit,
    /// [`Error::Transport`](wire::Error::Transport).
    pub fn ask(
        channel: &mut Channel,
        layer: &Layer,
        key: &SecretKey,
        worker: &mut Worker<'_>,
    ) -> Result<Self> {
        let mask = Zeroizing::new(worker.rng.uniform(layer.inputs(), layer.plain_bits));
        send_inputs(channel, layer, key, &mask, worker)?;
        Ok(Self { mask })
    }

    /// Receives the products.
    ///
    /// # Errors
    /// [`Error::Misuse`](wire::Error::Misuse) for a key that does not fit,
    /// [`Error::Peer`](wire::Error::Peer),
    /// [`Error::Transport`](wire::Error::Transport).
    pub fn finish(
        self,
        channel: &mut Channel,
        layer: &Layer,
        key: &SecretKey,
        worker: &mut Worker<'_>,
    ) -> Result<PreprocessedClient> {
        let phases = receive_phases(channel, layer, key, worker.threads)?;
        Ok(PreprocessedClient { mask: self.mask, phases })
    }
}

impl ServerAsked {
    /// Reads what [`ClientAsked::ask`] sends, and lets the channel multiply it while this party
    /// waits for the other.
    ///
    /// # Errors
    /// [`Error::Misuse`](wire::Error::Misuse) for a key that does not fit,
    /// [`Error::Peer`](wire::Error::Peer),
    /// [`Error::Transport`](wire::Error::Transport).
    pub fn read(
        channel: &mut Channel,
        layer: &Layer,
        keys: SharedKeys,
        weights: Arc<ServerWeights>,
        worker: &mut Worker<'_>,
    ) -> Result<Self> {
        let products = Arc::new(Products::read(channel, layer, keys, weights, worker)?);
        let work: Weak<Products> = Arc::downgrade(&products);
        channel.meanwhile([work as Weak<dyn Meanwhile>].into());
        Ok(Self { products })
    }

    /// Sends the products, and makes those that are not there.
    ///
    /// # Errors
    /// [`Error::Misuse`](wire::Error::Misuse) for weights that do not fit,
    /// [`Error::Peer`](wire::Error::Peer) for ciphertexts that are none,
    /// [`Error::Transport`](wire::Error::Transport).
    pub fn finish(self, channel: &mut Channel) -> Result<PreprocessedServer> {
        let masks = self.products.send(channel)?;
        Ok(PreprocessedServer { masks })
    }
}

impl PreprocessedClient {
    /// The halves of the runs that `layer` was prepared for, in their order.
    pub fn split(self, layer: &Layer) -> Vec<Self> {
        let masks = parts(&self.mask, layer.run_inputs());
        let phases = parts(&self.phases, layer.run_outputs());
        masks.zip(phases).map(|(mask, phases)| Self { mask, phases }).collect()
    }

    /// Runs the client's side with an input.
    ///
    /// # Errors
    /// [`Error::Misuse`](wire::Error::Misuse) when shares do not fit the layer,
    /// [`Error::Peer`](wire::Error::Peer),
    /// [`Error::Transport`](wire::Error::Transport).
    pub fn run(
        self,
        channel: &mut Channel,
        layer: &Layer,
        x: &Share,
        addend: Option<&Share>,
    ) -> Result<Share> {
        let added = check(layer, x, addend)?;
        let bits = layer.plain_bits;
        let masked = x.words().iter().zip(self.mask.iter());
        let masked = masked.map(|(x, r)| x.wrapping_sub(*r) & mask(bits)).collect();
        channel.send(&Masked::one(masked, bits))?;
        client_share(layer, &self.phases, &added)
    }
}

impl PreprocessedServer {
    /// The halves of the runs that `layer` was prepared for, in their order.
    pub fn split(self, layer: &Layer) -> Vec<Self> {
        parts(&self.masks, layer.run_outputs()).map(|masks| Self { masks }).collect()
    }

    /// Runs the server's side with an input.
    ///
    /// # Errors
    /// [`Error::Misuse`](wire::Error::Misuse) when shares do not fit the layer,
    /// [`Error::Peer`](wire::Error::Peer),
    /// [`Error::Transport`](wire::Error::Transport).
    pub fn run(
        mut self,
        channel: &mut Channel,
        layer: &Layer,
        weights: &ServerWeights,
        x: &Share,
        addend: Option<&Share>,
    ) -> Result<Share> {
        let mut added = check(layer, x, addend)?;
        let message: Masked = channel.receive(&vec![layer.masked()])?;
        let mut known = Zeroizing::new(message.concat());
        if known.len() != x.len() {
            return Err(defect("a masked input has another length than its share"));
        }
        known.iter_mut().zip(x.words()).for_each(|(known, x)| *known = known.wrapping_add(*x));
        let products = clear::convolve(&layer.conv, weights.weight()?, &known, layer.plain_bits);
        added.iter_mut().zip(products.iter()).for_each(|(sum, y)| *sum = sum.wrapping_add(*y));
        server_share(layer, &mut self.masks, weights.bias(), &added)
    }
}

/// Copies of parts of so many words each; the original is zeroized where it is dropped.
fn parts(all: &[u64], len: usize) -> impl Iterator<Item = Zeroizing<Vec<u64>>> {
    all.chunks(len.max(1)).map(|part| Zeroizing::new(part.to_vec()))
}

impl std::fmt::Debug for ClientAsked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientAsked(<hidden>)")
    }
}

impl std::fmt::Debug for ServerAsked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerAsked(<hidden>)")
    }
}

impl std::fmt::Debug for PreprocessedClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PreprocessedClient(<hidden>)")
    }
}

impl std::fmt::Debug for PreprocessedServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PreprocessedServer(<hidden>)")
    }
}
