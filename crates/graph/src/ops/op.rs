//! The operators of this crate as one type to match on, and the only place that takes it apart.

use super::concat::Concat;
use super::embedding::Embedding;
use super::extend::Extend;
use super::gelu::Gelu;
use super::geometry::{View, Window};
use super::layer_norm::LayerNorm;
use super::linear::Linear;
use super::lookup::Lookup;
use super::matmul::MatMul;
use super::max_pool::MaxPool;
use super::offset::Offset;
use super::operator::Operator;
use super::pad::Pad;
use super::product::Product;
use super::registered::Registered;
use super::registry::{self, Registration};
use super::relu::Relu;
use super::relu_softmax::ReluSoftmax;
use super::requantize::Requantize;
use super::reshape::Reshape;
use super::smu::Smu;
use super::softmax::Softmax;
use super::sum::Sum;
use super::sum_pool::SumPool;
use super::winograd::Winograd;
use crate::error::Result as CrateResult;
use crate::functions::newton::Newton;
use crate::functions::smu::Smooth;
use serde::de::{EnumAccess, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::ops::Deref;

/// An operator that a node has, or one made of what the node has.
#[derive(Debug)]
pub enum Held<'a> {
    /// The node's own.
    Kept(&'a (dyn Operator + 'static)),
    /// A copy.
    Made(Box<dyn Operator>),
}

impl Deref for Held<'_> {
    type Target = dyn Operator;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Kept(operator) => *operator,
            Self::Made(operator) => operator.as_ref(),
        }
    }
}

