//! Shape inference for source graphs, which is also their verification.

use super::Program;
use super::floats::FloatTensor;
use super::node::SourceNode;
use crate::error::{Check, Error, Result};
use crate::ops::geometry::elements;
use std::collections::{BTreeMap, BTreeSet};

/// Shape of every tensor by name.
pub type Shapes = BTreeMap<String, Vec<usize>>;

impl Program {
    /// Shapes of all tensors; checks everything a pass could break, and every weight.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the node, with `import` as the pass.
    pub fn shapes(&self) -> Result<Shapes> {
        let shapes = self.inferred()?;
        for node in &self.source.nodes {
            for name in node.op.floats() {
                check_finite(name, &self.floats[name]).map_err(|why| invalid(&node.name, why))?;
            }
        }
        Ok(shapes)
    }

    /// Shapes of all tensors, as [`Program::shapes`] has them, without a look at each weight: for
    /// passes that ask after every change.
    ///
    /// # Errors
    /// [`Error::Invalid`] naming the node, with `import` as the pass.
    pub(crate) fn inferred(&self) -> Result<Shapes> {
        let source = &self.source;
        let mut names = BTreeSet::new();
        let mut shapes = Shapes::new();
        let input = &source.input;
        elements(&input.shape).map_err(|why| invalid(&input.name, why))?;
        shapes.insert(input.name.clone(), input.shape.clone());
        for state in &source.states {
            elements(&state.shape).map_err(|why| invalid(&state.name, why))?;
            if shapes.insert(state.name.clone(), state.shape.clone()).is_some() {
                return Err(invalid(&state.name, "an input or another state has this name"));
            }
        }
        for node in &source.nodes {
            let shape = self.infer(node, &shapes).map_err(|why| invalid(&node.name, why))?;
            if !names.insert(&node.name) {
                return Err(invalid(&node.name, "two nodes have this name"));
            }
            if shapes.insert(node.output.clone(), shape).is_some() {
                return Err(invalid(&node.name, format!("tensor `{}` exists", node.output)));
            }
        }
        for state in &source.states {
            let made = source.producer(&state.after).is_some();
            if !made || shapes.get(&state.after) != Some(&state.shape) {
                let why =
                    format!("no node writes its next value `{}`, or not in its shape", state.after);
                return Err(invalid(&state.name, why));
            }
        }
        match source.producer(&source.output) {
            Some(_) => Ok(shapes),
            None => Err(invalid(&source.output, "no node writes the graph's output")),
        }
    }

    fn infer(&self, node: &SourceNode, shapes: &Shapes) -> Check<Vec<usize>> {
        let inputs: Vec<&[usize]> = node
            .inputs
            .iter()
            .map(|name| {
                let known = shapes.get(name).map(Vec::as_slice);
                known.ok_or_else(|| format!("reads `{name}`, which nothing before it writes"))
            })
            .collect::<Check<_>>()?;
        for name in node.op.floats() {
            self.check_float(name)?;
        }
        let shape = node.op.shape(&inputs, &self.floats)?;
        elements(&shape)?;
        Ok(shape)
    }

    fn check_float(&self, name: &str) -> Check<()> {
        let tensor = self.floats.get(name).ok_or_else(|| format!("no weights named `{name}`"))?;
        let length = tensor.shape.iter().try_fold(1usize, |a, b| a.checked_mul(*b));
        let have = tensor.data.len();
        (length == Some(have))
            .then_some(())
            .ok_or_else(|| format!("`{name}` has {have} values, shape says otherwise"))
    }
}

/// Checks that all weights are numbers; chunks let the compiler use vectors.
fn check_finite(name: &str, tensor: &FloatTensor) -> Check<()> {
    let is_sound = |part: &[f32]| !part.iter().fold(false, |bad, value| bad | !value.is_finite());
    let finite = tensor.data.chunks(1 << 12).all(is_sound);
    finite.then_some(()).ok_or_else(|| format!("`{name}` has a value that is not finite"))
}

fn invalid(node: &str, why: impl Into<String>) -> Error {
    Error::invalid("import", node, why)
}
