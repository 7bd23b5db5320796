//! Invariants of the public graph. A client runs these on the plan of a server
//! it does not trust, so nothing here panics or allocates by what it reads.

mod states;
mod unscaled;

use crate::error::{Check, Error, Result};
use crate::ir::{Graph, Node, VERSION};
use crate::ops::geometry::elements;
use crate::ops::relu::MAX_SATURATE;
use crate::ops::{Rounding, ensure};
use crate::tensor::{Part, Tensor};
use std::collections::BTreeSet;

/// A client looks for the packing of every linear node it is offered.
const MAX_NODES: usize = 4096;
/// Elements of all tensors together.
const MAX_TOTAL: usize = 1 << 28;
/// Positions read by all pooling windows and views together; a plan lists each.
const MAX_LISTED: usize = 1 << 24;
/// Functions that are tried for all their arguments.
const MAX_TRIED: usize = 512;
const MAX_NAME: usize = 256;
/// Most axes of an input or a result as the client has it.
const MAX_AXES: usize = 16;

/// Checks structure, shapes and widths.
///
/// # Errors
/// [`Error::Invalid`] with pass `verify`, naming the node or tensor.
pub fn verify(graph: &Graph) -> Result<()> {
    header(graph).map_err(|why| invalid("graph", why))?;
    let mut names = BTreeSet::new();
    let mut total = 0usize;
    for (index, tensor) in graph.tensors.iter().enumerate() {
        let label = shown(&tensor.name, index);
        total += check_tensor(tensor).map_err(|why| invalid(&label, why))?;
        if total > MAX_TOTAL || !names.insert(&tensor.name) {
            return Err(invalid(&label, "the name is taken or the tensors are too many"));
        }
    }
    input(graph).map_err(|why| invalid("input", why))?;
    states::check(graph)?;
    nodes(graph)?;
    last_rounding(graph)?;
    parts(&graph.inputs, &graph.tensors[graph.input]).map_err(|why| invalid("input", why))?;
    parts(&graph.outputs, &graph.tensors[graph.output]).map_err(|why| invalid("output", why))?;
    unscaled::check(graph)?;
    graph.link.map_or(Ok(()), |link| link.check()).map_err(|why| invalid("link", why))?;
    labels(graph).map_err(|why| invalid("labels", why))
}

/// For each tensor whether the output can be reached from it without a product with what
/// the client does not know; an addend is no product. Indices are in range.
pub(crate) fn opened(graph: &Graph) -> Vec<bool> {
    let mut opened = vec![false; graph.tensors.len()];
    opened[graph.output] = true;
    let known = graph.known();
    loop {
        for node in graph.nodes.iter().rev() {
            if opened[node.output] {
                let multiplied = node.op.multiplied(&known_inputs(node, &known));
                node.inputs.iter().skip(multiplied).for_each(|input| opened[*input] = true);
            }
        }
        // What a state is after one input, the next input's results may show.
        let shown = graph.states.iter().filter(|state| opened[state.before]);
        let hidden: Vec<usize> =
            shown.map(|state| state.after).filter(|after| !opened[*after]).collect();
        if hidden.is_empty() {
            return opened;
        }
        hidden.into_iter().for_each(|after| opened[after] = true);
    }
}

/// A result that was rounded locally would tell the client about noise and weights.
fn last_rounding(graph: &Graph) -> Result<()> {
    let opened = opened(graph);
    for node in &graph.nodes {
        let accumulator = node.op.accumulator();
        let stochastic = accumulator.is_some_and(|a| a.rounding == Rounding::Stochastic);
        if stochastic && opened[node.output] {
            return Err(invalid(&node.name, "its result is opened, so it must round exactly"));
        }
    }
    Ok(())
}

fn invalid(node: &str, why: impl Into<String>) -> Error {
    Error::invalid("verify", node, why)
}

/// A name that is safe to print.
fn shown(name: &str, index: usize) -> String {
    check_name(name).map_or_else(|_| format!("#{index}"), |()| name.to_owned())
}

/// Short and printable: a name from outside must not steer a terminal.
fn check_name(name: &str) -> Check<()> {
    let printable = !name.chars().any(char::is_control);
    ensure((1..=MAX_NAME).contains(&name.len()) && printable, || {
        format!("a name is empty, longer than {MAX_NAME} bytes or not printable")
    })
}

fn header(graph: &Graph) -> Check<()> {
    ensure(graph.version == VERSION, || {
        format!("version {} is not {VERSION}: use the program that wrote it", graph.version)
    })?;
    check_name(&graph.name)?;
    check_name(&graph.suite)?;
    ensure((1..=MAX_SATURATE).contains(&graph.activation_bits), || "activation_bits".into())?;
    let nodes = graph.nodes.len();
    ensure((1..=MAX_NODES).contains(&nodes), || format!("{nodes} nodes"))?;
    let tried = |node: &&Node| node.op.is_tried();
    let tried = graph.nodes.iter().filter(tried).count();
    ensure(tried <= MAX_TRIED, || format!("{tried} functions by Newton's iteration"))?;
    let states = graph.states.len();
    ensure(states <= MAX_NODES && graph.tensors.len() == nodes + 1 + states, || {
        format!("{} tensors for {nodes} nodes, {states} states and one input", graph.tensors.len())
    })
}

