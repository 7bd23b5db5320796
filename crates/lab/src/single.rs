//! Non-linear operations, one step each.

use mpc::argmax::Argmax;
use mpc::compare::Radix;
use mpc::extend::{Extend, Sign};
use mpc::lookup::{Lookup, PublicTable};
use mpc::multiply::{Factor, Multiply};
use mpc::relu::Relu;
use mpc::sign::{Signs, Told};
use mpc::truncate::Truncate;
use ring::{Prg, Seed};
use runtime::step::Action;
use runtime::step::sliced::{self, Sliced};
use wire::{Error, Result};

use crate::operation::Operation;
use crate::values::{Input, Output, Planned, chosen, digits};
use crate::{circuits, comet, transformer};

/// Plans a non-linear `operation`; `digest` is its own.
///
/// # Errors
/// [`Error::Misuse`] for widths that no protocol has.
pub(crate) fn plan(operation: &Operation, digest: &[u8; 32]) -> Result<Planned> {
    if let Some(planned) = circuits::plan(operation)? {
        return Ok(planned);
    }
    match *operation {
        Operation::Relu { count, bits, out_bits, saturate, radix, .. } => {
            let out_bits = out_bits.unwrap_or(bits);
            let radix = chosen(radix, || Radix::of_relu(count, bits, saturate, out_bits))?;
            let relu =
                Sliced::new(count, |count| Relu::new(count, bits, saturate, out_bits, radix))?;
            let low = saturate.map_or(i64::MIN, |a| (1i64 << a) - (1i64 << (bits - 1)));
            let input = Input { low, ..Input::plain(count, bits) };
            Ok((input, Output::signed(out_bits), Action::from(relu)))
        }
        Operation::MaxPool { count, bits, window, radix, .. } => {
            max_pool(count, bits, window, radix)
        }
        Operation::Argmax { count, bits, radix, .. } => {
            let argmax = Argmax::new(1, count, bits, digits(radix, 1, bits.saturating_sub(1))?)?;
            let output = Output { bits: argmax.index_bits(), signed: false };
            let input = Input { width: bits - 1, ..Input::plain(count, bits) };
            Ok((input, output, Action::from(Sliced::whole(count, argmax))))
        }
        Operation::Truncate { count, bits, drop, out_bits, non_negative, radix, .. } => {
            let out_bits = out_bits.unwrap_or(bits.saturating_sub(drop));
            let ((sign, low), radix) = (sign(non_negative), digits(radix, count, drop)?);
            let truncate = Sliced::new(count, |count| {
                Truncate::widening(count, bits, drop, out_bits, sign, radix)
            })?;
            let input = Input { low, ..Input::plain(count, bits) };
            Ok((input, Output::signed(out_bits), Action::from(truncate)))
        }
        Operation::Extend { count, bits, out_bits, non_negative, radix, .. } => {
            let (sign, low) = sign(non_negative);
            let radix = chosen(radix, || Radix::leanest(count, bits, out_bits))?;
            let extend =
                Sliced::new(count, |count| Extend::new(count, bits, out_bits, sign, radix))?;
            let input = Input { low, ..Input::plain(count, bits) };
            Ok((input, Output::signed(out_bits), Action::from(extend)))
        }
        Operation::Compare { count, bits, radix } => {
            let (bits, output) = (bits + 1, Output { bits: 1, signed: false });
            let radix = digits(radix, count, bits.saturating_sub(1))?;
            let signs =
                Sliced::new(count, |count| Signs::new(count, bits, Told::NonNegative, 1, radix))?;
            Ok((Input::plain(count, bits), output, Action::from(signs)))
        }
        Operation::Lookup { count, bits, out_bits } => {
            let out_bits = out_bits.unwrap_or(bits);
            let table = table(digest, bits, out_bits);
            let lookup = Sliced::new(count, |count| {
                let plan = Lookup::new(count, bits, out_bits)?;
                Ok(PublicTable::new(plan, table.clone()))
            })?;
            let action = Action::from(lookup);
            Ok((Input::plain(count, bits), Output::signed(out_bits), action))
        }
        Operation::Multiply { count, bits, second_bits, out_bits, non_negative, radix } => {
            let second = second_bits.unwrap_or(bits);
            let out_bits = out_bits.unwrap_or_else(|| bits.saturating_add(second).min(63));
            let (sign, low) = sign(non_negative);
            let factors = [bits, second].map(|bits| Factor { bits, sign });
            let radix = digits(radix, count, bits)?;
            let multiply =
                Sliced::new(count, |count| Multiply::new(count, factors, out_bits, radix))?;
            let input = Input { low, second: Some(second), ..Input::plain(count, bits) };
            Ok((input, Output::signed(out_bits), Action::from(multiply)))
        }
        Operation::Gelu { .. } | Operation::Softmax { .. } | Operation::LayerNorm { .. } => {
            transformer::plan(operation)
        }
        Operation::Comet { .. } => comet::plan(operation),
        Operation::Circuit { .. }
        | Operation::Probability { .. }
        | Operation::Conv { .. }
        | Operation::Matmul { .. }
        | Operation::Ot { .. } => Err(Error::misuse("an operation that is not a step on shares")),
    }
}

fn max_pool(count: usize, bits: u32, window: usize, radix: Option<u32>) -> Result<Planned> {
    let radix = digits(radix, count, bits.saturating_sub(1))?;
    let maximum = sliced::max_pool(&[(0..window).collect()], [count, window], bits, radix)?;
    let input = Input { width: bits - 1, ..Input::plain(count * window, bits) };
    Ok((input, Output::signed(bits), Action::from(maximum)))
}

/// What is known of the inputs, and the least of them.
fn sign(non_negative: bool) -> (Sign, i64) {
    if non_negative { (Sign::NonNegative, 0) } else { (Sign::Unknown, i64::MIN) }
}

/// A table that follows from the operation.
fn table(digest: &[u8; 32], bits: u32, out_bits: u32) -> Vec<u64> {
    let mut seed = Seed([0; 16]);
    seed.0.iter_mut().zip(digest).for_each(|(to, from)| *to = *from);
    Prg::new(&seed, 0).uniform(1 << bits, out_bits)
}
