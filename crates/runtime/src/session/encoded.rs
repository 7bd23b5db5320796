//! What a server holds of its model for all sessions.

use graph::Model;
use wire::Result;

use crate::keys::lola::Cache;
use crate::plan::Plan;
use crate::run::weights::encode;
use crate::step::weights::Weights;

/// A model's encoded weights, and the evaluation keys of clients who may come back.
#[derive(Default)]
pub struct EncodedModel {
    weights: Weights,
    cache: Cache,
}

impl EncodedModel {
    /// Encodes the weights of `model` layer by layer, each of which is freed then.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for a model without weights that the plan needs.
    pub fn new(plan: &Plan, model: Model) -> Result<Self> {
        Ok(Self { weights: encode(plan, model)?, cache: Cache::default() })
    }

    /// The model with a cache for keys of so many bytes.
    pub(crate) fn with_key_cache(self, quota: usize) -> Self {
        Self { cache: Cache::new(quota), ..self }
    }

    /// Evaluation keys of clients who may come back.
    pub(crate) const fn key_cache(&self) -> &Cache {
        &self.cache
    }

    /// Returns the encoded weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }
}
