//! Operators and suites from outside this crate.

use std::sync::{PoisonError, RwLock};

use graph::{Graph, Node, Op};
use wire::{Error, Result};

use super::suite::Suite;
use crate::plan::options::StepOptions;
use crate::plan::step::Action;

/// What runs a node of a registered operator in runs of so many inputs, under these options.
pub type PlanOperator = fn(&Graph, &Node, usize, StepOptions) -> Result<Action>;

static OPERATORS: RwLock<Vec<(&'static str, PlanOperator)>> = RwLock::new(Vec::new());
static SUITES: RwLock<Vec<&'static Suite>> = RwLock::new(Vec::new());

/// Makes the protocols of an operator known that [`graph::ops::register`] knows as `kind`, for
/// this process. Both parties need it.
///
/// # Errors
/// [`Error::Misuse`] for an operator that has protocols already.
pub fn register_operator(kind: &'static str, plan: PlanOperator) -> Result<()> {
    let mut known = OPERATORS.write().unwrap_or_else(PoisonError::into_inner);
    if known.iter().any(|(name, _)| *name == kind) {
        return Err(Error::misuse(format!("operator `{kind}` has protocols already")));
    }
    known.push((kind, plan));
    Ok(())
}

/// What runs a node of a registered operator.
///
/// # Errors
/// [`Error::Misuse`] for an operator without protocols.
pub(super) fn action(
    graph: &Graph,
    node: &Node,
    batch: usize,
    options: StepOptions,
) -> Result<Action> {
    let Op::Registered(operator) = &node.op else {
        return Err(Error::internal("an operator of this crate; please report it"));
    };
    let kind = operator.operator().kind();
    let known = OPERATORS.read().unwrap_or_else(PoisonError::into_inner);
    let plan = known.iter().find(|(name, _)| *name == kind).map(|(_, plan)| *plan);
    drop(known);
    let unknown = || Error::misuse(format!("no protocol is known for operator `{kind}`"));
    plan.ok_or_else(unknown)?(graph, node, batch, options)
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
