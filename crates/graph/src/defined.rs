//! The functions that nodes of transformers compute, by their integer definitions.

use crate::error::Check;
use crate::functions::{Fold, Gelu, LayerNorm, ReluSoftmax, Smu, Softmax};
use crate::ir::{Graph, Node};
use crate::ops;

impl Graph {
    /// Returns the softmax of a node, of rows as long as its input's last axis.
    ///
    /// # Errors
    /// The error says in words which of the node's numbers cannot be.
    pub fn softmax(&self, node: &Node) -> Check<Softmax> {
        let operator = node.op.get::<ops::Softmax>().ok_or("is no softmax")?;
        operator.function(&self.site(node))
    }

    /// Returns the GELU of a node.
    ///
    /// # Errors
    /// The error says in words which of the node's numbers cannot be.
    pub fn gelu(&self, node: &Node) -> Check<Gelu> {
        let operator = node.op.get::<ops::Gelu>().ok_or("is no GELU")?;
        operator.function()
    }

    /// Returns the smooth function of a folded argument of a node.
    ///
    /// # Errors
    /// The error says in words which of the node's numbers cannot be.
    pub fn fold(&self, node: &Node) -> Check<Fold> {
        let operator = node.op.get::<ops::Fold>().ok_or("is no function of a folded argument")?;
        operator.function()
    }

    /// Returns the smooth maximum of a node.
    ///
    /// # Errors
    /// The error says in words which of the node's numbers cannot be.
    pub fn smu(&self, node: &Node) -> Check<Smu> {
        let operator = node.op.get::<ops::Smu>().ok_or("is no smooth maximum")?;
        operator.function(&self.site(node))
    }

    /// Returns the softmax of smooth maxima of a node, of rows as long as its input's last axis.
    ///
    /// # Errors
    /// The error says in words which of the node's numbers cannot be.
    pub fn relu_softmax(&self, node: &Node) -> Check<ReluSoftmax> {
        let operator = node.op.get::<ops::ReluSoftmax>().ok_or("is no softmax of smooth maxima")?;
        operator.function(&self.site(node))
    }

    /// Returns the normalisation of a node, of rows as long as its input's first axis.
    ///
    /// # Errors
    /// The error says in words which of the node's numbers cannot be.
    pub fn layer_norm(&self, node: &Node) -> Check<LayerNorm> {
        let operator = node.op.get::<ops::LayerNorm>().ok_or("is no normalisation")?;
        operator.function(&self.site(node))
    }
}
