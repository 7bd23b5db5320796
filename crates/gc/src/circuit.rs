//! Boolean circuits: built once per shape, then immutable.
//!
//! Exclusive or and negation are free: a [`Wire`] carries its negation with it, and
//! constants never make a gate. What no output depends on is left out, and the gates name
//! slots that are used again once their wire is dead (`liveness.rs`).

use std::fmt;

use wire::{Error, Result};

use crate::liveness;

/// A bit while a circuit is being built: a constant, an input or a gate's output, perhaps
/// negated. The low bit is the negation; node 0 is the constant 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wire(pub(crate) u32);

/// An integer, lowest bit first.
pub type Word = Vec<Wire>;

/// Widest output.
const WIDEST: usize = 63;
/// Most nodes of a circuit.
const MOST_NODES: usize = 1 << 27;

impl Wire {
    /// The constant 0.
    pub const ZERO: Self = Self(0);
    /// The constant 1.
    pub const ONE: Self = Self(1);

    /// Makes a constant.
    pub const fn constant(bit: bool) -> Self {
        Self(bit as u32)
    }

    /// Returns the wire's value, if it is a constant.
    pub const fn known(self) -> Option<bool> {
        if self.0 < 2 { Some(self.0 == 1) } else { None }
    }

    /// Returns the negation, which is free.
    pub const fn negated(self) -> Self {
        Self(self.0 ^ 1)
    }

    pub(crate) const fn node(self) -> usize {
        (self.0 >> 1) as usize
    }

    pub(crate) const fn is_negated(self) -> bool {
        self.0 & 1 == 1
    }

    const fn of_node(node: usize) -> Self {
        Self((node as u32) << 1)
    }
}

/// Where a node's value comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Node {
    Zero,
    Input,
    Xor(usize, usize),
    And(Wire, Wire),
}

/// A circuit being built. The arithmetic on words is in `words.rs`.
#[derive(Debug)]
pub struct Builder {
    nodes: Vec<Node>,
    garbler: Vec<usize>,
    evaluator: Vec<usize>,
    outputs: Vec<Output>,
}

/// A gate on slots. Operands and slots are [`Wire`]s whose node is a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gate {
    pub(crate) left: Wire,
    pub(crate) right: Wire,
    /// The slot written, twice, plus one for an AND.
    target: u32,
}

impl Gate {
    pub(crate) const fn new(left: Wire, right: Wire, slot: usize, is_and: bool) -> Self {
        Self { left, right, target: (slot as u32) << 1 | is_and as u32 }
    }

    #[inline]
    pub(crate) const fn slot(self) -> usize {
        (self.target >> 1) as usize
    }

    #[inline]
    pub(crate) const fn is_and(self) -> bool {
        self.target & 1 == 1
    }
}

/// An integer that comes out: its bits' slots (slot 0 is constant), lowest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) bits: Word,
    pub(crate) signed: bool,
    /// What decides whether the bits count, if they do not always.
    pub(crate) switch: Option<Switch>,
}

/// Bits of an output count where `on` is 1; and `more` counts `weight` where it is 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Switch {
    pub(crate) on: Wire,
    pub(crate) more: Wire,
    pub(crate) weight: i64,
}

/// A public circuit on bits of the garbler and bits of the evaluator; its outputs are
/// integers of at most 63 bits. Prints only its size.
#[derive(Clone, PartialEq, Eq)]
pub struct Circuit {
    pub(crate) garbler: usize,
    pub(crate) evaluator: usize,
    pub(crate) gates: Vec<Gate>,
    pub(crate) ands: usize,
    /// Slot 0 is the constant, then the garbler's inputs, the evaluator's, the rest.
    pub(crate) slots: usize,
    pub(crate) outputs: Vec<Output>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            nodes: vec![Node::Zero],
            garbler: Vec::new(),
            evaluator: Vec::new(),
            outputs: Vec::new(),
        }
    }
}

impl Builder {
    /// Makes an empty circuit.
    pub fn new() -> Self {
        Self::default()
    }

    fn push(&mut self, node: Node) -> Wire {
        self.nodes.push(node);
        Wire::of_node(self.nodes.len() - 1)
    }

