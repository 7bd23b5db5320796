//! Convolutions whose weights have few bits.

use super::checks::{expect, one};
use crate::error::Check;
use crate::ops::choice::WeightBits;
use crate::ops::geometry::{Conv as Geometry, check_conv};
use crate::source::floats::Floats;
use crate::source::operator::SourceOperator;
use serde::{Deserialize, Serialize};

/// Convolution of weights that are integers already, of few bits each:
/// `scale * (W*x) + bias`, per output channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuantisedConv {
    /// Rows and columns.
    pub kernel: [usize; 2],
    /// Rows and columns.
    pub stride: [usize; 2],
    /// Top, left, bottom, right.
    pub padding: [usize; 4],
    /// Rows and columns.
    pub dilation: [usize; 2],
    /// Number of groups.
    pub groups: usize,
    /// Whether the weights stand in the Winograd domain, for tiles of two.
    pub winograd: bool,
    /// Integers `[out, in / groups, rows, columns]`, or `[out, in, 4, 4]`.
    pub weight: String,
    /// What each bit of a weight adds to it, see [`WeightBits`].
    pub importance: Vec<i64>,
    /// What a weight without bits is.
    pub offset: i64,
    /// `[out]`, none of them zero.
    pub scale: String,
    /// `[out]`.
    pub bias: String,
}

impl SourceOperator for QuantisedConv {
    fn kind(&self) -> &'static str {
        "QuantisedConv"
    }

    fn floats(&self) -> Vec<&str> {
        vec![&self.weight, &self.scale, &self.bias]
    }

    fn is_product(&self) -> bool {
        true
    }

    fn shape(&self, inputs: &[&[usize]], floats: &Floats) -> Check<Vec<usize>> {
        let input = one(inputs)?;
        let conv = self.geometry(input, floats)?;
        let side = if self.winograd { [4, 4] } else { conv.kernel };
        let expected = [&[conv.out_channels, conv.group_channels()][..], &side].concat();
        expect(floats, &self.weight, &expected)?;
        for name in [&self.scale, &self.bias] {
            expect(floats, name, &[conv.out_channels])?;
        }
        self.weight_bits().check()?;
        if self.winograd && !is_dense(&conv) {
            return Err("has weights in the Winograd domain, but is no dense 3x3 kernel of \
                        stride 1"
                .into());
        }
        Ok(match input {
            [_] => vec![conv.out_channels],
            _ => vec![conv.out_channels, conv.out_height(), conv.out_width()],
        })
    }
}

impl QuantisedConv {
    /// What the bits of a weight stand for.
    pub(crate) fn weight_bits(&self) -> WeightBits {
        WeightBits { importance: self.importance.clone(), offset: self.offset }
    }

    /// Whether each position is multiplied by one matrix for each group.
    pub(crate) fn is_1x1(&self) -> bool {
        self.kernel == [1, 1]
    }

    /// The geometry on an input of that shape.
    pub(crate) fn geometry(&self, input: &[usize], floats: &Floats) -> Check<Geometry> {
        let Self { kernel, stride, padding, dilation, groups, .. } = *self;
        let out_channels = *floats[&self.weight].shape.first().unwrap_or(&0);
        let conv = match *input {
            [length] if (kernel, stride, padding, groups) == ([1, 1], [1, 1], [0; 4], 1) => {
                Geometry::fully_connected(length, out_channels)
            }
            [in_channels, in_height, in_width] => Geometry {
                in_channels,
                in_height,
                in_width,
                out_channels,
                kernel,
                stride,
                padding,
                dilation,
                groups,
            },
            _ => return Err(format!("Conv needs [channels, height, width], got {input:?}")),
        };
        check_conv(&conv)?;
        Ok(conv)
    }
}

/// Whether Winograd's algorithm computes the convolution.
fn is_dense(conv: &Geometry) -> bool {
    (conv.kernel, conv.stride, conv.dilation, conv.groups) == ([3, 3], [1, 1], [1, 1], 1)
}