/// Makes the enum of operators out of one list: its variants, the operator of each, and the
/// reader of each by its name in JSON.
macro_rules! operators {
    (
        whole { $($(#[$whole_doc:meta])* $whole_name:literal $Whole:ident($Type:ty),)* }
        windows { $($(#[$window_doc:meta])* $window_name:literal $OfWindow:ident,)* }
        fields { $(
            $(#[$fields_doc:meta])*
            $fields_name:literal $Fields:ident { $($(#[$field_doc:meta])* $field:ident: $FieldType:ty,)* },
        )* }
        units { $($(#[$unit_doc:meta])* $unit_name:literal $Unit:ident,)* }
    ) => {
        /// What a node computes, on exact integers.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Op {
            $($(#[$whole_doc])* $Whole($Type),)*
            $($(#[$window_doc])* $OfWindow(Window),)*
            $($(#[$fields_doc])* $Fields { $($(#[$field_doc])* $field: $FieldType,)* },)*
            $($(#[$unit_doc])* $Unit,)*
            /// An operator that was registered, see [`crate::ops::register`].
            #[serde(untagged)]
            Registered(Registered),
        }

        /// The names that operators of this crate have in JSON.
        const BUILT_IN: &[&str] = &[
            $($whole_name,)* $($window_name,)* $($fields_name,)* $($unit_name,)*
        ];

        impl Op {
            /// The operator: everything that is known of it.
            pub fn operator(&self) -> Held<'_> {
                match self {
                    $(Self::$Whole(operator) => Held::Kept(operator),)*
                    $(Self::$OfWindow(window) => Held::Made(Box::new($OfWindow(window.clone()))),)*
                    $(Self::$Fields { $($field,)* } => {
                        Held::Made(Box::new($Fields { $($field: $field.clone(),)* }))
                    })*
                    $(Self::$Unit => Held::Kept(&$Unit),)*
                    Self::Registered(operator) => Held::Kept(operator.operator()),
                }
            }
        }

        impl From<Box<dyn Operator>> for Op {
            fn from(operator: Box<dyn Operator>) -> Self {
                let any = operator.as_any();
                $(if let Some(own) = any.downcast_ref::<$Type>() {
                    return Self::$Whole(own.clone());
                })*
                $(if let Some($OfWindow(window)) = any.downcast_ref() {
                    return Self::$OfWindow(window.clone());
                })*
                $(if let Some($Fields { $($field,)* }) = any.downcast_ref() {
                    return Self::$Fields { $($field: $field.clone(),)* };
                })*
                $(if any.is::<$Unit>() {
                    return Self::$Unit;
                })*
                Self::Registered(operator.into())
            }
        }

        impl<'de> Visitor<'de> for Reader {
            type Value = Op;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an operator")
            }

            fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<Op, A::Error> {
                let (name, fields) = data.variant::<String>()?;
                Ok(match name.as_str() {
                    $($whole_name => Op::$Whole(fields.newtype_variant()?),)*
                    $($window_name => Op::$OfWindow(fields.newtype_variant()?),)*
                    $($fields_name => {
                        let $Fields { $($field,)* } = fields.newtype_variant()?;
                        Op::$Fields { $($field,)* }
                    })*
                    $($unit_name => {
                        fields.unit_variant()?;
                        Op::$Unit
                    })*
                    name => Op::Registered(Registered::read(name, || fields.newtype_variant())?),
                })
            }
        }
    };
}

/// Reads an operator by its name.
struct Reader;

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_enum("Op", BUILT_IN, Reader)
    }
}

/// Makes an operator known to everything in this process that reads graphs.
///
/// # Errors
/// [`crate::Error::Misuse`] for a name that an operator has already, and for one that is no name.
pub fn register(registration: &'static Registration) -> CrateResult<()> {
    if BUILT_IN.contains(&registration.name) {
        return Err(registry::taken(registration.name));
    }
    registry::add(registration)
}

impl Op {
    /// Changes the operator in place.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut dyn Operator)) {
        let mut operator = self.operator().boxed();
        change(operator.as_mut());
        *self = operator.into();
    }
}

operators! {
    whole {
        /// Convolution or matrix product with rescale; one input, two with an addend.
        "linear" Linear(Linear),
        /// 3x3 convolution in the Winograd domain with rescale; inputs as of [`Op::Linear`].
        "winograd" Winograd(Winograd),
        /// Some elements, in an order of their own.
        "view" View(View),
        /// Rows of a secret table.
        "embedding" Embedding(Embedding),
        /// Product of two tensors as matrices, with rescale.
        "mat-mul" MatMul(MatMul),
    }
    windows {
        /// Largest value of the window; padded positions never win.
        "max-pool" MaxPool,
        /// Sum of the window; padded positions add 0. The output's scale is the
        /// input's divided by the window's size, which makes it an average.
        "sum-pool" SumPool,
    }
    fields {
        /// `y = (x + 2^(drop-1)) >> drop`, exactly, in shares of any width (`drop` 0: only that
        /// is changed). If the output's share is wider than what is left of the input's and the
        /// sign is not known, the wrap is found by a comparison; no bit needs to be spare.
        "requantize" Requantize {
            /// Low bits dropped.
            drop: u32,
        },
        /// `y = clamp(x, low, low + 2^saturate - 1)`.
        "relu" Relu {
            /// Bits of the distance from the smallest to the largest result.
            saturate: u32,
            /// The smallest result, at most `2^(saturate+4)` away from 0; a ReLU's is 0.
            #[serde(skip_serializing_if = "super::choice::is_zero")]
            low: i64,
        },
        /// `y = (multipliers[0]*x0 + multipliers[1]*x1 + 2^(shift-1)) >> shift`.
        "sum" Sum {
            /// Factors that bring both operands to one scale.
            multipliers: [i64; 2],
            /// Signed width that holds every accumulator, as of a [`Linear`].
            accumulator_bits: u32,
            /// Low bits dropped.
            shift: u32,
        },
        /// The input with zeros around it.
        "pad" Pad {
            /// Zeros before the input along each axis; the output's shape tells those behind.
            before: Vec<usize>,
        },
        /// `y = x0 * x1`, element by element.
        "product" Product {
            /// Signed widths that hold the factors' values; shares are reduced to them.
            factor_bits: [u32; 2],
        },
        /// `y = values[x - low]`: a function by its public table.
        "lookup" Lookup {
            /// The smallest input.
            low: i64,
            /// The results from there on; 2 to 256 of them, a power of two.
            values: Vec<i64>,
        },
        /// Softmax along the last axis, [`crate::functions::Softmax`].
        "softmax" Softmax {
            /// Differences of two values of a row are below `2^(bits-1)`.
            bits: u32,
            /// Real value of one unit of the input.
            scale: f64,
        },
        /// GELU, [`crate::functions::Gelu`].
        "gelu" Gelu {
            /// Bits of absolute values at which the function differs from a ReLU.
            magnitude: u32,
            /// Real value of one unit of input and output.
            scale: f64,
        },
        /// Brings values to mean 0 and deviation 1 along the first axis, see
        /// [`crate::functions::LayerNorm`].
        "layer-norm" LayerNorm {
            /// Values lie in `-2^(bits-2)..2^(bits-2)`.
            bits: u32,
            /// Deviations below about `2^least` units count as that.
            least: u32,
            /// Units of a result of 1.
            unit: f64,
            /// How inverse roots are found, if not by a table.
            #[serde(skip_serializing_if = "Option::is_none")]
            newton: Option<Newton>,
        },
        /// A smooth maximum, [`crate::functions::Smu`].
        "smu" Smu {
            /// The function of real numbers.
            smooth: Smooth,
            /// How the function is found.
            newton: Newton,
        },
        /// Smooth maxima of a row as parts of their sum, [`crate::functions::ReluSoftmax`];
        /// where there is a second input, the client's, of zeros and ones, only those where it
        /// is 1.
        "relu-softmax" ReluSoftmax {
            /// The function whose results are summed up; its slope is 0.
            smooth: Smooth,
            /// Added to the sum.
            epsilon: f64,
            /// How the smooth maximum is found.
            newton: Newton,
            /// How the sum's reciprocal is found.
            division: Newton,
        },
    }
    units {
        /// Sum with constants of the server, one for each element.
        "offset" Offset,
        /// The input's elements in their order under another shape.
        "reshape" Reshape,
        /// The input's values in wider shares. A signed input has a bit to spare.
        "extend" Extend,
        /// The inputs one after another along the outermost axis.
        "concat" Concat,
    }
}
