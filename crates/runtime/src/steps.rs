//! One step of a plan: a node and the protocol that computes it.

use graph::{Linear, Rounding, Window};
use he::rlwe::Params;
use mpc::argmax::Argmax;
use mpc::compare::Radix;
use mpc::extend::Extend;
use mpc::linear::coefficient::Layer;
use mpc::lookup::Lookup;
use mpc::maximum::Maximum;
use mpc::multiply::Multiply;
use mpc::relu::Relu;
use mpc::sign::Signs;
use mpc::truncate::Truncate;
use mpc::{Need, open};
use wire::{Cost, Error, Result};

/// A named step.
#[derive(Debug)]
pub struct Step {
    /// The node's name.
    pub name: String,
    /// Its index in the graph; `None` for steps that end every plan.
    pub node: Option<usize>,
    /// What runs.
    pub action: Action,
}

/// What a step runs.
#[derive(Debug)]
pub enum Action {
    /// Homomorphic linear layer, with its rescale.
    Linear(Box<LinearStep>),
    /// ReLU with saturation and extension.
    Relu(Box<Relu>),
    /// Max pooling.
    MaxPool(Box<Maximum>),
    /// Sums over windows of positions; local.
    SumPool(Vec<Vec<usize>>),
    /// Weighted sum of two tensors.
    Sum(Box<SumStep>),
    /// Another shape, same values.
    Reshape,
    /// Position of the largest value.
    Argmax(Box<Argmax>),
    /// Exact truncation on its own.
    Truncate(Box<Truncate>),
    /// Extension to a wider ring.
    Extend(Box<Extend>),
    /// Sign bits.
    Signs(Box<Signs>),
    /// A function of few bits.
    Lookup(Box<LookupStep>),
    /// Products of two tensors.
    Multiply(Box<Multiply>),
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
    /// The homomorphic part.
    pub layer: Layer,
    /// The rest of an exact rescale.
    pub truncate: Option<Truncate>,
}

/// A lookup with its table.
#[derive(Debug)]
pub struct LookupStep {
    /// The widths.
    pub plan: Lookup,
    /// Public to both parties; only the server reads it.
    pub table: Vec<u64>,
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
    pub truncate: Option<Truncate>,
}

impl LinearStep {
    /// Plans `linear` for an output of `out_bits`.
    ///
    /// # Errors
    /// [`Error::Misuse`] when no secure parameters hold the precision.
    pub(crate) fn new(linear: &Linear, out_bits: u32, radix: Radix) -> Result<Self> {
        let layer = Layer::new(linear, out_bits)?;
        let truncate = match linear.rounding {
            Rounding::Stochastic => None,
            Rounding::Exact => {
                let spare = he::rlwe::EXACT_BITS;
                let (count, width) = (layer.outputs(), layer.result_bits());
                Some(Truncate::new(count, width, linear.shift + spare, out_bits, radix)?)
            }
        };
        Ok(Self { layer, truncate })
    }
}

impl Step {
    /// Transfers it consumes.
    pub fn need(&self) -> Need {
        match &self.action {
            Action::Linear(step) => step.truncate.as_ref().map(Truncate::need).unwrap_or_default(),
            Action::Relu(relu) => relu.need(),
            Action::MaxPool(maximum) => maximum.need(),
            Action::Sum(sum) => sum.truncate.as_ref().map(Truncate::need).unwrap_or_default(),
            Action::Argmax(argmax) => argmax.need(),
            Action::Truncate(truncate) => truncate.need(),
            Action::Extend(extend) => extend.need(),
            Action::Signs(signs) => signs.need(),
            Action::Lookup(step) => step.plan.need(),
            Action::Multiply(multiply) => multiply.need(),
            Action::SumPool(_) | Action::Reshape | Action::Open { .. } => Need::default(),
        }
    }

    /// What it costs online.
    pub fn cost(&self) -> Cost {
        let truncation =
            |truncate: &Option<Truncate>| truncate.as_ref().map_or(Cost::NONE, Truncate::cost);
        match &self.action {
            Action::Linear(step) => step.layer.cost().then(truncation(&step.truncate)),
            Action::Relu(relu) => relu.cost(),
            Action::MaxPool(maximum) => maximum.cost(),
            Action::Sum(sum) => truncation(&sum.truncate),
            Action::Argmax(argmax) => argmax.cost(),
            Action::Truncate(truncate) => truncate.cost(),
            Action::Extend(extend) => extend.cost(),
            Action::Signs(signs) => signs.cost(),
            Action::Lookup(step) => step.plan.cost(),
            Action::Multiply(multiply) => multiply.cost(),
            Action::Open { count, bits, .. } => open::cost(*count, *bits),
            Action::SumPool(_) | Action::Reshape => Cost::NONE,
        }
    }

    /// The encryption parameters, if it encrypts.
    pub fn params(&self) -> Option<Params> {
        match &self.action {
            Action::Linear(step) => Some(step.layer.params()),
            _ => None,
        }
    }

    /// What it computes, in one word.
    pub fn operator(&self) -> &'static str {
        match &self.action {
            Action::Linear(step) if step.layer.is_fully_connected() => "fully connected",
            Action::Linear(_) => "convolution",
            Action::Relu(_) => "relu",
            Action::MaxPool(_) => "max pool",
            Action::SumPool(_) => "average pool",
            Action::Sum(_) => "sum",
            Action::Reshape => "reshape",
            Action::Argmax(_) => "argmax",
            Action::Truncate(_) => "truncate",
            Action::Extend(_) => "extend",
            Action::Signs(_) => "sign",
            Action::Lookup(_) => "lookup",
            Action::Multiply(_) => "multiply",
            Action::Open { .. } => "open",
        }
    }

    /// The protocol, for people.
    pub fn protocol(&self) -> String {
        match &self.action {
            Action::Linear(step) => {
                let how = if step.truncate.is_some() { " + exact truncation" } else { "" };
                format!("{}{how}", step.layer.describe())
            }
            Action::Relu(_) | Action::MaxPool(_) | Action::Argmax(_) | Action::Signs(_) => {
                "comparison by OT".into()
            }
            Action::Truncate(_) => "exact truncation by OT".into(),
            Action::Extend(_) => "wrap bit by OT".into(),
            Action::Lookup(_) => "table by OT".into(),
            Action::Multiply(_) => "products by OT".into(),
            Action::Sum(sum) if sum.truncate.is_some() => "local + exact truncation".into(),
            Action::Sum(_) | Action::SumPool(_) | Action::Reshape => "local".into(),
            Action::Open { .. } => "server's share to the client".into(),
        }
    }
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
    let mut windows = Vec::new();
    for channel in 0..window.channels {
        for row in 0..window.out_height() {
            for column in 0..window.out_width() {
                let rows = reach(row, window.stride[0], window.kernel[0], top, height);
                let columns = reach(column, window.stride[1], window.kernel[1], left, width);
                let at = |r: usize, c: usize| (channel * height + r) * width + c;
                windows.push(rows.flat_map(|r| columns.clone().map(move |c| at(r, c))).collect());
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
