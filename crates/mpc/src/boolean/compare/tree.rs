//! Leaves and the tree of gates that joins them: how a comparison in digits of one width is planned.

use super::Comparison;
use super::leaves::Leaf;
use crate::boolean::gmw::{Gate, Partner, Wire};

/// A node of the tree while it is built.
struct Node {
    greater: Wire,
    equal: Option<Wire>,
    zero: Option<Wire>,
}

impl Comparison {
    /// Plans a comparison of `bits` and, where `low` is less, a test of the middle, in digits of
    /// `width` bits.
    pub(super) fn tree(low: u32, bits: u32, width: u32) -> Self {
        let mut plan = Self::empty(low, bits);
        let low_nodes = plan.digits(0..low, false, width);
        let middle_nodes = plan.digits(low..bits, true, width);
        let (below, depth) = plan.reduce(low_nodes);
        let (middle, middle_depth) = plan.reduce(middle_nodes);
        plan.join(below, middle, depth.max(middle_depth));
        plan
    }

    fn digits(&mut self, range: std::ops::Range<u32>, middle: bool, digit: u32) -> Vec<Node> {
        let mut nodes = Vec::new();
        let mut shift = range.start;
        while shift < range.end {
            let width = digit.min(range.end - shift);
            let greater = self.circuit.wire();
            let equal = (shift > 0).then(|| self.circuit.wire());
            let zero = middle.then(|| self.circuit.wire());
            self.leaves.push(Leaf { shift, width, equal: equal.is_some(), zero: zero.is_some() });
            nodes.push(Node { greater, equal, zero });
            shift += width;
        }
        nodes
    }

    /// Joins neighbours level by level, lowest digit first.
    fn reduce(&mut self, mut nodes: Vec<Node>) -> (Option<Node>, usize) {
        let mut level = 0;
        while nodes.len() > 1 {
            let mut joined = Vec::with_capacity(nodes.len().div_ceil(2));
            let mut rest = nodes.into_iter();
            while let Some(low) = rest.next() {
                joined.push(match rest.next() {
                    Some(high) => self.merge(level, &low, &high),
                    None => low,
                });
            }
            nodes = joined;
            level += 1;
        }
        (nodes.pop(), level)
    }

    fn merge(&mut self, level: usize, low: &Node, high: &Node) -> Node {
        let circuit = &mut self.circuit;
        let mut product = |operand: Option<Wire>, factors: &[(Option<Wire>, Option<Wire>)]| {
            let mut outputs = Vec::new();
            let mut partners = Vec::new();
            for (factor, base) in factors {
                let output = factor.map(|_| circuit.wire());
                if let (Some(factor), Some(output)) = (*factor, output) {
                    let base = base.iter().copied().collect();
                    partners.push(Partner { factor: vec![factor], base, output });
                }
                outputs.push(output);
            }
            if let (Some(operand), false) = (operand, partners.is_empty()) {
                circuit.push(level, Gate { operand: vec![operand], partners });
            }
            outputs
        };
        let both =
            product(high.equal, &[(Some(low.greater), Some(high.greater)), (low.equal, None)]);
        let zero = product(high.zero, &[(low.zero, None)]);
        let output = |outputs: &[Option<Wire>], i: usize| outputs.get(i).copied().flatten();
        Node {
            greater: output(&both, 0).unwrap_or(high.greater),
            equal: output(&both, 1),
            zero: output(&zero, 0),
        }
    }

    /// Feeds the carry of the low part into the middle.
    fn join(&mut self, below: Option<Node>, middle: Option<Node>, level: usize) {
        let (Some(below), Some(middle)) = (&below, &middle) else {
            let only = below.or(middle);
            self.greater = only.iter().map(|node| node.greater).collect();
            self.middle_zero = only.and_then(|node| node.zero).map(|zero| vec![zero]);
            return;
        };
        let (Some(equal), Some(zero)) = (middle.equal, middle.zero) else { return };
        let (carry, found) = (self.circuit.wire(), self.circuit.wire());
        let partners = vec![
            Partner { factor: vec![equal], base: vec![middle.greater], output: carry },
            Partner { factor: vec![equal, zero], base: vec![zero], output: found },
        ];
        self.circuit.push(level, Gate { operand: vec![below.greater], partners });
        (self.greater, self.middle_zero) = (vec![carry], Some(vec![found]));
    }

    /// Plans [`Comparison::with_halves`] in digits of `width` bits.
    pub(super) fn tree_with_halves(low: u32, bits: u32, width: u32, interior: bool) -> Self {
        let mut plan = Self::empty(low, bits);
        let below = plan.digits(0..low - 1, interior, width);
        let bit = plan.digits(low - 1..low, interior, width).pop();
        let middle = plan.digits(low..bits, true, width);
        let (below, depth) = plan.reduce(below);
        let (middle, middle_depth) = plan.reduce(middle);
        let (Some(below), Some(bit)) = (below, bit) else { return plan };
        let carried = plan.merge(depth, &below, &bit);
        let zero = carried.zero;
        let level = (depth + 1).max(middle_depth);
        plan.join(Some(carried), middle, level);
        let covered = plan.middle_zero.clone();
        if let (Some(covered), Some(operand)) = (&covered, zero) {
            let output = plan.circuit.wire();
            let partners = vec![Partner { factor: covered.clone(), base: covered.clone(), output }];
            plan.circuit.push(level + 1, Gate { operand: vec![operand], partners });
            plan.interior = Some(vec![output]);
        }
        if let (Some(operand), Some(equal)) = (covered, bit.equal) {
            let output = plan.circuit.wire();
            // The bit of the sum: both parties' and the carry into it.
            let factor = vec![equal, below.greater];
            let partners = vec![Partner { factor, base: Vec::new(), output }];
            plan.circuit.push(level + 1, Gate { operand, partners });
            plan.upper_half = Some(vec![output]);
        }
        plan
    }
}
