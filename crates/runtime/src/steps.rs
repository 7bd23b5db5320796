//! One step of a plan: a node and the protocol that computes it.

use graph::{Conv, Embedding, Graph, Linear, MatMul, Rounding, Window};
use he::rlwe::{Params, UnfoldKey};
use mpc::compare::Radix;
use mpc::linear::coefficient::Layer;
use mpc::linear::falcon::Small;
use mpc::linear::lola;
use mpc::linear::shared;
use mpc::linear::winograd::Tiles;
use mpc::maximum::{Maximum, Tournament};
use mpc::truncate::Truncate;
use ring::Modulus;
use wire::{Cost, Error, Result};

use crate::keys::misuse;
use crate::nonlinear::{Nonlinear, Sliced};
use crate::packed::Packed;
use crate::transferred::TransferStep;

/// A named step.
#[derive(Debug)]
pub struct Step {
    /// The node's name.
    pub name: String,
    /// Its index in the graph; `None` for steps that belong to no node.
    pub node: Option<usize>,
    /// The tensors that it reads, in order: those of the graph by their index, others
    /// beyond.
    pub reads: Vec<usize>,
    /// The tensor that it writes.
    pub writes: usize,
    /// What runs.
    pub action: Action,
}

/// What a step runs.
#[derive(Debug)]
pub enum Action {
    /// Homomorphic linear layer, with its rescale.
    Linear(Box<LinearStep>),
    /// Linear layer by transfers, prepared on a mask, with its rescale.
    Transfer(Box<TransferStep>),
    /// Homomorphic product of two shared tensors, with its rescale.
    Product(Box<ProductStep>),
    /// Homomorphic linear layer on packed slots, on shares mod its prime or small ones.
    Slots(Box<SlotsStep>),
    /// What the client knows, mod a prime; local.
    Known(Modulus),
    /// Small shares, which leak: integers that add up to the values. Without a plan of what
    /// the client knows; local.
    Small(Option<Small>),
    /// A whole network under encryption; its results are the client's.
    Evaluate(Box<EvaluateStep>),
    /// A protocol on shares.
    Nonlinear(Sliced),
    /// A protocol on shares that are brought into its range first.
    Fitted(Box<Fitted>),
    /// Other places for the elements, some of which are zero; local.
    Arrange {
        /// For each result the position of its value, in the tensor of one input.
        places: Vec<Option<usize>>,
        /// How many values that tensor has.
        inputs: usize,
    },
    /// Tensors one after another; local.
    Concat {
        /// How many values each has, of one input.
        lengths: Vec<usize>,
    },
    /// The server's constants; local.
    Offset,
    /// Sums over windows of positions; local.
    SumPool {
        /// The positions, in the tensor of one input.
        windows: Vec<Vec<usize>>,
        /// How many values that tensor has.
        inputs: usize,
        /// What the sums are reduced by; without it, the width of the shares.
        modulus: Option<Modulus>,
    },
    /// Weighted sum of two tensors.
    Sum(Box<SumStep>),
    /// Another shape, same values.
    Reshape,
    /// Shares of this width; local.
    Narrow(u32),
    /// Features of an image's tiles; local.
    Features(Box<Tiles>),
    /// The image out of products of features; local.
    Gather(Box<Tiles>),
    /// Opening to the client.
    Open {
        /// Values.
        count: usize,
        /// Their width.
        bits: u32,
        /// Whether they are signed.
        signed: bool,
    },
}

/// A linear layer: products under encryption, then the exact truncation if asked.
#[derive(Debug)]
pub struct LinearStep {
    /// Whether it runs on a mask before, in one exchange with all others that do.
    pub ahead: bool,
    /// Rows of a table and how many positions in it are the input, of one input, where they
    /// are: each stands for a vector of zeros with a one.
    pub positions: Option<[usize; 2]>,
    /// The homomorphic part.
    pub layer: Layer,
    /// The rest of an exact rescale.
    pub truncate: Option<Sliced>,
}

/// A linear layer on packed slots: shares mod its prime in, shares mod its prime out; small
/// shares in, shares mod a power of two out.
#[derive(Debug)]
pub struct SlotsStep {
    /// The homomorphic part, which is all.
    pub layer: Packed,
    /// Width of the words that come out.
    pub bits: u32,
    /// What rounding adds to the bias.
    pub half: i64,
}

