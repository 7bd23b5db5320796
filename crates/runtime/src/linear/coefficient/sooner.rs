//! Layers that are asked before anything else of a run.

use mpc::Share;
use mpc::linear::coefficient::{self, ServerAsked, Worker};
use wire::Result;

use super::CoefficientLayer;
use crate::step::context::{Context, Party};
use crate::step::linear::Sooner;
use crate::step::preprocessed::Preprocessed;
use crate::step::spent::{Spent, parted};

/// What a client keeps of an input that it has sent: nothing.
struct Sent;

/// Whether a layer that runs was asked sooner.
pub(super) fn is_asked(kept: &Preprocessed) -> bool {
    kept.is::<Sent>() || kept.is::<ServerAsked>()
}

impl CoefficientLayer {
    /// Receives or sends the products that were asked for before.
    pub(super) fn finish_sooner(
        &self,
        cx: &mut Context<'_, '_>,
        asked: Preprocessed,
        x: &Share,
    ) -> Result<Share> {
        match cx.party {
            Party::Client { keys, .. } => {
                let Sent = asked.take()?;
                let key = keys.for_degree(self.layer.params().degree())?;
                coefficient::receive_answers(cx.channel, &self.layer, key, x, cx.party.threads())
            }
            Party::Server { weights, .. } => {
                let asked: ServerAsked = asked.take()?;
                asked.answer(cx.channel, &self.layer, &weights.shared(cx.node)?, x)
            }
        }
    }
}

impl Sooner for CoefficientLayer {
    fn parts(&self) -> [Spent; 2] {
        let (asks, answers) = parted(self.layer.work());
        let asks = Spent { cost: self.layer.asks(), work: asks };
        [asks, Spent { cost: self.layer.answers(), work: answers }]
    }

    fn ask(&self, cx: &mut Context<'_, '_>, x: &Share) -> Result<Preprocessed> {
        let expanded = self.expanded(cx.channel.role(), x);
        let (x, degree) = (expanded.as_ref().unwrap_or(x), self.layer.params().degree());
        let worker = &mut Worker { rng: cx.rng, threads: cx.party.threads() };
        match cx.party {
            Party::Client { keys, .. } => {
                let key = keys.for_degree(degree)?;
                coefficient::send_sooner(cx.channel, &self.layer, key, x, worker)?;
                Ok(Preprocessed::new(Sent))
            }
            Party::Server { keys, weights, .. } => {
                let (keys, weights) = (keys.shared(degree)?, weights.shared(cx.node)?);
                let asked = ServerAsked::read(cx.channel, &self.layer, keys, weights, worker)?;
                Ok(Preprocessed::new(asked))
            }
        }
    }
}
