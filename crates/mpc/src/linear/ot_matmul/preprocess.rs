//! Layers that are preprocessed, before their input exists.
//!
//! | | |
//! |---|---|
//! | In | in preprocessing the weights and OTs; online shares of the input mod 2^bits or wider |
//! | Out | shares of the products mod 2^bits |
//! | Reveals | to the server: the client's share minus a uniform mask |
//! | Security | the client's mask r is uniform mod 2^bits and used once: it is moved into the layer |
//! | Cost | in preprocessing all OTs; online bits/8 per value of the input up, one round ([`Layer::cost`]) |
//! | Paper | Zeng et al., UFO, Fig. 4; Mishra et al., Delphi (USENIX Security 2020), section 4.1 |
//!
//! In preprocessing the products are those of r. Online the client sends `x_c - r`; the server
//! multiplies that, plus its own share, in the clear.

use std::fmt;

use ring::word::mask;
use wire::{Channel, Error, Result};
use zeroize::Zeroizing;

use super::layer::Layer;
use super::message::Masked;
use super::weights::Weights;
use super::{Asked, ask, client, known, server, without_bits};
use crate::correlations::{Correlations, Demand};
use crate::linear::transport::Worker;
use crate::share::Share;

/// Where the pads of each part come from.
pub type Feed<'a> = &'a mut dyn FnMut(&mut Channel, &Demand) -> Result<Correlations>;

/// What preprocessing starts from.
pub enum Source<'a> {
    /// The choices of its one part, which the server has sent, until they are taken.
    Asked(Option<Asked>),
    /// Correlations for one part after another.
    Correlations(Feed<'a>),
}

impl Source<'_> {
    /// The choices of part number `part`.
    fn next(
        &mut self,
        channel: &mut Channel,
        layer: &Layer,
        (part, demand): (usize, &Demand),
        weights: Option<&Weights>,
    ) -> Result<Asked> {
        match self {
            Self::Asked(asked) => {
                asked.take().ok_or_else(|| Error::misuse("choices of one part for several"))
            }
            Self::Correlations(feed) => {
                let ots = feed(channel, demand)?;
                ask(channel, layer.product(), part, weights, ots)
            }
        }
    }
}

/// The client's half of a preprocessed layer, for one run.
pub struct PreprocessedClient {
    mask: Zeroizing<Vec<u64>>,
    products: Zeroizing<Vec<u64>>,
}

/// The server's half of a preprocessed layer, for one run.
pub struct PreprocessedServer {
    products: Zeroizing<Vec<u64>>,
}

impl PreprocessedClient {
    /// Multiplies a fresh mask.
    ///
    /// # Errors
    /// What pads return, [`Error::Peer`], [`Error::Transport`].
    pub fn prepare(
        channel: &mut Channel,
        layer: &Layer,
        mut source: Source<'_>,
        worker: &mut Worker<'_>,
    ) -> Result<Self> {
        let plan = layer.product();
        let mask = Zeroizing::new(worker.rng.uniform(layer.inputs(), plan.bits));
        let x = layer.spread(&mask);
        let mut products = without_bits(plan, &x);
        let mut rest = products.as_mut_slice();
        for (part, demand) in layer.demands().iter().enumerate() {
            let asked = source.next(channel, layer, (part, demand), None)?;
            let made = client(channel, plan, part, &x, asked, worker.threads)?;
            let now = rest.split_off_mut(..made.len()).unwrap_or_default();
            now.iter_mut().zip(made.iter()).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
        }
        Ok(Self { mask, products })
    }

    /// Runs the client's side with an input.
    ///
    /// # Errors
    /// [`Error::Misuse`] for shares that do not fit the layer, [`Error::Transport`].
    pub fn run(mut self, channel: &mut Channel, layer: &Layer, x: &Share) -> Result<Share> {
        check(layer, x)?;
        let bits = layer.product().bits;
        let masked = x.words().iter().zip(self.mask.iter());
        let masked = masked.map(|(x, r)| x.wrapping_sub(*r) & mask(bits)).collect();
        channel.send(&Masked::one(masked, bits))?;
        Ok(Share::new(std::mem::take(&mut *self.products), bits))
    }
}

impl PreprocessedServer {
    /// Answers [`PreprocessedClient::prepare`].
    ///
    /// # Errors
    /// What pads return, [`Error::Misuse`] for weights of another layer, [`Error::Peer`],
    /// [`Error::Transport`].
    pub fn prepare(
        channel: &mut Channel,
        layer: &Layer,
        weights: &Weights,
        mut source: Source<'_>,
        threads: usize,
    ) -> Result<Self> {
        let mut products = Zeroizing::new(Vec::with_capacity(layer.product().outputs()));
        for (part, demand) in layer.demands().iter().enumerate() {
            let asked = source.next(channel, layer, (part, demand), Some(weights))?;
            let made = server(channel, layer.product(), part, weights, asked, threads)?;
            products.extend_from_slice(&made);
        }
        Ok(Self { products })
    }

    /// Runs the server's side with an input.
    ///
    /// # Errors
    /// [`Error::Misuse`] for shares that do not fit the layer, [`Error::Peer`],
    /// [`Error::Transport`].
    pub fn run(
        mut self,
        channel: &mut Channel,
        layer: &Layer,
        weights: &Weights,
        x: &Share,
        threads: usize,
    ) -> Result<Share> {
        check(layer, x)?;
        let message: Masked = channel.receive(&vec![layer.masked()])?;
        let mut sums = Zeroizing::new(message.concat());
        sums.iter_mut().zip(x.words()).for_each(|(sum, x)| *sum = sum.wrapping_add(*x));
        let products = known(layer.product(), weights, &layer.spread(&sums), threads);
        let all = self.products.iter_mut().zip(products.iter());
        all.for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
        Ok(Share::new(std::mem::take(&mut *self.products), layer.product().bits))
    }
}

fn check(layer: &Layer, x: &Share) -> Result<()> {
    if x.len() == layer.inputs() && x.bits() >= layer.product().bits {
        return Ok(());
    }
    Err(Error::misuse("shares that do not fit their linear layer"))
}

impl fmt::Debug for PreprocessedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PreprocessedClient(<hidden>)")
    }
}

impl fmt::Debug for PreprocessedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PreprocessedServer(<hidden>)")
    }
}
