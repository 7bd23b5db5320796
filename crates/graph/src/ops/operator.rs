//! What an integer operator is: the trait that every operator of the graph implements.
//!
//! An operator sees the tensors around its node and never the graph, so that it can be
//! written, read and tested in one file.

use super::accumulator::{Accumulator, Rounding};
use super::known::Known;
use super::range::Range;
use crate::error::Check;
use crate::tensor::{NodeWeights, Tensor};
use serde_json::value::RawValue;
use std::any::Any;
use std::fmt::Debug;
use std::ops::RangeInclusive;

/// The tensors around one node, and its weights where the server asks.
#[derive(Clone, Debug)]
pub struct Site<'a> {
    /// Tensors read, in order.
    pub inputs: Vec<&'a Tensor>,
    /// The tensor written.
    pub output: &'a Tensor,
    /// Where the tensors read stand in the graph: equal numbers are one tensor.
    pub indices: &'a [usize],
    /// The server's weights, if the node has some and they are at hand.
    pub weights: Option<&'a NodeWeights>,
}

impl<'a> Site<'a> {
    /// Returns the first tensor read. Every operator reads one.
    pub fn input(&self) -> &'a Tensor {
        self.inputs.first().copied().unwrap_or(self.output)
    }

    /// Returns the weights of a node that cannot be computed without them.
    ///
    /// # Errors
    /// The text says that the node has no weights.
    pub fn needed_weights(&self) -> Check<&'a NodeWeights> {
        self.weights.ok_or_else(|| "has no weights".into())
    }

    /// Returns whether both inputs are one tensor.
    pub fn is_square(&self) -> bool {
        matches!(self.indices, [a, b] if a == b)
    }
}

/// A faster form of an operator's meaning, prepared once for many inputs: nothing where these
/// inputs are too large for it.
pub type Kernel<'a> = Box<dyn Fn(&[&[i64]]) -> Option<Vec<i64>> + Send + Sync + 'a>;

/// An integer operator: its shape, range, checks, meaning and widths. Each stands in one file
/// of [`crate::ops`], or outside this crate and is registered, see [`crate::ops::register`].
///
/// The first group of methods says what the operator is; a client runs these on the plan of a
/// server that it does not trust, so they neither panic nor allocate by what they read. The
/// second is its meaning on integers, which the protocols equal. The third is by what rules
/// share widths are chosen and checked.
pub trait Operator: Carried + Debug + Send + Sync {
    /// Returns the operator's name in the graph's JSON, e.g. `max-pool`.
    fn kind(&self) -> &'static str;