fn check_tensor(tensor: &Tensor) -> Check<usize> {
    check_name(&tensor.name)?;
    let format = &tensor.format;
    ensure((1..=63).contains(&format.bits), || format!("width {}", format.bits))?;
    ensure(format.scale.is_finite() && format.scale > 0.0, || format!("scale {}", format.scale))?;
    elements(&tensor.shape)
}

fn input(graph: &Graph) -> Check<()> {
    let tensor = graph.tensors.get(graph.input).ok_or("no such tensor")?;
    let [low, high] = graph.input_range;
    let bound = 1i64 << (tensor.format.bits - 1);
    ensure(low <= 0 && 0 < high && -bound <= low && high < bound, || {
        format!("range {low}..={high} does not fit {} bits", tensor.format.bits)
    })?;
    ensure(tensor.format.signed == (low < 0), || "sign and range disagree".into())?;
    let rows = &graph.input_rows;
    let inside = rows.iter().all(|[a, b]| low <= *a && *a <= 0 && 0 <= *b && *b <= high);
    let fits = rows.is_empty() || rows.len() == tensor.shape[0];
    ensure(inside && fits, || "ranges of its rows do not fit it".into())
}

/// Parts are named, sized and scaled, and fill their tensor.
fn parts(parts: &[Part], tensor: &Tensor) -> Check<()> {
    let mut names = BTreeSet::new();
    let mut total = 0usize;
    for part in parts {
        check_name(&part.name)?;
        let each = part.units.is_empty() || part.units.len() == part.len();
        let mut units = part.units.iter().chain([&part.unit]);
        let scaled = each && units.all(|unit| unit.is_finite() && *unit > 0.0);
        ensure(scaled && part.shape.len() <= MAX_AXES && !part.is_empty(), || {
            format!("its part `{}` has no possible shape or unit", part.name)
        })?;
        ensure(names.insert(&part.name), || format!("two parts are called `{}`", part.name))?;
        total = total.saturating_add(part.len());
    }
    let have = tensor.len();
    ensure(parts.is_empty() || total == have, || format!("its parts have {total} of {have} values"))
}

fn labels(graph: &Graph) -> Check<()> {
    graph.labels.iter().try_for_each(|label| check_name(label))?;
    let (have, want) = (graph.labels.len(), graph.tensors[graph.output].len());
    ensure(have == 0 || have == want, || format!("{have} labels for {want} outputs"))
}

fn nodes(graph: &Graph) -> Result<()> {
    let mut written = vec![false; graph.tensors.len()];
    written[graph.input] = true;
    graph.states.iter().for_each(|state| written[state.before] = true);
    let mut names = BTreeSet::new();
    let mut listed = 0usize;
    let known = graph.known();
    for (index, node) in graph.nodes.iter().enumerate() {
        let label = shown(&node.name, index);
        let unique = names.insert(&node.name);
        check_name(&node.name)
            .and_then(|()| ensure(unique, || "the name is taken".into()))
            .and_then(|()| wiring(node, &mut written))
            .and_then(|()| check_node(graph, node, &known))
            .and_then(|()| check_listed(graph, node, &mut listed))
            .map_err(|why| invalid(&label, why))?;
    }
    let given = |tensor: usize| {
        tensor == graph.input || graph.states.iter().any(|state| state.before == tensor)
    };
    let made = |tensor: usize| written.get(tensor).copied() == Some(true) && !given(tensor);
    for state in &graph.states {
        let why = || "no node writes what it is after an input".into();
        let label = shown(&graph.tensors[state.before].name, state.before);
        ensure(made(state.after), why).map_err(|why| invalid(&label, why))?;
    }
    let output = made(graph.output);
    ensure(output, || "no node writes it".into()).map_err(|why| invalid("output", why))
}

/// Counts the positions that a plan lists for a node.
fn check_listed(graph: &Graph, node: &Node, listed: &mut usize) -> Check<()> {
    *listed = listed.saturating_add(node.op.listed(&graph.site(node)));
    ensure(*listed <= MAX_LISTED, || {
        format!("windows and views read more than {MAX_LISTED} positions")
    })
}

/// Inputs exist already, the output does not; two inputs only where the operator takes two.
fn wiring(node: &Node, written: &mut [bool]) -> Check<()> {
    let (count, taken) = (node.inputs.len(), node.op.inputs());
    let arity = count.clamp(*taken.start(), *taken.end());
    ensure(count == arity, || format!("{count} inputs, needs {arity}"))?;
    for input in &node.inputs {
        let ready = written.get(*input).copied() == Some(true);
        ensure(ready, || format!("reads tensor #{input} before it exists"))?;
    }
    let slot = written.get_mut(node.output).ok_or("writes a tensor that does not exist")?;
    ensure(!*slot, || format!("tensor #{} is written twice", node.output))?;
    *slot = true;
    Ok(())
}

fn check_node(graph: &Graph, node: &Node, known: &[bool]) -> Check<()> {
    let site = graph.site(node);
    let signed = node.op.verify(&site, &known_inputs(node, known))?;
    // What is known not to be negative may be treated as if it were not.
    ensure(site.output.format.signed || !signed, || "the output's sign is wrong".into())
}

/// For each input of a node whether the client knows its values, out of [`Graph::known`].
fn known_inputs(node: &Node, known: &[bool]) -> Vec<bool> {
    node.inputs.iter().map(|input| known.get(*input) == Some(&true)).collect()
}
