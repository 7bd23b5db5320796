//! Packed layers between garbled circuits (FALCON, sections 5.3 to 5.5; GAZELLE has the
//! same shape).
//!
//! A circuit takes the shares mod p that a linear layer leaves, drops the low bits, takes
//! maxima, clips, and shares the result anew: mod p where linear layers alone read it, mod
//! a power of two else. A chain of rescale, pool and ReLU is one circuit. What is neither
//! linear nor a comparison runs on oblivious transfer as in the default suite.

use std::collections::{BTreeMap, BTreeSet};

use graph::{Graph, Linear, Node, ops};
use mpc::garbled::{Clip, Function, Ring};
use wire::{Error, Result};

use super::chain::{Chain, is_relu, keeps_ring};
use super::circuits::{Source, circuits, floor, probability, top};
use super::node_context::NodeContext;
use super::refusal::at;
use super::slots::{self, Facts};
use super::{falcon, registered};
use crate::linear::slots::{Packed, Packing, SlotLayer};
use crate::linear::small::SmallShares;
use crate::plan::settings::{Reveal, Settings};
use crate::step::local::{Known, SumPool, WeightedSum};
use crate::step::{Action, Opening, Step, windows};

pub(super) fn steps(graph: &Graph, settings: Settings, packing: Packing) -> Result<Vec<Step>> {
    slots::one_by_one(settings, packing)?;
    let facts = slots::facts(graph, true);
    let layers = match packing {
        Packing::Published(_) => falcon::layers(graph, &facts)?,
        _ => slots::layers(graph, &facts, packing)?,
    };
    let rings = layers.iter().map(|(index, layer)| Ok((*index, layer.ring()?)));
    let mut entries = rings.collect::<Result<_>>()?;
    if matches!(packing, Packing::Published(_)) {
        falcon::one_entry(&mut entries);
    }
    let mut planner = Planner {
        graph,
        facts,
        entries,
        layers,
        rings: BTreeMap::new(),
        converted: Vec::new(),
        small: BTreeMap::new(),
        done: BTreeSet::new(),
        steps: Vec::new(),
        // The steps that end a plan write two tensors of their own.
        next: graph.tensors.len() + 2,
    };
    for (index, node) in graph.nodes.iter().enumerate() {
        if !planner.done.contains(&index) {
            planner.node(index, node).map_err(|e| at(&node.name, e))?;
        }
    }
    planner.last(settings)?;
    Ok(planner.steps)
}

struct Planner<'a> {
    graph: &'a Graph,
    facts: Vec<Facts>,
    layers: BTreeMap<usize, Packed>,
    /// The ring of what each linear node multiplies.
    entries: BTreeMap<usize, Ring>,
    /// Tensors that are shared in such a ring.
    rings: BTreeMap<usize, Ring>,
    /// Tensors that were shared anew, in which ring, as which.
    converted: Vec<(usize, Ring, usize)>,
    /// Small shares of tensors.
    small: BTreeMap<usize, usize>,
    /// Nodes that run as part of another's circuit.
    done: BTreeSet<usize>,
    steps: Vec<Step>,
    /// The next tensor that is not the graph's.
    next: usize,
}