    /// Returns the operator's name in reports, e.g. `max pool`.
    fn title(&self) -> &'static str {
        self.kind()
    }

    /// Returns how many tensors the operator reads.
    fn inputs(&self) -> RangeInclusive<usize> {
        1..=1
    }

    /// Checks shapes, widths and the operator's own numbers, and tells whether results may be
    /// negative. `known` tells for each input whether the client knows its values.
    ///
    /// # Errors
    /// The invariant that is broken and what was found, in words.
    fn verify(&self, site: &Site<'_>, known: &[bool]) -> Check<bool>;

    /// Returns how clients prepare the input of a graph with this operator.
    fn encoding(&self) -> Encoding {
        Encoding::Scaled
    }

    /// For each element of the output the element of the input that it shows, `None` for a
    /// zero: of an operator that only rearranges. Nothing for every other operator.
    fn arrangement(&self, _site: &Site<'_>) -> Option<Vec<Option<usize>>> {
        None
    }

    /// Returns whether the operator only shows its inputs in another order, so that the client
    /// knows the results where it knows the inputs.
    fn rearranges(&self) -> bool {
        false
    }

    /// Positions that a plan has to list for the operator.
    fn listed(&self, _site: &Site<'_>) -> usize {
        0
    }

    /// Returns how many inputs, from the first on, are multiplied by what the client does not know.
    fn multiplied(&self, _known: &[bool]) -> usize {
        0
    }

    /// Returns whether verification tries the operator for all its arguments, which takes time.
    fn is_tried(&self) -> bool {
        false
    }

    /// What there is to say of the server's weights, if the operator has some.
    fn weighted(&self) -> Option<&dyn Weighted> {
        None
    }

    /// What the operator does in graphs of integers that are never rescaled, where it can.
    fn unscaled(&self, _site: &Site<'_>) -> Option<&dyn UnscaledOperator> {
        None
    }

    /// Returns the output's integers, for as many slices as inputs. Sums wrap mod 2^64. The node
    /// was verified.
    ///
    /// # Errors
    /// The error says which of the operator's numbers cannot be, in words.
    fn interpret(&self, site: &Site<'_>, inputs: &[&[i64]]) -> Check<Vec<i64>>;

    /// Returns a faster form of [`Operator::interpret`], if there is one.
    fn kernel<'a>(&'a self, _weights: Option<&'a NodeWeights>) -> Option<Kernel<'a>> {
        None
    }

    /// What is known of the output's values, with what stochastic rounding may add.
    fn output(&self, site: &Site<'_>, inputs: &[Known]) -> Known;

    /// Returns the accumulator, where the operator sums up and rescales.
    fn accumulator(&self) -> Option<Accumulator> {
        None
    }

    /// Range of the accumulator, rounding term included.
    fn sums(&self, _site: &Site<'_>, _inputs: &[Known]) -> Option<Range> {
        None
    }

    /// Checks that accumulators fit their widths and that values stay where the operator is
    /// defined.
    ///
    /// # Errors
    /// What may leave its bounds, in words.
    fn fits(&self, _site: &Site<'_>, _inputs: &[Known]) -> Check<()> {
        Ok(())
    }

    /// Returns the width that the operator needs of an input with this sign and range, whatever the
    /// output's width.
    fn reads(&self, signed: bool, range: Range) -> u32;

    /// Returns the width that the output needs for its values alone.
    fn writes(&self, range: Range) -> u32 {
        range.width()
    }

    /// Returns whether the output's width is part of the operator and no choice of widths changes
    /// it.
    fn fixes_width(&self) -> bool {
        false
    }

    /// Returns whether inputs and output have one width.
    fn keeps_width(&self) -> bool {
        false
    }

    /// Returns the width at which the operator works on shares that it is given and passes on.
    fn working_bits(&self) -> Option<u32> {
        None
    }

    /// Returns whether the operator multiplies what two parties know, by a protocol that takes no
    /// wider shares than linear protocols do.
    fn is_product(&self) -> bool {
        false
    }

    /// Gives the operator another width of its accumulator and another rounding, as far as these
    /// are its own to choose; the shift stays.
    fn set_accumulator(&mut self, _accumulator: Accumulator) {}

    /// Chooses the operator's own widths by what is known of its inputs; `accumulator` is the
    /// width of [`Operator::sums`].
    fn choose_widths(&mut self, _inputs: &[Known], accumulator: Option<u32>) {
        if let (Some(bits), Some(own)) = (accumulator, self.accumulator()) {
            self.set_accumulator(Accumulator { bits, ..own });
        }
    }

    /// Widens the accumulator as far as an output of so many bits needs it.
    fn widen(&mut self, output_bits: u32) {
        if let Some(own) = self.accumulator() {
            let bits = own.bits.max(output_bits + own.shift);
            self.set_accumulator(Accumulator { bits, ..own });
        }
    }

    /// Makes the operator round exactly, because its result is opened.
    fn round_exactly(&mut self) {
        if let Some(own) = self.accumulator() {
            self.set_accumulator(Accumulator { rounding: Rounding::Exact, ..own });
        }
    }
}

/// What there is to say of the server's weights of one operator.
pub trait Weighted {
    /// Returns the shape of the weights as the model file has it, if there are any.
    fn weight_shape(&self, output: &Tensor) -> Option<Vec<usize>>;

    /// Returns the shape of the constants that are added, if there are any.
    fn bias_shape(&self, output: &Tensor) -> Option<Vec<usize>>;

    /// Checks counts and widths of weights.
    ///
    /// # Errors
    /// What does not fit, in words.
    fn check(&self, output: &Tensor, weights: &NodeWeights) -> Check<()>;
}

/// How a client makes integers of its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// Multiples of the input's scale, rounded to nearest and cut to its range.
    #[default]
    Scaled,
    /// Keys in the order of 32-bit floating-point numbers, see [`crate::keys`].
    Keys,
}

/// An operator in graphs of integers that are never rescaled, in 128 bits.
pub trait UnscaledOperator {
    /// Returns the range of the output's values.
    fn range(&self, weights: Option<&NodeWeights>, inputs: &[Range]) -> Range;

    /// Returns the output's integers.
    fn interpret(&self, weights: Option<&NodeWeights>, inputs: &[&[i128]]) -> Vec<i128>;
}

/// What an operator needs to be a value in a graph. Everything that can be copied, compared
/// and written as JSON has it.
pub trait Carried: Any {
    /// Returns a copy.
    fn boxed(&self) -> Box<dyn Operator>;

    /// Returns whether another operator is of this type and equal.
    fn equals(&self, other: &dyn Operator) -> bool;

    /// Returns the JSON of the operator's fields, `null` for an operator without any.
    ///
    /// # Errors
    /// For fields that have no form in JSON.
    fn to_json(&self) -> serde_json::Result<Box<RawValue>>;

    /// Returns the operator as a value of any type, to find out its own.
    fn as_any(&self) -> &dyn Any;

    /// Returns the operator as a value of any type that can be changed.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<T: Operator + Clone + PartialEq + serde::Serialize> Carried for T {
    fn boxed(&self) -> Box<dyn Operator> {
        Box::new(self.clone())
    }

    fn equals(&self, other: &dyn Operator) -> bool {
        other.as_any().downcast_ref::<T>() == Some(self)
    }

    fn to_json(&self) -> serde_json::Result<Box<RawValue>> {
        serde_json::value::to_raw_value(self)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}