/// A whole network under encryption.
#[derive(Debug)]
pub struct EvaluateStep {
    /// What both parties compute with.
    pub plan: lola::Plan,
    /// For each layer the node that has its weights; `None` of squares, and of pools, whose
    /// weights are ones.
    pub nodes: Vec<Option<usize>>,
    /// Signed width of the results.
    pub bits: u32,
}

/// A protocol between two public constants.
#[derive(Debug)]
pub struct Fitted {
    /// Width to which each input is reduced before; its own where there is none.
    pub narrow: Option<[u32; 2]>,
    /// Added before.
    pub before: i64,
    /// What runs.
    pub sliced: Sliced,
    /// Added to the result.
    pub after: i64,
    /// Sides of the matrix, of one input, that is transposed before and back after.
    pub transpose: Option<[usize; 2]>,
}

/// `(m0*x0 + m1*x1 + 2^(shift-1)) >> shift`, all local but the truncation.
#[derive(Debug)]
pub struct SumStep {
    /// m0 and m1.
    pub multipliers: [i64; 2],
    /// Width of the sum.
    pub width: u32,
    /// Bits dropped.
    pub shift: u32,
    /// Drops them.
    pub truncate: Option<Sliced>,
}

impl LinearStep {
    /// Plans `linear` for outputs of `out_bits`, of `batch` inputs at a time.
    ///
    /// # Errors
    /// [`Error::Misuse`] when no secure parameters hold the precision.
    pub(crate) fn new(linear: &Linear, out_bits: u32, radix: Radix, batch: usize) -> Result<Self> {
        Self::of(Layer::new(linear, out_bits, batch)?, linear, out_bits, radix)
    }

    /// Plans `linear` in this `layer` of it.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths that no truncation has.
    pub(crate) fn of(layer: Layer, linear: &Linear, out_bits: u32, radix: Radix) -> Result<Self> {
        let truncate = match linear.rounding {
            Rounding::Stochastic => None,
            Rounding::Exact => {
                let spare = he::rlwe::EXACT_BITS;
                let (width, drop) = (layer.result_bits(), linear.shift + spare);
                Some(truncation(layer.outputs(), width, drop, out_bits, radix)?)
            }
        };
        Ok(Self { ahead: false, positions: None, layer, truncate })
    }

    /// The layer that takes rows of `table`, `[columns, length]`, on vectors that name a row.
    pub(crate) fn of_table(table: &Embedding, [columns, length]: [usize; 2]) -> Linear {
        Linear {
            conv: Conv { in_height: length, ..Conv::fully_connected(table.rows, columns) },
            accumulator_bits: table.weight_bits,
            weight_bits: table.weight_bits,
            shift: table.shift,
            rounding: table.rounding,
            addend: None,
            choice: None,
        }
    }
}

/// A product of two shared matrices, then the exact truncation if asked.
#[derive(Debug)]
pub struct ProductStep {
    /// The homomorphic part.
    pub layer: shared::Layer,
    /// What makes the floor of an exact rescale round.
    pub half: i64,
    /// The rest of an exact rescale.
    pub truncate: Option<Sliced>,
}

impl ProductStep {
    /// Plans `matmul` of the sides `[count, rows, inner, columns]`, its left factor known to
    /// the client or not, one of so many `products` that keys for unfolding may serve.
    ///
    /// # Errors
    /// [`Error::Misuse`] when no secure parameters hold the precision.
    pub(crate) fn new(
        matmul: &MatMul,
        [count, rows, inner, columns]: [usize; 4],
        left: shared::Left,
        out_bits: u32,
        [batch, products]: [usize; 2],
        digits: Option<Radix>,
    ) -> Result<Self> {
        let shape = shared::Shape { batch: count * batch, rows, inner, columns };
        let (shift, rounding) = (matmul.shift, matmul.rounding);
        let folded = shared::Layer::folded(shape, left, shift, out_bits, rounding).ok();
        let plain = shared::Layer::new(shape, left, shift, out_bits, rounding);
        let layer = match (folded, plain) {
            (Some(folded), Ok(plain)) if !worth_folding(&folded, &plain, products)? => plain,
            (Some(folded), _) => folded,
            (None, plain) => plain?,
        };
        let drop = matmul.shift + he::rlwe::EXACT_BITS;
        let half = match (matmul.rounding, matmul.shift) {
            (Rounding::Stochastic, _) | (_, 0) => 0,
            (Rounding::Exact, _) => 1i64 << (drop - 1),
        };
        let truncate = match matmul.rounding {
            Rounding::Stochastic => None,
            Rounding::Exact => {
                let fastest = || Radix::fastest(layer.outputs(), matmul.shift);
                let radix = digits.unwrap_or_else(fastest);
                Some(truncation(layer.outputs(), layer.result_bits(), drop, out_bits, radix)?)
            }
        };
        Ok(Self { layer, half, truncate })
    }
}

