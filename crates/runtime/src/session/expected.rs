//! What a client that comes back expects to be offered, and sends on for without waiting.
//!
//! It has the plan of its last session with the server. With its request it sends the plan's digest
//! and, behind that, all that it can say for this plan before the server speaks. A server that offers
//! just this plan goes on with it; one that does not throws it away, and with it the base OTs
//! that it was made of: both parties have consumed them.

use std::sync::Arc;

use wire::{Cost, Result, Role};
use zeroize::Zeroize;

use super::handshake::MOST_INPUTS;
use super::opening::{Asking, hello_cost, model_name, request_cost};
use crate::keys;
use crate::plan::{Plan, Settings};
use crate::preprocess::ahead;
use crate::provenance::Provenance;
use crate::step::correlations::Schedules;

/// Most bytes that a client sends on before the server has answered.
const MOST_AHEAD: u32 = 4 << 20;

/// What a request says of the session that the client expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Zeroize)]
pub(crate) struct Expected {
    /// The digest of the offer.
    pub(crate) digest: [u8; 32],
    /// How many inputs there are, 1 to [`MOST_INPUTS`].
    pub(crate) inputs: u32,
    /// Bytes that follow the request, headers included.
    pub(crate) ahead: u32,
}

impl Expected {
    /// Bytes in a request; all zero where nothing is expected.
    pub(crate) const LEN: usize = 32 + 4 + 4;

    pub(crate) fn encode(expected: Option<Self>, out: &mut Vec<u8>) {
        let Self { digest, inputs, ahead } =
            expected.unwrap_or(Self { digest: [0; 32], inputs: 0, ahead: 0 });
        out.extend(digest);
        out.extend(inputs.to_le_bytes());
        out.extend(ahead.to_le_bytes());
    }

    /// What was encoded; `None` for bytes that nothing is encoded as.
    pub(crate) fn decode(bytes: &[u8; Self::LEN]) -> Option<Option<Self>> {
        if *bytes == [0; Self::LEN] {
            return Some(None);
        }
        let (digest, rest) = bytes.split_first_chunk()?;
        let (inputs, ahead) = rest.split_first_chunk()?;
        let inputs = u32::from_le_bytes(*inputs);
        let ahead = u32::from_le_bytes(ahead.try_into().ok()?);
        let is_legal = *digest != [0; 32]
            && (1..=MOST_INPUTS).contains(&inputs)
            && (1..=MOST_AHEAD).contains(&ahead);
        is_legal.then_some(Some(Self { digest: *digest, inputs, ahead }))
    }
}

/// What a client remembers of its last session with a server.
pub(crate) struct Known {
    /// The model that it asked for by name, zeros for none.
    model: [u8; 32],
    pub(crate) plan: Arc<Plan>,
    pub(crate) provenance: Provenance,
    digest: [u8; 32],
}

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
                let again = Plan::chosen(plan.graph().clone(), settings, plan.options().clone());
                Arc::new(again.ok()?)
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
        // What is wrong about the input is said of the plan that is offered.
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
        let first = ahead::costs(self, &mut Schedules::new(sourcing));
        let first = first.into_iter().map(|part| part.spent.cost).collect();
        let sent = keys::cost(self).then(begin).then(first);
        let bytes = u32::try_from(sent.client_to_server).ok();
        bytes.filter(|bytes| (1..=MOST_AHEAD).contains(bytes) && sent.server_to_client == 0)
    }

    /// Handshake, keys and base OTs of a session of the plan that the client expects, which uses
    /// base OTs of an earlier one and `keeps` some for a later one, or does not.
    pub fn expected_setup_cost(&self, keeps: bool) -> Cost {
        let [begin, last] = ot::setup_costs(self.settings().sourcing(), true, keeps);
        let admission = Cost::message(Role::Server, super::handshake::ADMITTED_LEN);
        hello_cost(Role::Client)
            .then(request_cost())
            .then(keys::cost(self))
            .then(begin)
            .then(hello_cost(Role::Server))
            .then(admission)
            .then(last)
    }
}
