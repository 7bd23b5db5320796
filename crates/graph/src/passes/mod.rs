//! Rewrites of the source graph, each verified after it ran. They keep the
//! value of every tensor that keeps its name, so that calibrated ranges stay
//! valid.

mod affine;
mod affine_into_linear;
mod dead;
mod fold_batch_norm;
mod fuse_bias;
mod identity;
mod join_products;
mod merge_relu;
mod norm_into_linear;
mod pool_before_relu;
mod relu_past_concat;

use crate::Result;
use crate::source::Program;

/// A named rewrite.
pub struct Pass {
    /// Shown in errors.
    pub name: &'static str,
    /// The rewrite.
    pub run: fn(Program) -> Result<Program>,
}

/// The order in which [`run`] applies them. Biases are fused twice: before
/// batch normalisation, so that it finds the convolution, and after it.
pub const PASSES: [Pass; 12] = [
    Pass { name: "remove-dead", run: dead::run },
    Pass { name: "remove-identity", run: identity::run },
    Pass { name: "fuse-bias", run: fuse_bias::run },
    Pass { name: "fold-batch-norm", run: fold_batch_norm::run },
    Pass { name: "fuse-bias", run: fuse_bias::run },
    Pass { name: "norm-into-linear", run: norm_into_linear::run },
    Pass { name: "affine-into-linear", run: affine_into_linear::run },
    Pass { name: "affine-to-convolution", run: affine::run },
    Pass { name: "relu-past-concat", run: relu_past_concat::run },
    Pass { name: "pool-before-relu", run: pool_before_relu::run },
    Pass { name: "merge-relu", run: merge_relu::run },
    Pass { name: "remove-dead", run: dead::run },
];

/// What suites whose integers are rescaled, and whose products have no bits of their own, do
/// besides.
pub(crate) const RESCALED: [Pass; 1] = [Pass { name: "join-products", run: join_products::run }];

/// Applies all passes.
///
/// # Errors
/// [`crate::Error::Invalid`] naming `import` when the program is wrong from the
/// start, or the pass that broke it; [`crate::Error::Unsupported`] for what no
/// pass can express.
pub fn run(program: Program) -> Result<Program> {
    program.shapes()?;
    apply(program, &PASSES)
}

pub(crate) fn apply(mut program: Program, passes: &[Pass]) -> Result<Program> {
    for pass in passes {
        program = (pass.run)(program)?;
        program.shapes().map_err(|error| error.in_pass(pass.name))?;
    }
    Ok(program)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;
    use crate::Error;
    use crate::source::ops::{Conv, MaxPool, Relu};
    use crate::source::{FloatTensor, Floats, Source, SourceInput, SourceNode, SourceOp};
    use std::collections::BTreeMap;

    /// A program on an input `x`; the output is the last node's.
    pub(crate) fn program(shape: &[usize], nodes: Vec<SourceNode>, floats: Floats) -> Program {
        let output = nodes.last().unwrap().output.clone();
        let input = SourceInput { name: "x".into(), shape: shape.to_vec() };
        Program {
            source: Source {
                name: "test".into(),
                input,
                inputs: vec![],
                outputs: vec![],
                states: vec![],
                output,
                nodes,
                extra_bits: BTreeMap::new(),
            },
            floats,
        }
    }

    /// A node named after its output.
    pub(crate) fn node(inputs: &[&str], output: &str, op: SourceOp) -> SourceNode {
        let inputs = inputs.iter().map(|i| (*i).to_owned()).collect();
        SourceNode { name: output.to_uppercase(), inputs, output: output.into(), op }
    }

    pub(crate) fn relu() -> SourceOp {
        Relu { maximum: None, bits: None }.into()
    }

    pub(crate) fn max_pool() -> SourceOp {
        MaxPool { kernel: [2, 2], stride: [2, 2], padding: [0; 4] }.into()
    }

    /// A dense 1x1 convolution without bias.
    pub(crate) fn conv(weight: &str) -> SourceOp {
        SourceOp::from(Conv {
            kernel: [1, 1],
            stride: [1, 1],
            padding: [0; 4],
            dilation: [1, 1],
            groups: 1,
            weight: weight.into(),
            bias: None,
        })
    }

    pub(crate) fn floats(entries: &[(&str, &[usize], &[f32])]) -> Floats {
        let entry = |(name, shape, data): &(&str, &[usize], &[f32])| {
            ((*name).to_owned(), FloatTensor { shape: shape.to_vec(), data: data.to_vec() })
        };
        entries.iter().map(entry).collect()
    }

    #[test]
    fn a_broken_pass_is_named() {
        let start = program(&[4], vec![node(&["x"], "y", relu())], Floats::new());
        let break_it: fn(Program) -> Result<Program> = |mut program| {
            program.source.nodes[0].inputs = vec!["gone".into()];
            Ok(program)
        };
        let error = apply(start, &[Pass { name: "break-it", run: break_it }]).unwrap_err();
        assert!(matches!(&error, Error::Invalid { pass, .. } if pass == "break-it"));
        assert!(error.to_string().starts_with("after `break-it`: node `Y`: reads `gone`"));
    }

    #[test]
    fn a_wrong_import_is_named() {
        let start = program(&[4], vec![node(&["x"], "y", max_pool())], Floats::new());
        assert!(matches!(run(start), Err(Error::Invalid { pass, .. }) if pass == "import"));
    }
}