/// Whether as many products as this would save what keys for unfolding take.
fn worth_folding(folded: &shared::Layer, plain: &shared::Layer, products: usize) -> Result<bool> {
    let layout = UnfoldKey::layout(folded.params(), folded.levels()).map_err(misuse)?;
    let keys: u64 = layout.iter().map(|(count, bits)| *count as u64 * u64::from(*bits) / 8).sum();
    let total = |cost: Cost| cost.client_to_server + cost.server_to_client;
    let saved = total(plain.cost()).saturating_sub(total(folded.cost()));
    Ok(saved.saturating_mul(products as u64) > keys)
}

impl Step {
    /// The one step of a node.
    pub(crate) fn of_node(graph: &Graph, index: usize, action: Action) -> Self {
        let node = graph.nodes.get(index);
        Self {
            name: node.map(|node| node.name.clone()).unwrap_or_default(),
            node: Some(index),
            reads: node.map(|node| node.inputs.clone()).unwrap_or_default(),
            writes: node.map_or(usize::MAX, |node| node.output),
            action,
        }
    }

    /// A linear layer under encryption, ahead.
    pub(crate) fn early(mut self) -> Self {
        if let Action::Linear(step) = &mut self.action {
            step.ahead = true;
        }
        self
    }

    /// Whether its protocol can be chosen: it runs by transfers or circuits, in part or whole.
    pub(crate) fn chooses(&self) -> bool {
        self.sliced().next().is_some()
    }

    /// What it runs by transfers, in order.
    pub(crate) fn sliced(&self) -> impl Iterator<Item = &Sliced> {
        let (transfer, other) = match &self.action {
            Action::Transfer(step) => (Some(step), None),
            Action::Linear(step) => (None, step.truncate.as_ref()),
            Action::Product(step) => (None, step.truncate.as_ref()),
            Action::Nonlinear(sliced) => (None, Some(sliced)),
            Action::Fitted(fitted) => (None, Some(&fitted.sliced)),
            Action::Sum(sum) => (None, sum.truncate.as_ref()),
            _ => (None, None),
        };
        transfer.into_iter().flat_map(|step| step.sliced()).chain(other)
    }

    /// The layer by transfers, if it is one.
    pub(crate) fn transfer(&self) -> Option<&TransferStep> {
        match &self.action {
            Action::Transfer(step) => Some(step),
            _ => None,
        }
    }

    /// Parameters and levels of the keys with which the server unfolds inputs, if it does.
    pub(crate) fn unfolding(&self) -> Option<(Params, usize)> {
        match &self.action {
            Action::Product(step) if step.layer.levels() > 0 => {
                Some((step.layer.params(), step.layer.levels()))
            }
            _ => None,
        }
    }

    /// The encryption parameters, if it encrypts.
    pub fn params(&self) -> Option<Params> {
        match &self.action {
            Action::Linear(step) => Some(step.layer.params()),
            Action::Product(step) => Some(step.layer.params()),
            _ => None,
        }
    }

    /// The layer on packed slots, if it is one.
    pub(crate) fn slots(&self) -> Option<&Packed> {
        match &self.action {
            Action::Slots(step) => Some(&step.layer),
            _ => None,
        }
    }

