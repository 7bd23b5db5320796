//! Share widths: every value fits, and every reader finds the width it needs.

use crate::error::{Error, Result};
use crate::ir::{Format, Graph, Model, Node, NodeWeights, Tensor};
use crate::model::{ranges, width_of_values};
use crate::ops::{Extend, Known, Linear, Sum, Winograd};
use pricing::fixed::message::{EXTENSION_BITS, EXTENSION_ROUNDS, INPUT_BITS};
use std::collections::BTreeMap;

mod ot;
mod reassign;

pub(crate) use reassign::without_widths;
pub use reassign::{in_graph, reassigned, variants};

/// Widest accumulator that the linear protocols are given.
const WIDEST: u32 = 40;
/// Widest shares that anything else works on: sums and norms of finely scaled residuals.
const WIDEST_LOCAL: u32 = 48;
/// Bits on the wire that are worth the two rounds of an extension, under encryption and by
/// oblivious transfer.
const WORTH_EXTENDING: [usize; 2] = [EXTENSION_BITS, EXTENSION_ROUNDS * ot::ROUND];
/// What the name of an extension has behind that of the tensor it extends.
const EXTENDED: &str = ".extended";

/// Sets `bits` of every tensor and `accumulator_bits` of every node to the
/// smallest values that satisfy [`crate::verify_model`], with extensions where a
/// reader needs much wider shares than a tensor's values.
pub(super) fn assign(model: &mut Model, by_ot: bool) -> Result<()> {
    let needs = Needs::of(model);
    needs.choose(&mut model.graph);
    // Functions know their inputs' widths now.
    let needs = Needs::of(model);
    needs.choose(&mut model.graph);
    let needs = Needs::of(model);
    let Model { graph, weights } = model;
    let worth = WORTH_EXTENDING[usize::from(by_ot)];
    needs.extend(graph, by_ot, worth, |at| make_room(weights, at));
    refuse_wide(&model.graph)
}

/// What is known of a model's values, and what its weights need: no choice of widths changes
/// it.
#[derive(Clone)]
struct Needs {
    /// The facts that are known about each tensor's values, by the tensor's index.
    ranges: Vec<Known>,
    /// Widths of accumulators, by the tensor that is written.
    accumulators: BTreeMap<usize, u32>,
    /// Widths of sums of products in the Winograd domain, by the tensor that is written.
    products: BTreeMap<usize, u32>,
}

impl Needs {
    fn of(model: &Model) -> Self {
        let (ranges, graph) = (ranges(model), &model.graph);
        let (mut accumulators, mut products) = (BTreeMap::new(), BTreeMap::new());
        for (index, node) in graph.nodes.iter().enumerate() {
            let inputs: Vec<Known> = node.inputs.iter().map(|i| ranges[*i].clone()).collect();
            if let (Some(layer), Some(weights)) =
                (node.op.get::<Winograd>(), model.weights.get(&index))
            {
                let sums = layer.product_range(weights, &inputs[0]);
                products.insert(node.output, sums.width().max(2));
            }
            let Some(range) = node.op.sums(&model.site(index), &inputs) else { continue };
            accumulators.insert(node.output, range.width().max(2));
        }
        Self { ranges, accumulators, products }
    }

    /// Extends what saves at least `worth` bits on the wire, and says where a node is inserted.
    fn extend(
        mut self,
        graph: &mut Graph,
        by_ot: bool,
        worth: usize,
        mut inserted: impl FnMut(usize),
    ) {
        while let Some(tensor) = narrow(graph, &self.ranges, by_ot, worth) {
            inserted(extend(graph, tensor));
            self.ranges.push(self.ranges[tensor].clone());
            self.choose(graph);
        }
    }

    fn choose(&self, graph: &mut Graph) {
        let ranges = &self.ranges;
        let mut bits = values(graph, ranges);
        for node in &mut graph.nodes {
            let inputs: Vec<Known> = node.inputs.iter().map(|i| ranges[*i].clone()).collect();
            let accumulator = self.accumulators.get(&node.output).copied();
            node.op.choose_widths(&inputs, accumulator);
        }
        self.spread(graph, &mut bits);
        for (tensor, bits) in graph.tensors.iter_mut().zip(bits) {
            tensor.format.bits = bits;
        }
    }

