//! Tensors that must have one scale, up to a known factor.

use crate::source::{Program, SourceNode};
use std::collections::BTreeMap;

/// Classes of tensors whose scales are tied together: a forest of names, each with the
/// ratio of its scale to its parent's.
pub(super) struct Links<'a> {
    parents: BTreeMap<&'a str, (&'a str, f64)>,
    /// The graph's input and its states, whose scales nothing else may choose, and the tensors that
    /// states are after an input, each with that of which it has the scale.
    fixed: Vec<(&'a str, &'a str)>,
}

impl<'a> Links<'a> {
    pub(super) fn new(program: &'a Program, activation_bits: u32) -> Self {
        let input = program.source.input.name.as_str();
        let mut fixed = vec![(input, input)];
        for state in &program.source.states {
            fixed.extend(
                [state.name.as_str(), state.after.as_str()].map(|name| (name, state.name.as_str())),
            );
        }
        let mut links = Self { parents: BTreeMap::new(), fixed };
        for node in &program.source.nodes {
            let dropped = dropped(program, node, activation_bits);
            let ratio = dropped.map(|bits| f64::from(bits).exp2()).or_else(|| node.op.ratio());
            if let Some(ratio) = ratio {
                for input in node.inputs.iter().take(node.op.tied_inputs()) {
                    links.tie(input, &node.output, ratio);
                }
            }
        }
        links
    }

    /// The name that stands for the class of `tensor`, and the tensor's scale in the
    /// scale of that.
    pub(super) fn root<'b>(&self, tensor: &'b str) -> (&'b str, f64)
    where
        'a: 'b,
    {
        let (mut name, mut ratio) = (tensor, 1.0);
        while let Some((parent, step)) = self.parents.get(name) {
            ratio *= step;
            name = parent;
        }
        (name, ratio)
    }

    /// The first tensor of fixed scale in the class of `tensor`, and the input or state whose scale
    /// it has.
    pub(super) fn fixed(&self, tensor: &str) -> Option<(&'a str, &'a str)> {
        let root = self.root(tensor).0;
        self.fixed.iter().copied().find(|(fixed, _)| self.root(fixed).0 == root)
    }

    /// Makes the scale of `b` that of `a` times `ratio`.
    fn tie(&mut self, a: &'a str, b: &'a str, ratio: f64) {
        let ((over, up), (under, down)) = (self.root(a), self.root(b));
        if over != under {
            self.parents.insert(under, (over, ratio * up / down));
        }
    }
}

/// Bits that a node drops from integers that are not negative, if that is what it does.
fn dropped(program: &Program, node: &SourceNode, activation_bits: u32) -> Option<u32> {
    let kept = node.op.kept_bits()?;
    program.source.unsigned_bits(node.inputs.first()?, activation_bits)?.checked_sub(kept)
}
