//! The protocols of operators by the operators' names, and suites from outside this crate.

use std::sync::{PoisonError, RwLock};

use wire::{Error, Result};

use super::node_context::{NodeContext, PlanOperator};
use super::operators;
use super::suite::Suite;
use crate::step::Action;

static OPERATORS: RwLock<Vec<(&'static str, PlanOperator)>> = RwLock::new(Vec::new());
static SUITES: RwLock<Vec<&'static Suite>> = RwLock::new(Vec::new());

/// Makes the protocols of an operator known that [`graph::ops::register`] knows as `kind`, for
/// this process. Both parties need it.
///
/// # Errors
/// [`Error::Misuse`] for an operator that has protocols already.
pub fn register_operator(kind: &'static str, plan: PlanOperator) -> Result<()> {
    let mut known = OPERATORS.write().unwrap_or_else(PoisonError::into_inner);
    if operators::BUILT_IN.iter().chain(known.iter()).any(|(name, _)| *name == kind) {
        return Err(Error::misuse(format!("operator `{kind}` has protocols already")));
    }
    known.push((kind, plan));
    Ok(())
}

/// What runs a node of any operator in a suite that has nothing of its own for it: protocols by
/// oblivious transfer, with coefficient-packed encryption for linear layers.
///
/// # Errors
/// [`Error::Misuse`] for an operator without protocols, and for options that it does not have.
pub(super) fn action(cx: &NodeContext<'_>) -> Result<Action> {
    let kind = cx.node.op.kind();
    let known = OPERATORS.read().unwrap_or_else(PoisonError::into_inner);
    let mut all = operators::BUILT_IN.iter().chain(known.iter());
    let plan = all.find(|(name, _)| *name == kind).map(|(_, plan)| *plan);
    drop(known);
    let unknown = || Error::misuse(format!("no protocol is known for operator `{kind}`"));
    plan.ok_or_else(unknown)?(cx)
}

/// Keeps a suite unless its name is taken, by one of `others` or a suite that is kept; says
/// whether it did.
pub(super) fn keep(suite: &'static Suite, others: &[&Suite]) -> bool {
    let mut known = SUITES.write().unwrap_or_else(PoisonError::into_inner);
    let free = !others.iter().chain(known.iter()).any(|other| other.name == suite.name);
    if free {
        known.push(suite);
    }
    free
}

/// The suites that were registered.
pub(super) fn suites() -> Vec<&'static Suite> {
    SUITES.read().unwrap_or_else(PoisonError::into_inner).clone()
}
