//! The functions that nodes of transformers compute, by their integer definitions.

use crate::functions::starts::Start;
use crate::functions::{self, Gelu, LayerNorm, ReluSoftmax, Smu, Softmax};
use crate::ir::{Graph, Node, Op};
use crate::shapes::Check;

impl Graph {
    /// The softmax of a node, of rows as long as its input's last axis.
    ///
    /// # Errors
    /// What is wrong with the node's numbers.
    pub fn softmax(&self, node: &Node) -> Check<Softmax> {
        let columns = self.input_of(node, 0).shape.last().copied().unwrap_or(0);
        match node.op {
            Op::Softmax { bits, scale } => {
                Softmax::new(columns, bits, scale, self.output_of(node).format.bits)
            }
            _ => Err("is no softmax".into()),
        }
    }

    /// The GELU of a node.
    ///
    /// # Errors
    /// What is wrong with the node's numbers.
    pub fn gelu(&self, node: &Node) -> Check<Gelu> {
        match node.op {
            Op::Gelu { magnitude, scale } => Gelu::new(magnitude, scale),
            _ => Err("is no GELU".into()),
        }
    }

    /// The smooth maximum of a node.
    ///
    /// # Errors
    /// What is wrong with the node's numbers.
    pub fn smu(&self, node: &Node) -> Check<Smu> {
        match node.op {
            Op::Smu { smooth, newton } => {
                Smu::new(smooth, newton, self.output_of(node).format.bits)
            }
            _ => Err("is no smooth maximum".into()),
        }
    }

    /// The softmax of smooth maxima of a node, of rows as long as its input's last axis.
    ///
    /// # Errors
    /// What is wrong with the node's numbers.
    pub fn relu_softmax(&self, node: &Node) -> Check<ReluSoftmax> {
        let columns = self.input_of(node, 0).shape.last().copied().unwrap_or(0);
        match node.op {
            Op::ReluSoftmax { smooth, epsilon, newton, division } => {
                let bits = self.output_of(node).format.bits;
                ReluSoftmax::new(columns, smooth, epsilon, [newton, division], bits)
            }
            _ => Err("is no softmax of smooth maxima".into()),
        }
    }

    /// The normalisation of a node, of rows as long as its input's first axis.
    ///
    /// # Errors
    /// What is wrong with the node's numbers.
    pub fn layer_norm(&self, node: &Node) -> Check<LayerNorm> {
        let columns = self.input_of(node, 0).shape.first().copied().unwrap_or(0);
        match node.op {
            Op::LayerNorm { bits, least, unit, newton } => {
                let calibration = functions::Calibration { least, unit };
                let out_bits = self.output_of(node).format.bits;
                match newton {
                    Some(newton) => {
                        let root = (Start::Affine, newton);
                        LayerNorm::by_newton(columns, bits, calibration, out_bits, root)
                    }
                    None => LayerNorm::new(columns, bits, calibration, out_bits),
                }
            }
            _ => Err("is no normalisation".into()),
        }
    }
}
