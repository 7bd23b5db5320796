//! Ranges of values and the share widths that hold them. Lowering chooses
//! widths by these rules; [`crate::verify_model`] checks them against the
//! weights. Ranges include what stochastic rounding may add.

use crate::ir::{Conv, Graph, Linear, Node, NodeWeights, Op};

/// Largest distance between the interpreter's rescaled value and a protocol's.
const ROUNDING_SLACK: i128 = 2;

/// Closed interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: i128,
    pub(crate) high: i128,
}

impl Range {
    pub(crate) fn new(low: i128, high: i128) -> Self {
        Self { low, high }
    }

    /// The smallest interval around both.
    fn join(self, other: Self) -> Self {
        Self::new(self.low.min(other.low), self.high.max(other.high))
    }

    /// All sums; saturates far above every width.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self::new(self.low.saturating_add(other.low), self.high.saturating_add(other.high))
    }

    /// All products with `factor`; saturates far above every width.
    pub(crate) fn times(self, factor: i128) -> Self {
        let ends = [self.low.saturating_mul(factor), self.high.saturating_mul(factor)];
        Self::new(ends[0].min(ends[1]), ends[0].max(ends[1]))
    }

    /// After dropping `shift` bits of an accumulator that includes the rounding term.
    fn rescaled(self, shift: u32) -> Self {
        let slack = Self::new(-ROUNDING_SLACK, ROUNDING_SLACK);
        Self::new(self.low >> shift, self.high >> shift).plus(slack)
    }

    /// Width for which `|v| <= 2^(width-1) - 1`; 128 when nothing holds it.
    pub(crate) fn width(self) -> u32 {
        let magnitude = self.low.unsigned_abs().max(self.high.unsigned_abs());
        129 - magnitude.leading_zeros()
    }

    /// Width that holds differences of two values, as pools and argmax take them.
    pub(crate) fn difference_width(self) -> u32 {
        self.width() + 1
    }

    /// Width the fused saturating ReLU from `low` up needs: both `v - low` and
    /// `v - low - 2^saturate` stay clear of the wrap.
    pub(crate) fn relu_width(self, saturate: u32, low: i64) -> u32 {
        let moved = self.plus(Self::new(-i128::from(low), -i128::from(low)));
        moved.width_from_zero(saturate)
    }

    fn width_from_zero(self, saturate: u32) -> u32 {
        let guard = 1i128 << saturate;
        let holds = |bits: u32| {
            let half = 1i128 << (bits - 1);
            guard - half <= self.low && self.high < half - guard
        };
        (saturate + 2..=126).find(|bits| holds(*bits)).unwrap_or(128)
    }
}

/// The rounding term of a shift.
pub(crate) fn half(shift: u32) -> i64 {
    if shift == 0 { 0 } else { 1 << (shift - 1) }
}

/// Range of the accumulator, rounding term included, over all output channels
/// and every input in `inputs`; padded positions are covered because zero is.
pub(crate) fn accumulator(linear: &Linear, weights: &NodeWeights, inputs: &[Range]) -> Range {
    let zero = Range::new(0, 0);
    let input = inputs[0].join(zero);
    let skip = match (linear.addend, inputs.get(1)) {
        (Some(factor), Some(skip)) => skip.times(i128::from(factor)),
        _ => zero,
    };
    let rounding = i128::from(half(linear.shift));
    let per_channel = taps_per_channel(&linear.conv);
    let channels = weights.weight.chunks_exact(per_channel).zip(&weights.bias);
    let sums = channels.map(|(row, bias)| {
        let (mut positive, mut negative) = (0i128, 0i128);
        for w in row {
            positive += i128::from((*w).max(0));
            negative += i128::from((*w).min(0));
        }
        let constant = i128::from(*bias) + rounding;
        input.times(positive).plus(input.times(negative)).plus(Range::new(constant, constant))
    });
    sums.reduce(Range::join).unwrap_or(zero).plus(skip)
}

