//! A protocol on shares as a value: what every plan of this crate can say about itself and do.
//!
//! A protocol of its own needs one file: a plan, `run`, and an implementation of [`Protocol`].
//! Layers of a network hold protocols behind this trait, so nothing else names them.

use std::any::Any;
use std::fmt::Debug;

use wire::{Channel, Cost, Error, Result};

use crate::correlations::{Correlations, Demand};
use crate::share::Share;
use pricing::Work;

/// A step on shares that both parties run: the same public plan at both, the same results up to
/// the role that the [`Channel`] tells.
pub trait Protocol: Debug + Send + Sync + Any {
    /// The name of what it computes, in one or two words: `relu`.
    fn operator(&self) -> &'static str;

    /// How it computes that, for people: `comparison by OT`.
    fn describe(&self) -> String;

    /// The correlations that one run consumes.
    fn demand(&self) -> Demand;

    /// Bytes and rounds of one run online, exactly as the meter counts them.
    fn cost(&self) -> Cost;

    /// The work of one run online at both parties together, in the units of the price list.
    fn work(&self) -> Work {
        crate::work::online(&self.demand(), self.cost())
    }

    /// A bound on the probability that a result of one run is not the functionality's, added up
    /// over its values; 0, the default, for protocols that are always right.
    fn failure(&self) -> f64 {
        0.0
    }

    /// Runs the protocol on this party's shares of its inputs, in the order in which the plan
    /// was made for them, and returns this party's share of the result. `ots` are the
    /// correlations that [`Protocol::demand`] asks for.
    ///
    /// # Errors
    /// [`Error::Misuse`] for shares or correlations that do not fit the plan, [`Error::Peer`] for
    /// messages that break the protocol, [`Error::Transport`].
    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share>;
}

impl dyn Protocol {
    /// Returns the plan as the type that it is, for callers that know one protocol closely.
    pub fn downcast<P: Protocol>(&self) -> Option<&P> {
        let any: &dyn Any = self;
        any.downcast_ref()
    }
}

/// Returns the share at position `index` of a protocol's inputs.
///
/// # Errors
/// [`Error::Misuse`] where there are fewer inputs.
pub fn input(inputs: &[Share], index: usize) -> Result<&Share> {
    inputs.get(index).ok_or_else(|| Error::misuse("a protocol with fewer inputs than it takes"))
}
