//! What a server holds of its model for all sessions.

use graph::Model;
use wire::Result;

use crate::keys::lola::Cache;
use crate::plan::Plan;
use crate::planner::at_widths;
use crate::run::weights::Encoder;
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
        let weights = Self::encoded(&mut Encoder::default(), plan, model)?;
        Ok(Self { weights, cache: Cache::default() })
    }

    /// Encodes the weights of `model` for each of `plans`, whatever its share widths; what they
    /// have in common is there once.
    ///
    /// # Errors
    /// As [`EncodedModel::new`]; [`wire::Error::Misuse`] for plans of another model.
    pub(crate) fn several(plans: &[&Plan], model: &Model, key_cache: usize) -> Result<Vec<Self>> {
        let mut encoder = Encoder::default();
        let one = |plan: &&Plan| {
            let model = at_widths(model.clone(), plan.graph())?;
            let weights = Self::encoded(&mut encoder, plan, model)?;
            Ok(Self { weights, cache: Cache::default() }.with_key_cache(key_cache))
        };
        plans.iter().map(one).collect()
    }

    /// The weights of all kinds of runs of a plan.
    fn encoded(encoder: &mut Encoder, plan: &Plan, model: Model) -> Result<Weights> {
        let Some(pass) = plan.pass() else { return encoder.encode(plan, model) };
        let weights = encoder.encode(plan, model.clone())?;
        Ok(weights.with_pass(encoder.encode(pass, model)?))
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