    /// Returns a new word of `width` input bits of the garbler.
    pub fn garbler(&mut self, width: u32) -> Word {
        let word: Word = (0..width).map(|_| self.push(Node::Input)).collect();
        self.garbler.extend(word.iter().map(|wire| wire.node()));
        word
    }

    /// Returns a new word of `width` input bits of the evaluator.
    pub fn evaluator(&mut self, width: u32) -> Word {
        let word: Word = (0..width).map(|_| self.push(Node::Input)).collect();
        self.evaluator.extend(word.iter().map(|wire| wire.node()));
        word
    }

    /// Returns the exclusive or, which is free.
    pub fn xor(&mut self, a: Wire, b: Wire) -> Wire {
        let negation = (a.0 ^ b.0) & 1;
        match (a.node(), b.node()) {
            (0, node) | (node, 0) => Wire(Wire::of_node(node).0 | negation),
            (left, right) if left == right => Wire(negation),
            (left, right) => Wire(self.push(Node::Xor(left, right)).0 | negation),
        }
    }

    /// Returns the product: one AND gate unless an operand is constant or both are the same wire.
    pub fn and(&mut self, a: Wire, b: Wire) -> Wire {
        match (a.known(), b.known()) {
            (Some(false), _) | (_, Some(false)) => Wire::ZERO,
            (Some(true), _) => b,
            (_, Some(true)) => a,
            _ if a == b => a,
            _ if a == b.negated() => Wire::ZERO,
            _ => self.push(Node::And(a, b)),
        }
    }

    /// Returns `a or b`: one AND gate.
    pub fn or(&mut self, a: Wire, b: Wire) -> Wire {
        self.and(a.negated(), b.negated()).negated()
    }

    /// Returns `if_one` where `bit` is 1, else `if_zero`: one AND gate.
    pub fn select(&mut self, bit: Wire, if_one: Wire, if_zero: Wire) -> Wire {
        let differ = self.xor(if_one, if_zero);
        let change = self.and(bit, differ);
        self.xor(change, if_zero)
    }

    /// Declares the next output: an unsigned integer, or one in two's complement.
    pub fn output(&mut self, word: &[Wire], signed: bool) {
        self.outputs.push(Output { bits: word.to_vec(), signed, switch: None });
    }

    /// Declares the next output: an unsigned integer where `on` is 1, else 0; plus `weight` where `more` is 1. No
    /// wire is constant. Only circuits with tagged outputs may have such ones.
    pub(crate) fn output_where(&mut self, on: Wire, word: &[Wire], (more, weight): (Wire, i64)) {
        let switch = Some(Switch { on, more, weight });
        self.outputs.push(Output { bits: word.to_vec(), signed: false, switch });
    }

    /// Returns the finished circuit.
    ///
    /// # Errors
    /// [`Error::Misuse`] for an output without bits or with more than 63, for no output,
    /// and for more than 2^27 nodes.
    pub fn finish(self) -> Result<Circuit> {
        let legal = |output: &Output| (1..=WIDEST).contains(&output.bits.len());
        if self.outputs.is_empty() || !self.outputs.iter().all(legal) {
            return Err(Error::misuse("a circuit without outputs of 1 to 63 bits"));
        }
        if self.nodes.len() > MOST_NODES {
            return Err(Error::misuse("a circuit of more than 2^27 nodes; split it"));
        }
        let inputs: Vec<usize> = self.garbler.iter().chain(&self.evaluator).copied().collect();
        let words: Vec<Word> = self.outputs.iter().map(Output::wires).collect();
        let words: Vec<&[Wire]> = words.iter().map(Vec::as_slice).collect();
        let placed = liveness::place(&self.nodes, &inputs, &words);
        let outputs = placed.outputs.into_iter().zip(&self.outputs);
        Ok(Circuit {
            garbler: self.garbler.len(),
            evaluator: self.evaluator.len(),
            ands: placed.gates.iter().filter(|gate| gate.is_and()).count(),
            gates: placed.gates,
            slots: placed.slots,
            outputs: outputs.map(|(wires, output)| output.on_slots(wires)).collect(),
        })
    }
}