    /// What it computes, in one word.
    pub fn operator(&self) -> &'static str {
        match &self.action {
            Action::Linear(step) if step.positions.is_some() => "embedding",
            Action::Linear(step) if step.layer.is_fully_connected() => "fully connected",
            Action::Transfer(step) if step.layer.is_fully_connected() => "fully connected",
            Action::Product(_) => "matrix product",
            Action::Slots(step) if step.layer.is_fully_connected() => "fully connected",
            Action::Linear(_) | Action::Slots(_) | Action::Transfer(_) => "convolution",
            Action::Evaluate(_) => "network",
            Action::Known(_) => "enter prime",
            Action::Small(_) => "small shares",
            Action::Nonlinear(sliced) => sliced.kind().map_or("", Nonlinear::operator),
            Action::Fitted(fitted) => fitted.sliced.kind().map_or("", Nonlinear::operator),
            Action::Arrange { .. } => "view",
            Action::Concat { .. } => "concat",
            Action::Offset => "offset",
            Action::SumPool { .. } => "average pool",
            Action::Sum(_) => "sum",
            Action::Reshape => "reshape",
            Action::Narrow(_) => "requantize",
            Action::Features(_) | Action::Gather(_) => "transform",
            Action::Open { .. } => "open",
        }
    }

    /// The protocol, for people.
    pub fn protocol(&self) -> String {
        match &self.action {
            Action::Linear(step) => {
                let how = if step.truncate.is_some() { " + exact truncation" } else { "" };
                let when = if step.ahead { "on a mask before, " } else { "" };
                format!("{when}{}{how}", step.layer.describe())
            }
            Action::Product(step) => {
                let how = if step.truncate.is_some() { " + exact truncation" } else { "" };
                format!("{}{how}", step.layer.describe())
            }
            Action::Slots(step) => step.layer.describe(),
            Action::Transfer(step) => step.describe(),
            Action::Evaluate(_) => "evaluated under encryption".into(),
            Action::Nonlinear(sliced) => sliced.protocol(),
            Action::Fitted(fitted) => fitted.sliced.protocol(),
            Action::Sum(sum) if sum.truncate.is_some() => "local + exact truncation".into(),
            Action::Small(Some(_)) => "masks of a few bits, which leak".into(),
            Action::Open { .. } => "server's share to the client".into(),
            _ => "local".into(),
        }
    }
}

/// Exact truncation of `count` values.
pub(crate) fn truncation(
    count: usize,
    width: u32,
    drop: u32,
    out_bits: u32,
    radix: Radix,
) -> Result<Sliced> {
    Sliced::new(count, |count| {
        Truncate::new(count, width, drop, out_bits, radix).map(Nonlinear::Truncate)
    })
}

/// Maxima of `windows`.
pub(crate) fn max_pool(windows: &[Vec<usize>], bits: u32, radix: Radix) -> Result<Sliced> {
    Sliced::windows(windows, |inputs, windows| {
        let tournament = Tournament::new(inputs, windows)?;
        Maximum::new(tournament, bits, None, radix).map(Nonlinear::MaxPool)
    })
}

/// For each output of a pooling layer, channel by channel, the positions it sees.
/// Padding is left out.
pub(crate) fn windows(window: &Window) -> Vec<Vec<usize>> {
    let [top, left, ..] = window.padding;
    let reach = |at: usize, stride: usize, kernel: usize, pad: usize, side: usize| {
        let start = at * stride;
        (start.max(pad)..(start + kernel).min(side + pad)).map(move |i| i - pad)
    };
    let (height, width) = (window.height, window.width);
    let count = window.channels * window.out_height() * window.out_width();
    let mut windows = Vec::with_capacity(count);
    for channel in 0..window.channels {
        for row in 0..window.out_height() {
            for column in 0..window.out_width() {
                let rows = reach(row, window.stride[0], window.kernel[0], top, height);
                let columns = reach(column, window.stride[1], window.kernel[1], left, width);
                let at = |r: usize, c: usize| (channel * height + r) * width + c;
                let mut seen = Vec::with_capacity(rows.len() * columns.len());
                rows.for_each(|r| seen.extend(columns.clone().map(|c| at(r, c))));
                windows.push(seen);
            }
        }
    }
    windows
}

/// A tensor that a step reads before it exists.
pub(crate) fn missing(tensor: usize) -> Error {
    Error::misuse(format!("tensor {tensor} is read before it is written"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_leave_padding_out() {
        let window = Window {
            channels: 1,
            height: 3,
            width: 3,
            kernel: [2, 2],
            stride: [2, 2],
            padding: [1, 1, 0, 0],
        };
        assert_eq!(windows(&window), [vec![0], vec![1, 2], vec![3, 6], vec![4, 5, 7, 8]]);
    }
}
