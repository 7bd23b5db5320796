//! What a linear layer is, whatever multiplies it.

use std::any::Any;
use std::fmt::Debug;

use mpc::linear::slots::Operations;
use mpc::{Demand, Share};
use wire::{Cost, Result};

use super::context::{Context, Preprocessing};
use super::keys::KeyDemand;
use super::memory::Memory;
use super::preprocessed::{Asked, Preprocessed};
use super::sliced::Sliced;
use super::spent::Spent;
use super::weights::{Encoded, WeightSource};

/// A linear layer with its rescale: how it is priced, which keys and weights it takes, how it is
/// preprocessed, and what both parties do online.
///
/// Both parties derive the same value from the public plan. A protocol of its own is one file in
/// `linear/` and a suite that makes steps of it.
pub trait LinearProtocol: Debug + Send + Sync + Any {
    /// Returns the name of what it computes, in one or two words: `convolution`.
    fn operator(&self) -> &'static str;

    /// How it computes that, for people.
    fn describe(&self) -> String;

    /// Returns the keys that it needs; none by default.
    fn keys(&self) -> KeyDemand {
        KeyDemand::default()
    }

    /// Returns the server's weights, in the form that the layer multiplies with; `None` for layers
    /// without weights, which is the default.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a model whose weights do not fit the layer.
    fn encode_weights(&self, source: &mut WeightSource<'_>) -> Result<Option<Encoded>> {
        let _ = source;
        Ok(None)
    }

    /// Returns whether every session preprocesses the layer on a mask, with a store or without.
    fn is_preprocessed(&self) -> bool {
        false
    }

    /// How the layer is preprocessed on a mask, if it can be.
    fn preprocess(&self) -> Option<&dyn Preprocess> {
        None
    }

    /// How the layer asks before anything else of a run, of layers that can where the client knows all of
    /// their one input.
    fn sooner(&self) -> Option<&dyn Sooner> {
        None
    }

    /// Returns the protocols on shares that follow the products, in order, with correlations of
    /// their own.
    fn protocols(&self) -> Vec<&Sliced> {
        Vec::new()
    }

    /// Returns the random correlated OTs that the layer takes as they are when it runs; the server sends
    /// in them. None by default.
    fn correlated(&self) -> usize {
        0
    }

    /// What the products take online in a session without a store.
    fn spent(&self) -> Spent;

    /// What the products take online when they were preprocessed.
    fn spent_preprocessed(&self) -> Spent {
        self.spent()
    }

    /// Returns the bytes that the party with more of them holds of the layer at a time, without its
    /// weights and correlations.
    fn memory(&self) -> u64 {
        self.spent().cost.bytes()
    }

    /// Returns the ciphertexts that cross the wire, both ways: what the time to price a plan grows
    /// with.
    fn ciphertexts(&self) -> usize {
        0
    }

    /// Returns the server's homomorphic operations, of layers that count them.
    fn operations(&self) -> Option<Operations> {
        None
    }

    /// Returns a bound on the probability that a result of one run's products is not the
    /// functionality's; 0, the default, for layers that are always right.
    fn failure(&self) -> f64 {
        0.0
    }

    /// Signed width of the words that the client learns, of layers that end a network.
    fn reveals(&self) -> Option<u32> {
        None
    }

    /// Runs the layer online on this party's shares: the input first, then an addend if there is
    /// one. Returns this party's share of the rescaled result.
    ///
    /// # Errors
    /// [`Error::Misuse`] for shares or keys that do not fit, [`Error::Peer`], [`Error::Transport`].
    fn run(&self, cx: &mut Context<'_, '_>, inputs: Vec<Share>) -> Result<Share>;
}

impl dyn LinearProtocol {
    /// Returns the layer as the type that it is.
    pub fn downcast<L: LinearProtocol>(&self) -> Option<&L> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }

    /// Returns the layer as the type that it is, to be changed.
    pub fn downcast_mut<L: LinearProtocol>(&mut self) -> Option<&mut L> {
        let any: &mut dyn Any = self;
        any.downcast_mut()
    }
}

/// A layer that asks before anything else of a run. It runs with what was asked as with what is preprocessed.
pub trait Sooner {
    /// Returns what asking takes, and what the products take when the layer runs.
    fn parts(&self) -> [Spent; 2];

    /// Sends or receives what the layer asks for. `x` is this party's share of the input: the server's is zero.
    ///
    /// # Errors
    /// [`Error::Misuse`], [`Error::Peer`], [`Error::Transport`].
    fn ask(&self, cx: &mut Context<'_, '_>, x: &Share) -> Result<Preprocessed>;
}

/// The exchange in which a layer is preprocessed together with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// Oblivious transfers: all layers ask, then all are corrected.
    ObliviousTransfer,
    /// Ciphertexts of masks: all layers ask, then all are answered.
    Encryption,
}

/// A layer on a mask, before its input exists, in two parts that several layers run side by
/// side: the client or the server asks, then the layer is finished.
pub trait Preprocess {
    /// Returns the exchange that the layer takes part in.
    fn exchange(&self) -> Exchange;

    /// Returns the number of runs that the layer is preprocessed for at a time; one by default. Layers that
    /// are for several are preprocessed before the first of them.
    fn runs(&self) -> usize {
        1
    }

    /// Returns the layer as it is preprocessed where a session has fewer `runs` left than it is for, of layers
    /// that take fewer bytes then; `None`, the default, where all are made.
    fn for_fewer(&self, runs: usize) -> Option<Box<dyn Preprocess>> {
        let _ = runs;
        None
    }

    /// Splits what was made for several runs, in their order.
    ///
    /// # Errors
    /// [`Error::Internal`] for what another layer made.
    fn split(&self, made: Preprocessed) -> Result<Vec<Preprocessed>> {
        Ok(vec![made])
    }

    /// Returns what a run takes online that comes behind one which went without the layer, of layers that
    /// keep something of the inputs of all runs; `None`, the default, where there is no such thing.
    fn missed(&self) -> Option<Cost> {
        None
    }

    /// Forgets what the layer of the step at `index` keeps of earlier runs, and for later ones.
    ///
    /// # Errors
    /// [`Error::Internal`] for what another layer kept.
    fn forget(&self, memory: &mut Memory, index: usize) -> Result<()> {
        let _ = (memory, index);
        Ok(())
    }

    /// Returns whether the layer asks together with others. Layers of many parts ask when they are
    /// finished, part by part, so that their correlations fit into memory.
    fn asks_together(&self) -> bool {
        true
    }

    /// By part: correlations consumed, what asking takes, and what finishing takes.
    fn parts(&self) -> Vec<(Demand, [Spent; 2])>;

    /// Returns the random correlated OTs that it takes as they are when it is finished; the server sends in
    /// them. None by default.
    fn correlated(&self) -> usize {
        0
    }

    /// Returns the bytes of answers that the server holds back while layers ask.
    fn asked_bytes(&self) -> usize {
        0
    }

    /// Returns the bytes that a party holds of the preprocessed layer.
    fn held_bytes(&self) -> usize;

    /// Sends or receives what the layer asks for.
    ///
    /// # Errors
    /// [`Error::Misuse`], [`Error::Peer`], [`Error::Transport`].
    fn ask(&self, cx: &mut Preprocessing<'_>) -> Result<Asked>;

    /// Finishes the preprocessing of what was asked, or of all parts if nothing was.
    ///
    /// # Errors
    /// As [`Preprocess::ask`].
    fn finish(&self, cx: &mut Preprocessing<'_>, asked: Option<Asked>) -> Result<Preprocessed>;
}
