//! The keys of a session, as layers use them, and what a layer asks for.

use std::sync::Arc;

use he::bfv;
use he::rlwe::{Params, PublicKey, SecretKey, UnfoldKey};
use mpc::linear::coefficient::{ServerKeys as FoldedKeys, SharedKeys};
use mpc::linear::{lola, slots};
use wire::{Error, Result};

/// The keys that one layer needs.
#[derive(Clone, Debug, Default)]
pub struct KeyDemand {
    /// Parameters of coefficient-packed encryption.
    pub coefficient: Option<Params>,
    /// Parameters and levels of keys with which the server unfolds inputs.
    pub unfold: Option<(Params, usize)>,
    /// Keys of packed slots.
    pub slots: Option<SlotKeyDemand>,
}

/// The keys that a layer on packed slots needs.
#[derive(Clone, Debug)]
pub struct SlotKeyDemand {
    /// The encryption parameters of the keys.
    pub params: bfv::Params,
    /// Rotations that the server does.
    pub rotations: Vec<usize>,
}

/// The client's secret of a network that is evaluated under encryption, for any number of
/// sessions and files under one plan.
pub(crate) struct EvaluationKeys {
    pub(crate) secret: bfv::SecretKey,
    pub(crate) codec: lola::Client,
    pub(crate) nonce: [u8; 32],
}

/// The client's half of a session's keys.
#[derive(Default)]
pub struct ClientKeys {
    pub(crate) degrees: Vec<SecretKey>,
    pub(crate) slots: Option<bfv::SecretKey>,
    pub(crate) evaluation: Option<EvaluationKeys>,
}

/// The server's half of a session's keys.
#[derive(Default)]
pub struct ServerKeys {
    pub(crate) degrees: Vec<Arc<PublicKey>>,
    pub(crate) unfold: Vec<Arc<UnfoldKey>>,
    pub(crate) slots: Option<slots::ServerKeys>,
    pub(crate) evaluation: Option<Arc<lola::ServerKeys>>,
}

impl ClientKeys {
    /// The key of a network that is evaluated under encryption.
    pub(crate) fn for_evaluation(&self) -> Result<&EvaluationKeys> {
        self.evaluation.as_ref().ok_or_else(|| no_key("evaluation"))
    }

    /// Returns the key of layers on packed slots.
    ///
    /// # Errors
    /// [`Error::Internal`] where the plan asked for none.
    pub fn for_slots(&self) -> Result<&bfv::SecretKey> {
        self.slots.as_ref().ok_or_else(|| no_key("packed slots"))
    }

    /// Returns the key of layers packed into coefficients, by the degree of their ring.
    ///
    /// # Errors
    /// [`Error::Internal`] where the plan asked for none.
    pub fn for_degree(&self, degree: usize) -> Result<&SecretKey> {
        let key = self.degrees.iter().find(|key| key.params().degree() == degree);
        key.ok_or_else(|| no_key(&format!("degree {degree}")))
    }
}

impl ServerKeys {
    /// The keys of a network that is evaluated under encryption.
    pub(crate) fn for_evaluation(&self) -> Result<&lola::ServerKeys> {
        self.evaluation.as_deref().ok_or_else(|| no_key("evaluation"))
    }

    /// Returns the key of layers whose inputs are folded, if there are any of a degree.
    pub fn for_unfolding(&self, degree: usize) -> Option<&UnfoldKey> {
        self.unfold_at(degree).map(Arc::as_ref)
    }

    fn unfold_at(&self, degree: usize) -> Option<&Arc<UnfoldKey>> {
        self.unfold.iter().find(|key| key.params().degree() == degree)
    }

    /// Returns the keys of layers whose inputs may be folded, of a degree, for work that outlives a
    /// call.
    ///
    /// # Errors
    /// As [`ServerKeys::for_folded`].
    pub fn shared(&self, degree: usize) -> Result<SharedKeys> {
        let public = Arc::clone(self.at(degree)?);
        Ok(SharedKeys { public, unfold: self.unfold_at(degree).cloned() })
    }

    /// Returns the keys of layers whose inputs may be folded, of a degree.
    ///
    /// # Errors
    /// [`Error::Internal`] where the plan asked for no key of the degree.
    pub fn for_folded(&self, degree: usize) -> Result<FoldedKeys<'_>> {
        Ok(FoldedKeys { public: self.for_degree(degree)?, unfold: self.for_unfolding(degree) })
    }

    /// Returns the keys of layers on packed slots.
    ///
    /// # Errors
    /// [`Error::Internal`] where the plan asked for none.
    pub fn for_slots(&self) -> Result<&slots::ServerKeys> {
        self.slots.as_ref().ok_or_else(|| no_key("packed slots"))
    }

    /// Returns the key of layers packed into coefficients, by the degree of their ring.
    ///
    /// # Errors
    /// [`Error::Internal`] where the plan asked for none.
    pub fn for_degree(&self, degree: usize) -> Result<&PublicKey> {
        self.at(degree).map(Arc::as_ref)
    }

    fn at(&self, degree: usize) -> Result<&Arc<PublicKey>> {
        let key = self.degrees.iter().find(|key| key.params().degree() == degree);
        key.ok_or_else(|| no_key(&format!("degree {degree}")))
    }
}

fn no_key(of: &str) -> Error {
    Error::Internal(format!("a layer without a key for {of}; please report it"))
}

/// An error of the encryption library about values that both parties derive themselves.
pub(crate) fn misuse(error: he::Error) -> Error {
    Error::misuse(error.to_string())
}
