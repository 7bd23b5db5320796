//! Tables, conversions, products and the relatives of ReLU.

use ring::word::{mask, signed};
use ring::{Bits, Modulus};
use wire::{Channel, Cost, Result, Role};

use super::{COUNT, Ideal, Protocol, of_values};
use crate::arithmetic::b2a::{self, Arithmetic};
use crate::arithmetic::dot::{self, Dot};
use crate::arithmetic::extend::{self, Extend, Sign};
use crate::arithmetic::multiply::known::{self, Known};
use crate::arithmetic::multiply::{self, Factor, Multiply};
use crate::arithmetic::prime::{self, Enter, Leave};
use crate::arithmetic::square::{self, Square};
use crate::arithmetic::truncate::{self, Truncate};
use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::clip::{self, Clip};
use crate::nonlinear::leaky_relu::{self, Slope};
use crate::nonlinear::lookup::{self, Lookup};
use crate::nonlinear::sign::{self, Signs, Told};
use crate::protocol::Protocol as _;
use crate::share::{Share, server_only};

#[allow(clippy::unwrap_used)]
pub(super) fn protocols() -> Vec<Protocol> {
    let radix = Radix::Four;
    let absolute = Slope::absolute(COUNT, 12, 12, radix).unwrap();
    let leaky = Slope::leaky(COUNT, 12, 26, 8, 14, radix).unwrap();
    vec![
        extend("extend unsigned", Sign::Unsigned),
        extend("extend non-negative", Sign::NonNegative),
        truncate(Sign::Unknown, "truncate to full width"),
        truncate(Sign::NonNegative, "truncate to full width, sign known"),
        lookup(),
        arithmetic("arithmetic, client asks", Role::Client, Role::Server),
        arithmetic("arithmetic, server asks", Role::Server, Role::Client),
        arithmetic("arithmetic, sender begins", Role::Server, Role::Server),
        multiply("multiply", Sign::Unknown, 10, 20),
        multiply("multiply unsigned, mixed", Sign::Unsigned, 6, 19),
        multiply("multiply, signs known", Sign::NonNegative, 6, 16),
        multiply("multiply, a bit to spare", Sign::Spare, 10, 24),
        multiply_known("multiply, known factors", 6),
        multiply_known("multiply, wide known factors", 14),
        square("square", Sign::Unknown, Radix::Four),
        square("square, other side asking", Sign::Unsigned, Radix::Two),
        square("square, sign known", Sign::NonNegative, Radix::Four),
        dot(),
        slope("absolute", absolute, i64::abs),
        slope("leaky relu", leaky, |y| if y >= 0 { y } else { (26 * y) >> 8 }),
        clip([-100, 300], 20),
        signs("sign bit", Told::NonNegative, |y| i64::from(y >= 0)),
        signs("sign", Told::Sign, i64::signum),
        leave(),
        enter(),
    ]
}

/// The values with a quarter of the range added, which the signs of the ladder's values
/// do not exclude.
fn raised(role: Role, x: &Share) -> Share {
    let quarter = server_only(role, 1 << (x.bits() - 2));
    Share::new(x.words().iter().map(|word| word.wrapping_add(quarter)).collect(), x.bits())
}

/// What `sign` makes of the ladder's values of `bits`, raised where it must be.
fn read(value: i64, bits: u32, sign: Sign) -> i64 {
    match sign {
        Sign::Unknown | Sign::Spare => value,
        Sign::Unsigned => value & mask(bits) as i64,
        Sign::NonNegative => value + (1 << (bits - 2)),
    }
}

fn given(role: Role, x: &Share, sign: Sign) -> Share {
    if sign == Sign::NonNegative { raised(role, x) } else { x.clone() }
}

fn of_each(f: impl Fn(i64) -> i64 + Sync + 'static) -> Ideal {
    of_values(move |values| values.iter().map(|value| f(*value)).collect())
}