impl Circuit {
    /// Returns the number of AND gates: 32 bytes of table each in half-gates, 195 bits in three halves.
    pub fn and_gates(&self) -> usize {
        self.ands
    }

    /// Returns the number of input bits of the garbler.
    pub fn garbler_bits(&self) -> usize {
        self.garbler
    }

    /// Returns the number of input bits of the evaluator.
    pub fn evaluator_bits(&self) -> usize {
        self.evaluator
    }

    /// Integers that come out.
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// Returns the number of bits of output `at` that are not constant; 0 beyond the last output.
    pub fn output_bits(&self, at: usize) -> usize {
        let bits = self.outputs.get(at).map_or(&[][..], |output| &output.bits);
        bits.iter().filter(|bit| bit.known().is_none()).count()
    }

    /// Returns whether bits of an output count only where another one is 1.
    pub(crate) fn has_switches(&self) -> bool {
        self.outputs.iter().any(|output| output.switch.is_some())
    }

    /// Returns what comes out for these input bits: the oracle of every test.
    ///
    /// # Panics
    /// When there are fewer bits than inputs.
    pub fn run(&self, garbler: &[bool], evaluator: &[bool]) -> Vec<i64> {
        let words = |bits: &[bool]| bits.iter().map(|bit| u64::from(*bit)).collect::<Vec<_>>();
        let outputs = self.run_many(&words(garbler), &words(evaluator));
        outputs.iter().map(|lanes| lanes[0]).collect()
    }

    /// Runs the circuit in the clear on 64 instances at once: bit `i` of each word belongs to
    /// instance `i`.
    ///
    /// # Panics
    /// When there are fewer words than inputs.
    pub fn run_many(&self, garbler: &[u64], evaluator: &[u64]) -> Vec<[i64; 64]> {
        let mut slots = vec![0; self.slots];
        let inputs = garbler[..self.garbler].iter().chain(&evaluator[..self.evaluator]);
        slots[1..].iter_mut().zip(inputs).for_each(|(slot, word)| *slot = *word);
        let read = |slots: &[u64], wire: Wire| {
            slots[wire.node()] ^ u64::from(wire.is_negated()).wrapping_neg()
        };
        for gate in &self.gates {
            let (left, right) = (read(&slots, gate.left), read(&slots, gate.right));
            slots[gate.slot()] = if gate.is_and() { left & right } else { left ^ right };
        }
        let integer = |output: &Output| {
            let mut lanes = [0i64; 64];
            let mut add = |word: u64, weight: i64| {
                for (lane, value) in lanes.iter_mut().enumerate() {
                    *value += weight * ((word >> lane) & 1) as i64;
                }
            };
            let on = output.switch.map_or(u64::MAX, |switch| read(&slots, switch.on));
            for (at, bit) in output.bits.iter().enumerate() {
                add(read(&slots, *bit) & on, output.weight(at));
            }
            if let Some(switch) = output.switch {
                add(read(&slots, switch.more), switch.weight);
            }
            lanes
        };
        self.outputs.iter().map(integer).collect()
    }
}

impl Output {
    /// All wires that are read, those of the switch last.
    fn wires(&self) -> Word {
        let switch = self.switch.map(|switch| [switch.on, switch.more]);
        self.bits.iter().copied().chain(switch.into_iter().flatten()).collect()
    }

    /// Returns this output with these wires in place of its own, in the order of [`Output::wires`].
    fn on_slots(&self, mut wires: Word) -> Self {
        let own = wires.split_off(self.bits.len());
        let switch = match (self.switch, own.as_slice()) {
            (Some(switch), [on, more]) => Some(Switch { on: *on, more: *more, ..switch }),
            _ => None,
        };
        Self { bits: wires, signed: self.signed, switch }
    }

    /// What bit `at` adds when it is 1.
    pub(crate) const fn weight(&self, at: usize) -> i64 {
        let weight = 1i64 << at;
        if self.signed && at + 1 == self.bits.len() { -weight } else { weight }
    }
}

impl fmt::Debug for Circuit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (inputs, outputs) = (self.garbler + self.evaluator, self.outputs.len());
        write!(f, "Circuit({inputs} bits in, {outputs} integers out, {} ANDs)", self.ands)
    }
}
