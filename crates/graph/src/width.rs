//! Ranges of values and the share widths that hold them. Lowering chooses
//! widths by these rules; [`crate::verify_model`] checks them against the
//! weights. Ranges include what stochastic rounding may add.

pub(crate) mod winograd;

use crate::arrange::last_viewed;
use crate::functions;
use crate::ir::{Conv, Embedding, Graph, Linear, MatMul, Node, NodeWeights, Op, View};

/// Beyond every width.
const FAR: i128 = 1 << 62;

/// Largest distance between the interpreter's rescaled value and a protocol's.
const ROUNDING_SLACK: i128 = 2;

/// Closed interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) low: i128,
    pub(crate) high: i128,
}

/// What is known of a tensor's values, as a range and beyond.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    pub(crate) range: Range,
    /// Of the places on the first axis, in order, where they differ or have a norm.
    parts: Vec<Part>,
    /// Bound on the sum along the last axis, of values that are not negative.
    row_sum: Option<i128>,
}

/// Some places on the first axis.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    length: usize,
    range: Range,
    /// Bound on the root of the sum of squares along the first axis.
    norm: Option<f64>,
}

impl From<Range> for Known {
    fn from(range: Range) -> Self {
        Self { range, parts: vec![], row_sum: None }
    }
}

impl std::ops::Deref for Known {
    type Target = Range;

    fn deref(&self) -> &Range {
        &self.range
    }
}

impl Known {
    /// The parts of a tensor with so many places on its first axis.
    fn parts(&self, places: usize) -> Vec<Part> {
        match self.parts[..] {
            [] => vec![Part { length: places, range: self.range, norm: None }],
            _ => self.parts.clone(),
        }
    }

    /// After a node that keeps the first axis.
    fn kept(&self, same: bool) -> Self {
        if same { self.clone() } else { self.range.into() }
    }
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

    /// The input of an [`Op::Requantize`], rounding term included.
    fn raised(self, drop: u32) -> Self {
        let half = i128::from(half(drop));
        self.plus(Self::new(half, half))
    }