    /// Needs travel towards the input, and across the nodes that keep a width
    /// both ways, hence more than one sweep when a tensor has several readers. Without
    /// extensions they may grow for ever: a tensor beside one that is computed from it.
    fn spread(&self, graph: &mut Graph, bits: &mut Vec<u32>) {
        loop {
            let before = bits.clone();
            for node in graph.nodes.iter_mut().rev() {
                let out = bits[node.output];
                node.op.widen(out);
                if let Some(layer) = node.op.get_mut() {
                    ot::choose_products(layer, self.products[&node.output]);
                }
                let keeps = node.op.keeps_width();
                for input in &node.inputs {
                    let own = if keeps { out } else { 1 };
                    let signed = graph.tensors[*input].format.signed;
                    let need = node.op.reads(signed, self.ranges[*input].range).max(own);
                    bits[*input] = bits[*input].max(need);
                }
                if keeps {
                    let widest = node.inputs.iter().map(|input| bits[*input]).max();
                    bits[node.output] = widest.unwrap_or(out);
                }
                if node.op == Extend {
                    bits[node.output] = out.max(bits[node.inputs[0]] + 1);
                }
            }
            for state in &graph.states {
                // Shares of one become shares of the other.
                let widest = bits[state.before].max(bits[state.after]);
                (bits[state.before], bits[state.after]) = (widest, widest);
            }
            if *bits == before || bits.iter().any(|bits| *bits > 2 * WIDEST_LOCAL) {
                break;
            }
        }
    }
}

/// Widths that the values alone need.
fn values(graph: &Graph, ranges: &[Known]) -> Vec<u32> {
    let written = Neighbours::of(graph);
    let width = |(index, known): (usize, &Known)| match written
        .writer(index)
        .is_some_and(|node| node.op.fixes_width())
    {
        true => graph.tensors[index].format.bits,
        false => width_of_values(graph, index, known.range),
    };
    ranges.iter().enumerate().map(width).collect()
}

/// The last tensor whose readers need far wider shares than its values do, and that no
/// protocol widens on the way. An extension is as wide as its readers need already: where
/// that is too much, another one would not help.
fn narrow(graph: &Graph, ranges: &[Known], by_ot: bool, worth: usize) -> Option<usize> {
    let (tensors, around) = ((0..graph.tensors.len()).rev(), Neighbours::of(graph));
    let mut candidates = tensors.filter(|tensor| {
        let readers = around.readers(*tensor);
        let need = readers.map(|reader| accumulator(reader).unwrap_or(0)).max();
        // Extended shares have a bit to spare.
        let have = ranges[*tensor].width() + 1;
        let gained = need.unwrap_or(0).saturating_sub(have);
        let wide = around.origins(*tensor).any(is_too_wide);
        let price = |origin| match by_ot {
            true => ot::price(graph, origin),
            false => price(graph, origin),
        };
        let each = around.origins(*tensor).map(price).sum::<usize>();
        let worth = each.saturating_mul(gained as usize) >= worth;
        let endless = graph.tensors[*tensor].format.bits > WIDEST_LOCAL;
        let extended = around.writer(*tensor).is_some_and(|node| node.op == Extend);
        !extended && gained > 0 && (endless || worth || wide)
    });
    candidates.next()
}

/// About how many bits more a node sends for each bit that its output gets wider than an
/// extension of it would: a ReLU none, since it extends its result itself. Behind a product
/// both ciphertexts grow, and so does what wrote its input.
fn price(graph: &Graph, node: &Node) -> usize {
    let results = graph.output_of(node).len();
    match node.op.is::<Linear>() || node.op.is::<Sum>() {
        true => results + INPUT_BITS * graph.input_of(node, 0).len(),
        false => 0,
    }
}

/// Who writes each tensor of a graph, and who reads it.
struct Neighbours<'a> {
    writers: Vec<Option<&'a Node>>,
    readers: Vec<Vec<&'a Node>>,
}