impl Planner<'_> {
    fn node(&mut self, index: usize, node: &Node) -> Result<()> {
        let first = slots::input(node);
        let op = &node.op;
        if let (Some(linear), Some(layer)) = (op.get::<Linear>(), self.layers.remove(&index)) {
            self.linear(index, node, linear, layer)
        } else if is_relu(op) || op.is::<ops::MaxPool>() {
            let mut chain = Chain::of(first, Function::default());
            self.take(&mut chain, index);
            self.extend(&mut chain);
            self.circuit(self.source(first), chain)
        } else if let Some(ops::Sum { multipliers, accumulator_bits, shift }) = op.get() {
            let width = (*accumulator_bits).max(self.bits(node.output) + shift);
            let reads = node.inputs.iter().map(|t| self.plain(*t)).collect::<Result<_>>()?;
            let sum = self.sum(&node.name, Some(index), reads, *multipliers, [width, *shift]);
            let source = Source { ring: Ring::Power(width), ..self.fresh(node, sum, width) };
            let mut chain = Chain::of(node.output, floor(*shift));
            self.extend(&mut chain);
            self.circuit(source, chain)
        } else if op.is::<ops::Extend>() {
            self.circuit(self.source(first), Chain::of(node.output, Function::default()))
        } else if keeps_ring(op) {
            self.local(index, node, first)
        } else {
            let inputs = node.inputs.iter().map(|t| self.plain(*t));
            let reads = inputs.collect::<Result<_>>()?;
            let action = registered::action(&NodeContext::plain(self.graph, node))?;
            self.steps.push(Step { reads, ..Step::of_node(self.graph, index, action) });
            Ok(())
        }
    }

    fn linear(&mut self, index: usize, node: &Node, linear: &Linear, layer: Packed) -> Result<()> {
        let width = slots::width(self.graph, node, linear);
        let entry = self.entries.get(&index).copied().ok_or_else(|| Error::misuse("no ring"))?;
        let (entered, ring) = match &layer {
            Packed::Published(published) => {
                let small = self.small(slots::input(node), entry, published)?;
                (small, falcon::results(linear, width))
            }
            _ => (self.entered(slots::input(node), entry)?, entry),
        };
        let products = Action::linear(SlotLayer { layer, bits: ring.bits(), half: 0 });
        let multiplied = self.push(node.name.clone(), Some(index), vec![entered], products);
        let mut source = Source { ring, ..self.fresh(node, multiplied, width) };
        if let (Some(factor), Some(addend)) = (linear.addend, node.inputs.get(1)) {
            let left = match source.ring {
                Ring::Power(_) => source.tensor,
                Ring::Prime(_) => self.shared_anew(&node.name, source, Ring::Power(width))?,
            };
            let reads = vec![left, self.plain(*addend)?];
            let (name, widths) = (format!("{} (sum)", node.name), [width, linear.shift]);
            let sum = self.sum(&name, None, reads, [1, factor], widths);
            source = Source { tensor: sum, ring: Ring::Power(width), ..source };
        }
        let drop = linear.shift;
        let function = Function { drop, floor: linear.addend.is_some(), clip: None };
        let mut chain = Chain::of(node.output, function);
        self.extend(&mut chain);
        self.circuit(source, chain)
    }

    /// A sum with the half unit that rounds it by `shift` bits, without that.
    fn sum(
        &mut self,
        name: &str,
        node: Option<usize>,
        reads: Vec<usize>,
        multipliers: [i64; 2],
        [width, shift]: [u32; 2],
    ) -> usize {
        let sum = WeightedSum { multipliers, width, shift };
        self.push(name.into(), node, reads, Action::local(sum))
    }

    /// The same values in other places or added up, in the ring in which they are.
    fn local(&mut self, index: usize, node: &Node, first: usize) -> Result<()> {
        let ring = self.rings.get(&first).copied();
        let action = match (node.op.get(), ring) {
            (Some(ops::SumPool(window)), Some(Ring::Prime(prime))) => {
                let inputs = self.graph.input_of(node, 0).len();
                Action::local(SumPool { windows: windows(window), inputs, modulus: Some(prime) })
            }
            _ => registered::action(&NodeContext::plain(self.graph, node))?,
        };
        self.steps.push(Step::of_node(self.graph, index, action));
        if let Some(ring) = ring {
            self.rings.insert(node.output, ring);
        }
        Ok(())
    }

    /// The nodes that alone read `tensor`; `None` when the client does, or several.
    fn reader(&self, tensor: usize) -> Option<usize> {
        let readers = self.graph.nodes.iter().enumerate();
        let mut readers = readers.filter(|(_, node)| node.inputs.contains(&tensor));
        let (only, _) = readers.next()?;
        (readers.next().is_none() && tensor != self.graph.output).then_some(only)
    }

    /// Makes all that follows part of the circuit, if it can be.
    fn extend(&mut self, chain: &mut Chain) {
        while let Some(reader) = self.reader(chain.end) {
            if !self.take(chain, reader) {
                return;
            }
        }
    }

    /// Makes one node part of the circuit; whether it can be. Rescaling, maxima and
    /// clipping never turn the order of two values, so they commute.
    fn take(&mut self, chain: &mut Chain, index: usize) -> bool {
        let Some(node) = self.graph.nodes.get(index) else { return false };
        if let Some(ops::Relu { saturate, low: 0 }) = node.op.get()
            && chain.function.clip.is_none()
        {
            chain.function.clip = Some(Clip { low: 0, saturate: *saturate });
        } else if let Some(ops::MaxPool(window)) = node.op.get()
            && chain.windows.is_none()
        {
            chain.windows = Some(windows(window));
        } else {
            return false;
        }
        chain.nodes.push(index);
        chain.end = node.output;
        self.done.insert(index);
        true
    }

    /// The circuit of `chain`.
    fn circuit(&mut self, source: Source, chain: Chain) -> Result<()> {
        let name = chain.nodes.iter().filter_map(|i| self.graph.nodes.get(*i));
        let names: Vec<&str> = name.map(|node| node.name.as_str()).collect();
        let name = match names.as_slice() {
            [] => self.written_by(chain.end),
            names => names.join(" + "),
        };
        let entry = self.ring_of_readers(chain.end);
        let to = entry.unwrap_or(Ring::Power(self.bits(chain.end)));
        let sliced = circuits(source, chain.windows.as_deref(), chain.function, to)?;
        if let Some(ring) = entry {
            self.rings.insert(chain.end, ring);
        }
        let node = chain.nodes.last().copied();
        let (reads, writes) = (vec![source.tensor], chain.end);
        self.steps.push(Step { name, node, reads, writes, action: Action::from(sliced) });
        Ok(())
    }

    /// What a step that only rescales is called.
    fn written_by(&self, tensor: usize) -> String {
        let writer = self.graph.nodes.iter().find(|node| node.output == tensor);
        format!("{} (rescale)", writer.map_or("input", |node| node.name.as_str()))
    }

    /// The one ring of linear layers, if they alone read `tensor`, rearranged perhaps.
    fn ring_of_readers(&self, tensor: usize) -> Option<Ring> {
        let ring = |(index, node): (usize, &Node)| {
            if node.op.is::<Linear>() && node.inputs.get(1) != Some(&tensor) {
                self.entries.get(&index).copied()
            } else if keeps_ring(&node.op) {
                self.ring_of_readers(node.output)
            } else {
                None
            }
        };
        let readers = self.graph.nodes.iter().enumerate();
        let mut rings = readers.filter(|(_, node)| node.inputs.contains(&tensor)).map(ring);
        let first = rings.next()??;
        (tensor != self.graph.output && rings.all(|ring| ring == Some(first))).then_some(first)
    }

    /// Small shares of `tensor`, of which there are never two.
    fn small(&mut self, tensor: usize, ring: Ring, layer: &falcon::Layer) -> Result<usize> {
        if let Some(ready) = self.small.get(&tensor) {
            return Ok(*ready);
        }
        let name =
            format!("{} (small)", self.graph.tensors.get(tensor).map_or("", |t| t.name.as_str()));
        let (entered, plan) = match self.facts(tensor).known {
            true => (tensor, None),
            false => (self.entered(tensor, ring)?, Some(layer.small()?)),
        };
        let small = self.push(name, None, vec![entered], Action::linear(SmallShares(plan)));
        self.small.insert(tensor, small);
        Ok(small)
    }

    /// `tensor` in the ring of linear layers.
    fn entered(&mut self, tensor: usize, ring: Ring) -> Result<usize> {
        if self.rings.get(&tensor) == Some(&ring) {
            return Ok(tensor);
        }
        if let Some(ready) = self.ready(tensor, ring) {
            return Ok(ready);
        }
        let name =
            format!("{} (enter)", self.graph.tensors.get(tensor).map_or("", |t| t.name.as_str()));
        let entered = match (self.facts(tensor).known, ring) {
            (true, Ring::Prime(prime)) => {
                self.push(name, None, vec![tensor], Action::local(Known(prime)))
            }
            _ => self.shared_anew(&name, self.source(tensor), ring)?,
        };
        self.converted.push((tensor, ring, entered));
        Ok(entered)
    }

    /// `tensor` mod a power of two, as others read it.
    fn plain(&mut self, tensor: usize) -> Result<usize> {
        if !self.rings.contains_key(&tensor) {
            return Ok(tensor);
        }
        let ring = Ring::Power(self.bits(tensor));
        if let Some(ready) = self.ready(tensor, ring) {
            return Ok(ready);
        }
        let name =
            format!("{} (leave)", self.graph.tensors.get(tensor).map_or("", |t| t.name.as_str()));
        let left = self.shared_anew(&name, self.source(tensor), ring)?;
        self.converted.push((tensor, ring, left));
        Ok(left)
    }

    /// What `tensor` was shared anew as in `ring`.
    fn ready(&self, tensor: usize, ring: Ring) -> Option<usize> {
        let made = self.converted.iter().find(|made| (made.0, made.1) == (tensor, ring));
        made.map(|(.., ready)| *ready)
    }

    /// The same values under other shares.
    fn shared_anew(&mut self, name: &str, source: Source, to: Ring) -> Result<usize> {
        let sliced = circuits(source, None, Function::default(), to)?;
        Ok(self.push(name.into(), None, vec![source.tensor], Action::from(sliced)))
    }

    fn facts(&self, tensor: usize) -> Facts {
        self.facts.get(tensor).copied().unwrap_or(Facts::NONE)
    }

    fn bits(&self, tensor: usize) -> u32 {
        self.graph.tensors.get(tensor).map_or(1, |t| t.format.bits)
    }

    /// A tensor of the graph as it is shared.
    fn source(&self, tensor: usize) -> Source {
        let ring = self.rings.get(&tensor).copied();
        let ring = ring.unwrap_or(Ring::Power(self.bits(tensor)));
        let count = self.graph.tensors.get(tensor).map_or(0, |t| t.len());
        Source { tensor, count, ring, width: self.facts(tensor).bits }
    }

    /// What a step of `node` wrote, with values of `width`.
    fn fresh(&self, node: &Node, tensor: usize, width: u32) -> Source {
        let count = self.graph.output_of(node).len();
        Source { tensor, count, ring: Ring::Power(width), width }
    }

    /// Adds a step that writes a tensor of its own; says which.
    fn push(
        &mut self,
        name: String,
        node: Option<usize>,
        reads: Vec<usize>,
        action: Action,
    ) -> usize {
        let writes = self.next;
        self.next += 1;
        self.steps.push(Step { name, node, reads, writes, action });
        writes
    }

    /// What ends every plan: the result, or what its policy lets the client know.
    fn last(&mut self, settings: Settings) -> Result<()> {
        let output = self.graph.output;
        let (source, bits) = (self.source(output), self.bits(output));
        let reads = vec![source.tensor];
        let (shown, action) = match settings.reveal {
            Reveal::Output => {
                let action = Action::Reveal(Opening { count: source.count, bits, signed: true });
                (self.plain(output)?, action)
            }
            Reveal::Bucket => {
                return Err(Error::misuse(
                    "buckets are found by OT, and not in suites of circuits",
                ));
            }
            Reveal::Label if source.count == 1 => {
                return Err(Error::misuse("the label of a single result is found by OT only"));
            }
            Reveal::Label => {
                let (sliced, bits) = top(1, source.count, source.ring, source.width)?;
                let label = self.push("argmax".into(), None, reads, Action::from(sliced));
                (label, Action::Reveal(Opening { count: 1, bits, signed: false }))
            }
            Reveal::Probability => {
                let (softmax, opened) =
                    probability(self.graph, settings, source.ring, source.width)?;
                (self.push("softmax".into(), None, reads, softmax), opened)
            }
        };
        self.push("result".into(), None, vec![shown], action);
        Ok(())
    }
}