    /// After it.
    fn requantized(self, drop: u32) -> Self {
        let raised = self.raised(drop);
        Self::new(raised.low >> drop, raised.high >> drop)
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
pub(crate) fn accumulator(linear: &Linear, weights: &NodeWeights, inputs: &[Known]) -> Range {
    let zero = Range::new(0, 0);
    let skip = match (linear.addend, inputs.get(1)) {
        (Some(factor), Some(skip)) => skip.times(i128::from(factor)),
        _ => zero,
    };
    let rounding = i128::from(half(linear.shift));
    let per_channel = taps_per_channel(&linear.conv);
    let conv = &linear.conv;
    // A norm is one of a position; several groups or taps see other sums.
    let parts = match conv.groups == 1 && conv.kernel == [1, 1] {
        true => inputs[0].parts(conv.in_channels),
        false => vec![Part { length: per_channel, range: inputs[0].range, norm: None }],
    };
    let channels = weights.weight.chunks_exact(per_channel).zip(&weights.bias);
    let sums = channels.map(|(row, bias)| {
        let constant = i128::from(*bias) + rounding;
        let mut rest = row;
        parts.iter().fold(Range::new(constant, constant), |sum, part| {
            let (row, others) = rest.split_at(part.length.min(rest.len()));
            rest = others;
            sum.plus(part.times_row(row))
        })
    });
    sums.reduce(Range::join).unwrap_or(zero).plus(skip)
}

impl Part {
    /// All sums of its values times `row`.
    fn times_row(&self, row: &[i32]) -> Range {
        let input = self.range.join(Range::new(0, 0));
        let (mut positive, mut negative) = (0i128, 0i128);
        for w in row {
            positive += i128::from((*w).max(0));
            negative += i128::from((*w).min(0));
        }
        let sums = input.times(positive).plus(input.times(negative));
        let Some(norm) = self.norm else { return sums };
        // Cauchy and Schwarz.
        let squares = row.iter().map(|w| f64::from(*w).powi(2)).sum::<f64>();
        let most = (squares.sqrt() * norm * (1.0 + 1e-9)).ceil() as i128;
        Range::new(sums.low.max(-most), sums.high.min(most))
    }
}

/// Range of a product's accumulator, rounding term included, of `inner` terms.
pub(crate) fn product_accumulator(matmul: &MatMul, inner: usize, inputs: &[Known]) -> Range {
    let terms = product(&inputs[..2], false).times(inner as i128);
    let sums = match inputs[0].row_sum {
        Some(most) => {
            let weighted = inputs[1].join(Range::new(0, 0)).times(most);
            Range::new(terms.low.max(weighted.low), terms.high.min(weighted.high))
        }
        None => terms,
    };
    let rounding = i128::from(half(matmul.shift));
    sums.join(Range::new(0, 0)).plus(Range::new(rounding, rounding))
}

/// Range of an embedding's entries, rounding term included.
pub(crate) fn entries(table: &Embedding, weights: &NodeWeights) -> Range {
    let rounding = i128::from(half(table.shift));
    let entries = || weights.weight.iter().map(|w| i128::from(*w) + rounding);
    Range::new(entries().min().unwrap_or(0), entries().max().unwrap_or(0))
}

/// Weights that one output channel reads; at least 1.
pub(crate) fn taps_per_channel(conv: &Conv) -> usize {
    (conv.group_channels() * conv.kernel[0] * conv.kernel[1]).max(1)
}

/// Range of a `Sum`'s accumulator, rounding term included.
pub(crate) fn sum_accumulator(multipliers: [i64; 2], shift: u32, inputs: &[Known]) -> Range {
    let rounding = i128::from(half(shift));
    let [a, b] = [0, 1].map(|i| inputs[i].times(i128::from(multipliers[i])));
    a.plus(b).plus(Range::new(rounding, rounding))
}

/// What is known of a node's output. Weights may be absent only for nodes without any.
pub(crate) fn output(
    graph: &Graph,
    node: &Node,
    weights: Option<&NodeWeights>,
    inputs: &[Known],
) -> Known {
    let first = |graph: &Graph| {
        graph.input_of(node, 0).shape.first() == graph.output_of(node).shape.first()
    };
    match &node.op {
        Op::Extend => inputs[0].clone(),
        Op::Reshape => inputs[0].kept(first(graph)),
        Op::View(view) => viewed(graph, node, view, &inputs[0]),
        Op::Concat => {
            let lengths = node.inputs.iter().map(|i| graph.tensors[*i].shape[0]);
            let parts = inputs.iter().zip(lengths).flat_map(|(known, length)| known.parts(length));
            Known { parts: parts.collect(), ..output_range(graph, node, weights, inputs).into() }
        }
        Op::LayerNorm { .. } => match graph.layer_norm(node) {
            Ok(norm) => {
                let [low, high] = norm.range().map(i128::from);
                let range = Range::new(low, high);
                let length = graph.output_of(node).shape[0];
                let part = Part { length, range, norm: Some(norm.norm()) };
                Known { parts: vec![part], ..range.into() }
            }
            Err(_) => Range::new(0, 0).into(),
        },
        Op::Softmax { .. } => match graph.softmax(node) {
            Ok(softmax) => {
                let [low, high] = softmax.range().map(i128::from);
                Known { row_sum: Some(softmax.row_sum().into()), ..Range::new(low, high).into() }
            }
            Err(_) => Range::new(0, 0).into(),
        },
        Op::ReluSoftmax { .. } => match graph.relu_softmax(node) {
            Ok(softmax) => {
                let [low, high] = softmax.range().map(i128::from);
                Known { row_sum: Some(softmax.row_sum().into()), ..Range::new(low, high).into() }
            }
            Err(_) => Range::new(0, 0).into(),
        },
        Op::Smu { .. } => match graph.smu(node) {
            Ok(smu) => {
                let [low, high] = smu.range().map(i128::from);
                Range::new(low, high).into()
            }
            Err(_) => Range::new(0, 0).into(),
        },
        _ => output_range(graph, node, weights, inputs).into(),
    }
}

/// A view that stays inside one part shows that part's values.
fn viewed(graph: &Graph, node: &Node, view: &View, input: &Known) -> Known {
    let tensor = graph.input_of(node, 0);
    let each = tensor.len() / tensor.shape[0].max(1);
    let last = last_viewed(view, &graph.output_of(node).shape).unwrap_or(usize::MAX);
    let mut start = 0;
    for part in &input.parts {
        let end = start + part.length * each;
        if (start..end).contains(&view.start) && last < end {
            return part.range.into();
        }
        start = end;
    }
    input.range.into()
}

/// Range of a node's output.
fn output_range(
    graph: &Graph,
    node: &Node,
    weights: Option<&NodeWeights>,
    inputs: &[Known],
) -> Range {
    match &node.op {
        Op::Linear(linear) => match weights {
            Some(weights) => accumulator(linear, weights, inputs).rescaled(linear.shift),
            None => Range::new(0, 0),
        },
        Op::Winograd(layer) => match weights {
            Some(weights) => winograd::accumulator(layer, weights, inputs).rescaled(layer.shift),
            None => Range::new(0, 0),
        },
        Op::Requantize { drop } => inputs[0].requantized(*drop),
        Op::Embedding(table) => match weights {
            Some(weights) => entries(table, weights).rescaled(table.shift),
            None => Range::new(0, 0),
        },
        Op::MatMul(matmul) => {
            let inner = graph.input_of(node, 0).shape.last().copied().unwrap_or(1);
            product_accumulator(matmul, inner, inputs).rescaled(matmul.shift)
        }
        Op::Gelu { magnitude, scale } => {
            let ends = [inputs[0].low, inputs[0].high].map(|end| end.clamp(-FAR, FAR) as i64);
            let gelu = functions::Gelu::new(*magnitude, *scale);
            let [low, high] = gelu.map_or(ends, |gelu| gelu.range(ends[0], ends[1]));
            Range::new(low.into(), high.into())
        }
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
        Op::MaxPool(_) => inputs[0].range,
        Op::Concat => {
            let ranges = inputs.iter().map(|known| known.range);
            ranges.reduce(Range::join).unwrap_or(Range::new(0, 0))
        }
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
        Op::Reshape
        | Op::Extend
        | Op::View(_)
        | Op::Softmax { .. }
        | Op::LayerNorm { .. }
        | Op::Smu { .. }
        | Op::ReluSoftmax { .. } => inputs[0].range,
    }
}

/// All products of a value of the first and one of the second input, or squares.
fn product(inputs: &[Known], square: bool) -> Range {
    let [a, b] = [inputs[0].range, inputs[1].range];
    let ends = a.times(b.low).join(a.times(b.high));
    if square { Range::new(ends.low.max(0), ends.high) } else { ends }
}

/// What is known of the graph's input.
pub(crate) fn input(graph: &Graph) -> Known {
    let of = |[low, high]: &[i64; 2]| Range::new((*low).into(), (*high).into());
    let part = |range: &[i64; 2]| Part { length: 1, range: of(range), norm: None };
    let parts = graph.input_rows.iter().map(part).collect();
    Known { parts, ..of(&graph.input_range).into() }
}

/// Width that `node` needs of an input with this sign and range, whatever its own output's width.
pub(crate) fn width_for_reader(node: &Node, signed: bool, range: Range) -> u32 {
    match &node.op {
        Op::Linear(Linear { accumulator_bits, .. })
        | Op::MatMul(MatMul { accumulator_bits, .. })
        | Op::Sum { accumulator_bits, .. } => *accumulator_bits,
        Op::Winograd(layer) => layer.product_bits,
        Op::Requantize { drop } => range.raised(*drop).width().max(drop + 2),
        Op::Embedding(_) => 1,
        Op::Softmax { bits, .. } | Op::LayerNorm { bits, .. } => *bits,
        Op::Smu { smooth, .. } => smooth.bits + 1,
        // Of a mask one bit is enough.
        Op::ReluSoftmax { smooth, .. } => {
            if signed {
                smooth.bits + 1
            } else {
                1
            }
        }
        // Its comparison takes what is below the curve off.
        Op::Gelu { magnitude, .. } => (range.width() + 1).max(magnitude + 3),
        Op::Relu { saturate, low } => range.relu_width(*saturate, *low),
        Op::MaxPool(_) => range.difference_width(),
        Op::SumPool(_) | Op::Offset | Op::Reshape | Op::Concat | Op::View(_) | Op::Pad { .. } => {
            range.width()
        }
        // A tensor that may be negative is raised by half of a positive range.
        Op::Extend if !signed => range.width(),
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