/// Weights that one output channel reads; at least 1.
pub(crate) fn taps_per_channel(conv: &Conv) -> usize {
    (conv.group_channels() * conv.kernel[0] * conv.kernel[1]).max(1)
}

/// Range of a `Sum`'s accumulator, rounding term included.
pub(crate) fn sum_accumulator(multipliers: [i64; 2], shift: u32, inputs: &[Range]) -> Range {
    let rounding = i128::from(half(shift));
    let [a, b] = [0, 1].map(|i| inputs[i].times(i128::from(multipliers[i])));
    a.plus(b).plus(Range::new(rounding, rounding))
}

/// Range of a node's output. Weights may be absent only for nodes without any.
pub(crate) fn output_range(node: &Node, weights: Option<&NodeWeights>, inputs: &[Range]) -> Range {
    match &node.op {
        Op::Linear(linear) => match weights {
            Some(weights) => accumulator(linear, weights, inputs).rescaled(linear.shift),
            None => Range::new(0, 0),
        },
        Op::Relu { saturate, low } => {
            let low = i128::from(*low);
            Range::new(low, low + (1 << saturate) - 1)
        }
        Op::Offset => {
            let constants = weights.map_or(&[][..], |weights| &weights.bias);
            let constants = || constants.iter().copied().map(i128::from);
            let (low, high) = (constants().min().unwrap_or(0), constants().max().unwrap_or(0));
            inputs[0].plus(Range::new(low, high))
        }
        Op::MaxPool(_) | Op::Reshape | Op::Extend | Op::View(_) => inputs[0],
        Op::Concat => inputs.iter().copied().reduce(Range::join).unwrap_or(Range::new(0, 0)),
        Op::Pad { .. } => inputs[0].join(Range::new(0, 0)),
        Op::Product { .. } => product(inputs, node.inputs[0] == node.inputs[1]),
        Op::Lookup { values, .. } => {
            let values = || values.iter().copied().map(i128::from);
            Range::new(values().min().unwrap_or(0), values().max().unwrap_or(0))
        }
        Op::SumPool(window) => inputs[0].join(Range::new(0, 0)).times(window.size() as i128),
        Op::Sum { multipliers, shift, .. } => {
            sum_accumulator(*multipliers, *shift, inputs).rescaled(*shift)
        }
    }
}

/// All products of a value of the first and one of the second input, or squares.
fn product(inputs: &[Range], square: bool) -> Range {
    let [a, b] = [inputs[0], inputs[1]];
    let ends = a.times(b.low).join(a.times(b.high));
    if square { Range::new(ends.low.max(0), ends.high) } else { ends }
}

/// Range of the graph's input.
pub(crate) fn input_range(graph: &Graph) -> Range {
    Range::new(graph.input_range[0].into(), graph.input_range[1].into())
}

/// Width that `node` needs of an input with this range, whatever its own output's width.
pub(crate) fn width_for_reader(node: &Node, range: Range) -> u32 {
    match &node.op {
        Op::Linear(Linear { accumulator_bits, .. }) | Op::Sum { accumulator_bits, .. } => {
            *accumulator_bits
        }
        Op::Relu { saturate, low } => range.relu_width(*saturate, *low),
        Op::MaxPool(_) => range.difference_width(),
        Op::SumPool(_) | Op::Offset | Op::Reshape | Op::Concat | Op::View(_) | Op::Pad { .. } => {
            range.width()
        }
        Op::Extend => range.width() + 1,
        Op::Product { factor_bits } => factor_bits[0].max(factor_bits[1]),
        Op::Lookup { values, .. } => values.len().ilog2(),
    }
}

/// Width a tensor needs for its values alone.
pub(crate) fn width_of_values(node: Option<&Node>, range: Range, is_output: bool) -> u32 {
    let saturated = matches!(node, Some(Node { op: Op::Relu { .. }, .. }));
    if is_output || saturated { range.difference_width() } else { range.width() }
}
