//! Products of two shared matrices under encryption.

use graph::{MatMul, Rounding};
use he::rlwe::UnfoldKey;
use mpc::Share;
use mpc::compare::Radix;
use mpc::linear::coefficient::Worker;
use mpc::linear::shared_matmul;
use wire::{Cost, Result};

use crate::step::context::{Context, Party, input};
use crate::step::keys::{KeyDemand, misuse};
use crate::step::linear::LinearProtocol;
use crate::step::sliced::{Sliced, truncation};
use crate::step::spent::Spent;

/// A product of two shared matrices, then the exact truncation if asked.
#[derive(Debug)]
pub struct SharedProduct {
    /// The homomorphic part.
    pub layer: shared_matmul::Layer,
    /// What is added to make the floor of an exact rescale round.
    pub half: i64,
    /// The rest of an exact rescale.
    pub truncate: Option<Sliced>,
}

/// How the blocks of factors are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// One in a ciphertext.
    Apart,
    /// Left factors folded, as at this place of [`shared_matmul::Layer::folded_at`].
    Folded(usize),
}

impl SharedProduct {
    /// Plans `matmul` of the sides `[count, rows, inner, columns]`, its left factor known to
    /// the client or not, for runs of `batch` inputs, one of so many `products` that keys for
    /// unfolding may serve: in blocks or folded as was chosen, else by the bytes of both.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] when no secure parameters hold the precision.
    pub(crate) fn new(
        matmul: &MatMul,
        [count, rows, inner, columns]: [usize; 4],
        left: shared_matmul::Left,
        out_bits: u32,
        [batch, products]: [usize; 2],
        (chosen, digits): (Option<Blocks>, Option<Radix>),
    ) -> Result<Self> {
        let shape = shared_matmul::Shape { batch: count * batch, rows, inner, columns };
        let (shift, rounding) = (matmul.shift, matmul.rounding);
        let plain = || shared_matmul::Layer::new(shape, left, shift, out_bits, rounding);
        let layer = match chosen {
            None => {
                let folded = shared_matmul::Layer::folded(shape, left, shift, out_bits, rounding);
                match (folded, plain()) {
                    (Ok(folded), Ok(plain)) if !worth_folding(&folded, &plain, products)? => plain,
                    (Ok(folded), _) => folded,
                    (Err(_), plain) => plain?,
                }
            }
            Some(Blocks::Apart) => plain()?,
            Some(Blocks::Folded(place)) => {
                shared_matmul::Layer::folded_at(shape, left, shift, out_bits, rounding, place)?
            }
        };
        let drop = matmul.shift + he::rlwe::EXACT_BITS;
        let half = match (matmul.rounding, matmul.shift) {
            (Rounding::Stochastic, _) | (_, 0) => 0,
            (Rounding::Exact, _) => 1i64 << (drop - 1),
        };
        let truncate = match matmul.rounding {
            Rounding::Stochastic => None,
            Rounding::Exact => {
                let fastest = || Radix::fastest(layer.outputs(), matmul.shift);
                let radix = digits.unwrap_or_else(fastest);
                Some(truncation(layer.outputs(), layer.result_bits(), drop, out_bits, radix)?)
            }
        };
        Ok(Self { layer, half, truncate })
    }
}

/// Whether as many products as this would save what keys for unfolding take.
fn worth_folding(
    folded: &shared_matmul::Layer,
    plain: &shared_matmul::Layer,
    products: usize,
) -> Result<bool> {
    let layout = UnfoldKey::layout(folded.params(), folded.levels()).map_err(misuse)?;
    let keys: u64 = layout.iter().map(|(count, bits)| *count as u64 * u64::from(*bits) / 8).sum();
    let total = |cost: Cost| cost.client_to_server + cost.server_to_client;
    let saved = total(plain.cost()).saturating_sub(total(folded.cost()));
    Ok(saved.saturating_mul(products as u64) > keys)
}

impl LinearProtocol for SharedProduct {
    fn operator(&self) -> &'static str {
        "matrix product"
    }

    fn describe(&self) -> String {
        let how = if self.truncate.is_some() { " + exact truncation" } else { "" };
        format!("{}{how}", self.layer.describe())
    }

    fn keys(&self) -> KeyDemand {
        let (params, levels) = (self.layer.params(), self.layer.levels());
        let unfold = (levels > 0).then_some((params, levels));
        KeyDemand { coefficient: Some(params), unfold, slots: None }
    }

    fn protocols(&self) -> Vec<&Sliced> {
        self.truncate.iter().collect()
    }

    fn failure(&self) -> f64 {
        self.layer.failure()
    }

    fn spent(&self) -> Spent {
        Spent { cost: self.layer.cost(), work: self.layer.work() }
    }

    fn memory(&self) -> u64 {
        16 * (self.layer.ciphertexts() as u64) * self.layer.params().degree() as u64
    }

    fn ciphertexts(&self) -> usize {
        self.layer.ciphertexts()
    }

    fn run(&self, cx: &mut Context<'_, '_>, inputs: Vec<Share>) -> Result<Share> {
        let (a, b) = (input(&inputs, 0)?, input(&inputs, 1)?);
        let degree = self.layer.params().degree();
        let worker = &mut Worker { rng: cx.rng, threads: cx.party.threads() };
        let product = match cx.party {
            Party::Client { keys, .. } => shared_matmul::client(
                cx.channel,
                &self.layer,
                keys.for_degree(degree)?,
                a,
                b,
                worker,
            )?,
            Party::Server { keys, .. } => {
                let keys = keys.for_folded(degree)?;
                shared_matmul::server(cx.channel, &self.layer, keys, a, b, worker)?
            }
        };
        let product = product.plus(cx.channel.role(), self.half);
        drop(inputs);
        Sliced::run_after(self.truncate.as_ref(), cx.channel, product, cx.feed)
    }
}
