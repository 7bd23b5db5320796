//! What a graph keeps from one input of a session to the next.

use super::shown;
use crate::error::{Check, Error, Result};
use crate::ir::{Graph, Nonlinear, State};
use crate::ops::ensure;
use std::collections::BTreeSet;

/// Checks what [`Graph::states`] says of tensors; that nodes write them is checked with the nodes.
pub(super) fn check(graph: &Graph) -> Result<()> {
    let mut taken = BTreeSet::from([graph.input]);
    for state in &graph.states {
        let label = graph.tensors.get(state.before).map_or("", |tensor| &tensor.name);
        let label = shown(label, state.before);
        of_one(graph, state)
            .and_then(|()| ensure(taken.insert(state.before), || "is given twice".into()))
            .map_err(|why| Error::invalid("verify", &label, why))?;
    }
    Ok(())
}

fn of_one(graph: &Graph, state: &State) -> Check<()> {
    let tensor = |index: usize| graph.tensors.get(index).ok_or("no such tensor");
    let (before, after) = (tensor(state.before)?, tensor(state.after)?);
    ensure(graph.exact.is_none() && graph.nonlinear == Nonlinear::Ot, || {
        "a state in a graph whose protocols keep none".into()
    })?;
    let same = before.shape == after.shape && before.format.bits == after.format.bits;
    ensure(same, || format!("`{}` is no next state of it", after.name))?;
    let [low, high] = state.range;
    let bound = 1i64 << (before.format.bits - 1);
    ensure(low <= 0 && 0 <= high && -bound <= low && high < bound, || {
        format!("range {low}..={high} does not fit {} bits", before.format.bits)
    })?;
    ensure(before.format.signed || low == 0, || "sign and range disagree".into())
}