/// A protocol on values of `bits` whose `sign` it is told; `ideal` takes what they stand for.
fn told(
    (name, bits, sign): (&'static str, u32, Sign),
    price: (Demand, Cost),
    run: impl Fn(&mut Channel, &Share, Correlations) -> Result<Share> + Sync + 'static,
    ideal: impl Fn(i64) -> i64 + Sync + 'static,
) -> Protocol {
    let run = move |channel: &mut Channel, x: &Share, ots| {
        let x = given(channel.role(), x, sign);
        run(channel, &x, ots)
    };
    Protocol::new(name, bits, price, run, of_each(move |value| ideal(read(value, bits, sign))))
}

#[allow(clippy::unwrap_used)]
fn extend(name: &'static str, sign: Sign) -> Protocol {
    let plan = Extend::new(COUNT, 10, 18, sign, Radix::Four).unwrap();
    let price = (plan.demand(), plan.cost());
    let run = move |channel: &mut Channel, x: &Share, ots| extend::run(channel, &plan, x, ots);
    let frames = if sign == Sign::NonNegative { [1, 1] } else { [3, 3] };
    told((name, 10, sign), price, run, |value| value).tampered(frames)
}

#[allow(clippy::unwrap_used)]
fn truncate(sign: Sign, name: &'static str) -> Protocol {
    let plan = Truncate::widening(COUNT, 20, 7, 20, sign, Radix::Four).unwrap();
    let price = (plan.demand(), plan.cost());
    let run = move |channel: &mut Channel, x: &Share, ots| truncate::run(channel, &plan, x, ots);
    told((name, 20, sign), price, run, |value| value >> 7)
}

/// Two steps down from a square, of values that are signed.
#[allow(clippy::unwrap_used)]
fn lookup() -> Protocol {
    let (plan, function) = (Lookup::new(COUNT, 7, 13).unwrap(), |x: i64| x * x - 2);
    let table = lookup::tabulate(7, true, function);
    Protocol::new(
        "lookup",
        7,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| {
            let table = match channel.role() {
                Role::Client => &[][..],
                Role::Server => &table,
            };
            lookup::run(channel, &plan, x, table, ots)
        },
        of_each(function),
    )
    .tampered([1, 1])
}

/// The conversion of the low bits of both shares.
#[allow(clippy::unwrap_used)]
fn arithmetic(name: &'static str, first: Role, sender: Role) -> Protocol {
    let plan = Arithmetic::new(COUNT, 12, first).unwrap().sent_by(sender);
    Protocol::new(
        name,
        12,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| b2a::run(channel, &plan, &Bits::of_words(x.words(), 0), ots),
        of_each(|value| value & 1),
    )
    .tampered([1, 1])
}

/// The product of the values and their lower `second` bits.
#[allow(clippy::unwrap_used)]
fn multiply(name: &'static str, sign: Sign, second: u32, out_bits: u32) -> Protocol {
    let known = sign == Sign::NonNegative;
    // The sign of the lower bits of a value is not known.
    let second_sign = if known { Sign::Unsigned } else { sign };
    let factors = [Factor { bits: 10, sign }, Factor { bits: second, sign: second_sign }];
    let plan = Multiply::new(COUNT, factors, out_bits, Radix::Four).unwrap();
    let other = move |x: i64| match second_sign {
        Sign::Unknown | Sign::Spare => signed(x as u64, second),
        _ => x & mask(second) as i64,
    };
    let price = (plan.demand(), plan.cost());
    let run = move |channel: &mut Channel, x: &Share, ots| {
        multiply::run(channel, &plan, x, &x.narrow(second)?, ots)
    };
    let frames = if sign == Sign::Spare { [2, 2] } else { [4, 4] };
    told((name, 10, sign), price, run, move |x| x * other(x)).tampered(frames)
}

/// The product of the values with integers of `bits` that the client has.
#[allow(clippy::unwrap_used)]
fn multiply_known(name: &'static str, bits: u32) -> Protocol {
    let factor = move |at: usize| signed((at as u64).wrapping_mul(0x9e37_79b9), bits);
    let shared = Factor { bits: 10, sign: Sign::Spare };
    let plan = Known::new(COUNT, shared, bits, 24, Radix::Four).unwrap();
    let price = (plan.demand(), plan.cost());
    let run = move |channel: &mut Channel, x: &Share, ots| {
        let held = |at| if channel.role() == Role::Client { factor(at) as u64 } else { 0 };
        let known = Share::new((0..COUNT).map(held).collect(), bits);
        known::run(channel, &plan, x, &known, ots)
    };
    let products = move |values: &[i64]| {
        values.iter().enumerate().map(|(at, value)| value * factor(at)).collect()
    };
    Protocol::new(name, 10, price, run, of_values(products)).tampered([1, 1])
}

#[allow(clippy::unwrap_used)]
fn square(name: &'static str, sign: Sign, radix: Radix) -> Protocol {
    let plan = Square::new(COUNT, Factor { bits: 10, sign }, 20, radix).unwrap();
    let price = (plan.demand(), plan.cost());
    let run = move |channel: &mut Channel, x: &Share, ots| square::run(channel, &plan, x, ots);
    let frames = if sign == Sign::NonNegative { [2, 2] } else { [4, 4] };
    told((name, 10, sign), price, run, |value| value.pow(2)).tampered(frames)
}

/// Inner products of four values with themselves.
#[allow(clippy::unwrap_used)]
fn dot() -> Protocol {
    let factors = [Factor { bits: 9, sign: Sign::Unknown }; 2];
    let plan = Dot::new(COUNT / 4, 4, factors, 20, Radix::Four).unwrap();
    Protocol::new(
        "dot",
        9,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| dot::run(channel, &plan, x, x, ots),
        of_values(|values| values.chunks(4).map(|row| row.iter().map(|x| x * x).sum()).collect()),
    )
}

fn slope(name: &'static str, plan: Slope, ideal: fn(i64) -> i64) -> Protocol {
    Protocol::new(
        name,
        12,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| leaky_relu::run(channel, &plan, x, ots),
        of_each(ideal),
    )
}

#[allow(clippy::unwrap_used)]
fn clip(bounds: [i64; 2], out_bits: u32) -> Protocol {
    let plan = Clip::new(COUNT, 12, bounds, out_bits, Radix::Four).unwrap();
    Protocol::new(
        "clip",
        12,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| clip::run(channel, &plan, x, ots),
        of_each(move |y| y.clamp(bounds[0], bounds[1])),
    )
}

#[allow(clippy::unwrap_used)]
fn signs(name: &'static str, told: Told, ideal: fn(i64) -> i64) -> Protocol {
    let plan = Signs::new(COUNT, 12, told, 12, Radix::Four).unwrap();
    Protocol::new(
        name,
        12,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| sign::run(channel, &plan, x, ots),
        of_each(ideal),
    )
    .tampered([3, 3])
}

/// A prime of 13 bits.
const PRIME: u64 = 7681;

#[allow(clippy::unwrap_used)]
fn modulus() -> Modulus {
    Modulus::new(PRIME).unwrap()
}

/// Out of shares mod a prime, which those of the ladder are made first.
#[allow(clippy::unwrap_used)]
fn leave() -> Protocol {
    let plan = Leave::new(COUNT, modulus(), 20, Radix::Four).unwrap();
    let reduced = |x: &Share| -> Vec<u64> { x.words().iter().map(|word| word % PRIME).collect() };
    Protocol::new(
        "leave a prime",
        14,
        (plan.demand(), plan.cost()),
        move |channel, x, ots| {
            let x = Share::new(reduced(x), modulus().bits());
            prime::leave(channel, &plan, &x, ots)
        },
        Box::new(move |client, server| {
            let sums = reduced(client).into_iter().zip(reduced(server));
            let sums = sums.map(|(c, s)| (c + s) % PRIME);
            let centred = |sum: u64| sum as i64 - PRIME as i64 * i64::from(sum > PRIME / 2);
            sums.map(|sum| centred(sum) as u64).collect()
        }),
    )
    .tampered([3, 3])
}

/// Into shares mod a prime and out of them again, so that shares mod 2^k come out.
#[allow(clippy::unwrap_used)]
fn enter() -> Protocol {
    let enter = Enter::new(COUNT, 10, modulus(), Sign::Unknown, Radix::Four).unwrap();
    let leave = Leave::new(COUNT, modulus(), 18, Radix::Four).unwrap();
    Protocol::new(
        "enter a prime",
        10,
        (enter.demand() + leave.demand(), enter.cost().then(leave.cost())),
        move |channel, x, mut ots| {
            let now = ots.split(channel.role(), &enter.demand())?;
            let inside = prime::enter(channel, &enter, x, now)?;
            prime::leave(channel, &leave, &inside, ots)
        },
        of_values(<[i64]>::to_vec),
    )
    .tampered([6, 6])
}
