//! What a client that comes back expects to be offered, and sends on for without waiting.
//!
//! It has the plan of its last session with the server. With its request it sends the plan's digest
//! and, behind that, all that it can say for this plan before the server speaks. A server that offers
//! just this plan goes on with it; one that does not throws it away, and with it the base OTs
//! that it was made of: both parties have consumed them.

use std::sync::Arc;

use wire::{Cost, Result, Role};

use super::expected::{Expected, MOST_AHEAD, MOST_INPUTS};
use super::handshake::ADMITTED_LEN;
use super::kept::Known;
use super::opening::{Asking, hello_cost, model_name, request_cost};
use crate::keys;
use crate::plan::{Plan, Settings};
use crate::preprocess::ahead;
use crate::provenance::Provenance;
use crate::step::correlations::Schedules;

impl Known {
    /// What to remember of a session with this plan.
    pub(crate) fn of(
        asking: &Asking<'_>,
        plan: &Arc<Plan>,
        provenance: &Provenance,
    ) -> Option<Self> {
        let plan = match plan.settings() {
            // The link is known by now.
            settings if settings.measured => {
                let settings = Settings { measured: false, ..settings };
                Arc::new(plan.with_settings(settings).ok()?)
            }
            _ => plan.clone(),
        };
        let (digest, provenance) = (provenance.digest(&plan.offer()), provenance.clone());
        Some(Self { model: name_of(asking), plan, provenance, digest })
    }

    /// What the request says for a session of this plan, if the client wants one and can send
    /// on for it; `count` says how many inputs there are.
    pub(crate) fn expected(
        &self,
        asking: &Asking<'_>,
        count: &mut impl FnMut(&Plan) -> Result<usize>,
    ) -> Option<Expected> {
        let Self { plan, provenance, digest, .. } = self;
        let trusted = asking.trust.is_none_or(|trusts| trusts(plan, provenance).is_ok());
        if self.model != name_of(asking) || !trusted {
            return None;
        }
        // An input that does not fit is refused later, by the plan that the server offers.
        let inputs = u32::try_from(count(plan).ok()?).ok()?;
        let inputs = Some(inputs).filter(|inputs| (1..=MOST_INPUTS).contains(inputs))?;
        Some(Expected { digest: *digest, inputs, ahead: plan.sends_ahead(true)? })
    }
}

fn name_of(asking: &Asking<'_>) -> [u8; 32] {
    asking.model.map_or([0; 32], model_name)
}

impl Plan {
    /// Bytes that a client sends on behind its request that expects this plan and names kept
    /// base OTs; `None` where it cannot.
    pub(crate) fn sends_ahead(&self, keeps: bool) -> Option<u32> {
        if self.evaluated().is_some() {
            return None;
        }
        let sourcing = self.settings().sourcing();
        let [begin, _] = ot::setup_costs(sourcing, true, keeps);
        let first = ahead::costs(self.begins(), &mut Schedules::new(sourcing));
        let first = first.into_iter().map(|part| part.spent.cost).collect();
        let sent = keys::cost(self).then(begin).then(first);
        let bytes = u32::try_from(sent.client_to_server).ok();
        bytes.filter(|bytes| (1..=MOST_AHEAD).contains(bytes) && sent.server_to_client == 0)
    }

    /// Handshake, keys and base OTs of a session of the plan that the client expects, which uses
    /// base OTs of an earlier one and `keeps` some for a later one, or does not.
    pub fn expected_setup_cost(&self, keeps: bool) -> Cost {
        let [begin, last] = ot::setup_costs(self.settings().sourcing(), true, keeps);
        let admission = Cost::message(Role::Server, ADMITTED_LEN);
        hello_cost(Role::Client)
            .then(request_cost())
            .then(keys::cost(self))
            .then(begin)
            .then(hello_cost(Role::Server))
            .then(admission)
            .then(last)
    }
}
