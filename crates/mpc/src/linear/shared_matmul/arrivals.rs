//! The client's ciphertexts on the server: received, added to, unfolded.

use std::collections::VecDeque;

use he::rlwe::{Ciphertext, Operand, UnfoldKey};
use ring::Random;
use wire::{Channel, Result};
use zeroize::Zeroizing;

use super::layer::{INPUTS, Layer};
use super::shape::Left;
use super::term::fold;
use crate::defect::defect;
use crate::linear::transport::rlwe::next_ciphertext;
use crate::linear::transport::{Received, Worker, misuse};
use crate::parallel;

/// What the server adds to a ciphertext.
type Own = Option<Zeroizing<Vec<u64>>>;

/// The client's ciphertexts in order.
pub(super) struct Arrivals<'a> {
    layer: &'a Layer,
    received: Received<INPUTS>,
}

/// The left factor of a term, which came folded.
pub(super) struct Folded<'a> {
    key: &'a UnfoldKey,
    /// Ciphertexts, what is added to them, and blocks in them.
    waiting: VecDeque<(Ciphertext, usize)>,
    ready: VecDeque<Operand>,
}

impl<'a> Arrivals<'a> {
    pub(super) fn new(layer: &'a Layer) -> Self {
        Self { layer, received: Received::new(layer.input_layouts()) }
    }

    fn next(&mut self, channel: &mut Channel, own: Own) -> Result<Ciphertext> {
        next_ciphertext(channel, &mut self.received, self.layer.sent(), own)
    }

    /// The next ciphertexts, to each of which its polynomial is added, if it has one.
    pub(super) fn operands(
        &mut self,
        channel: &mut Channel,
        own: Vec<Own>,
        threads: usize,
    ) -> Result<Vec<Operand>> {
        let next = own.into_iter().map(|own| self.next(channel, own));
        let ciphers = next.collect::<Result<Vec<_>>>()?;
        let operand = |cipher: Ciphertext| cipher.into_operand().map_err(misuse);
        parallel::map(threads, ciphers, operand).into_iter().collect()
    }

    /// All ciphertexts, term by term; `a` is the server's share of the left factors.
    pub(super) fn folded<'k>(
        &mut self,
        channel: &mut Channel,
        key: &'k UnfoldKey,
        a: &[u64],
    ) -> Result<Vec<Folded<'k>>> {
        let (layer, each) = (self.layer, 1 << self.layer.levels);
        let bits = layer.precision.plain_bits;
        let mut terms = Vec::new();
        for (index, term) in layer.terms.iter().enumerate() {
            // The first term takes the server's share in; the second one's is the client's.
            let own = if index == 0 && layer.left == Left::Shared {
                let items = a.chunks_exact(layer.shape.left());
                items.flat_map(|a| term.left(a, bits, layer.params.degree())).collect()
            } else {
                Vec::new()
            };
            let mut own = own.chunks(each).map(fold);
            let (mut waiting, mut rest) = (VecDeque::new(), layer.blocks(term));
            while rest > 0 {
                let count = rest.min(each);
                waiting.push_back((self.next(channel, own.next())?, count));
                rest -= count;
            }
            terms.push(Folded { key, waiting, ready: VecDeque::new() });
        }
        Ok(terms)
    }
}

impl Folded<'_> {
    /// The next `count` blocks.
    pub(super) fn take(
        &mut self,
        count: usize,
        levels: usize,
        worker: &mut Worker<'_>,
    ) -> Result<Vec<Operand>> {
        while self.ready.len() < count {
            let now = self.waiting.len().min(worker.threads.max(1));
            if now == 0 {
                return Err(defect("a product of matrices has too few folded blocks"));
            }
            let jobs = self.waiting.drain(..now).map(|job| (job, worker.rng.child())).collect();
            let unfold = |((cipher, count), mut rng): ((Ciphertext, usize), Random)| {
                let blocks = cipher.unfold(self.key, levels, count, &mut rng).map_err(misuse)?;
                let operands = blocks.into_iter().map(|block| block.into_operand().map_err(misuse));
                operands.collect::<Result<Vec<_>>>()
            };
            for operands in parallel::map(worker.threads, jobs, unfold) {
                self.ready.extend(operands?);
            }
        }
        Ok(self.ready.drain(..count).collect())
    }
}