impl<'a> Neighbours<'a> {
    fn of(graph: &'a Graph) -> Self {
        let count = graph.tensors.len();
        let mut around = Self { writers: vec![None; count], readers: vec![Vec::new(); count] };
        for node in &graph.nodes {
            around.writers[node.output] = Some(node);
            for (place, input) in node.inputs.iter().enumerate() {
                if !node.inputs[..place].contains(input) {
                    around.readers[*input].push(node);
                }
            }
        }
        around
    }

    fn writer(&self, tensor: usize) -> Option<&'a Node> {
        self.writers[tensor]
    }

    fn readers(&self, tensor: usize) -> impl Iterator<Item = &'a Node> + '_ {
        self.readers[tensor].iter().copied()
    }

    /// The nodes whose output `tensor` is, seen through those that keep a width.
    fn origins(&self, tensor: usize) -> impl Iterator<Item = &'a Node> + '_ {
        let mut tensors = vec![tensor];
        std::iter::from_fn(move || {
            loop {
                let Some(node) = self.writer(tensors.pop()?) else { continue };
                if !node.op.keeps_width() {
                    return Some(node);
                }
                tensors.extend(&node.inputs);
            }
        })
    }
}

/// The width at which a node works on shares that it is given and passes on.
fn accumulator(node: &Node) -> Option<u32> {
    node.op.working_bits()
}

/// The widest shares that a node's protocol works on.
fn widest(node: &Node) -> u32 {
    if node.op.is_product() { WIDEST } else { WIDEST_LOCAL }
}

fn is_too_wide(node: &Node) -> bool {
    accumulator(node).is_some_and(|bits| bits > widest(node))
}

/// Lets the linear nodes and sums that read `tensor` read an extension of it, and returns
/// where that node is.
fn extend(graph: &mut Graph, tensor: usize) -> usize {
    let writer = graph.nodes.iter().position(|node| node.output == tensor);
    let at = writer.map_or(0, |writer| writer + 1);
    let wide = graph.tensors.len();
    let Tensor { name, shape, format } = graph.tensors[tensor].clone();
    let name = unused(graph, &format!("{name}{EXTENDED}"));
    graph.tensors.push(Tensor { name: name.clone(), shape, format: Format { bits: 1, ..format } });
    for node in &mut graph.nodes {
        if accumulator(node).is_some() {
            node.inputs.iter_mut().filter(|i| **i == tensor).for_each(|input| *input = wide);
        }
    }
    graph.nodes.insert(at, Node { name, op: Extend.into(), inputs: vec![tensor], output: wide });
    at
}

/// Inserts a node in front of the one at `at`.
pub(super) fn insert(model: &mut Model, at: usize, node: Node) {
    model.graph.nodes.insert(at, node);
    make_room(&mut model.weights, at);
}

/// Moves the weights of nodes from `at` on one further.
fn make_room(weights: &mut BTreeMap<usize, NodeWeights>, at: usize) {
    let all = std::mem::take(weights).into_iter();
    *weights = all.map(|(index, w)| (index + usize::from(index >= at), w)).collect();
}

/// `base`, with primes until no tensor or node is called so.
pub(super) fn unused(graph: &Graph, base: &str) -> String {
    let mut name = base.to_owned();
    let taken = |name: &str| {
        let tensors = graph.tensors.iter().map(|tensor| &tensor.name);
        tensors.chain(graph.nodes.iter().map(|node| &node.name)).any(|other| other == name)
    };
    while taken(&name) {
        name.push('\'');
    }
    name
}

fn refuse_wide(graph: &Graph) -> Result<()> {
    for node in &graph.nodes {
        let bits = match accumulator(node) {
            Some(bits) => bits,
            None => graph.output_of(node).format.bits,
        };
        let widest = widest(node);
        if bits > widest {
            let what = format!("needs a width of {bits} bits, at most {widest} are possible");
            let instead = "use fewer activation or weight bits, or put a ReLU between the layers";
            return Err(Error::unsupported(&node.name, what, instead));
        }
    }
    Ok(())
}
