//! Straight-line integer programs on shares.
//!
//! | | |
//! |---|---|
//! | In | shares of the program's argument mod 2^bits, `0 <= x < 2^(bits-1)`; correlations |
//! | Out | shares of the program's result, in the ring that it names |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations: a sequence of protocols on uniform shares |
//! | Cost | that of its squares, products, shifts, comparisons and tables ([`Program::cost`]) |
//! | Paper | Comet, section 3 (all functions by one inverse square root); parts: SiRNN (S&P 2021) |
//!
//! The program is [`graph::functions::straight_line::StraightLine`]. Neighbours of one kind that
//! do not need each other run at once.

use graph::functions::straight_line::{Step, StraightLine};
use ring::Bits;
use std::collections::BTreeMap;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::arithmetic::extend::{self, Extend, Sign};
use crate::arithmetic::multiply::{self, Factor, Multiply};
use crate::arithmetic::square::{self, Square};
use crate::arithmetic::truncate::{self, Truncate};
use crate::boolean::compare::{self, Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::nonlinear::clamp::Inside;
use crate::nonlinear::lookup::{self, Lookup};
use crate::protocol::Protocol as _;
use crate::share::{Share, sign_of};

/// The public plan of one program on many arguments.
#[derive(Clone, Debug)]
pub struct Program {
    count: usize,
    straight_line: StraightLine,
    bits: u32,
    /// The extension of the arguments, where the program needs them wider than they come.
    widening: Option<Extend>,
    groups: Vec<Group>,
}

/// Steps that run at once, from `start` on.
#[derive(Clone, Debug)]
struct Group {
    start: usize,
    length: usize,
    protocol: Protocol,
}

#[derive(Clone, Debug)]
enum Protocol {
    Local,
    Square(Square, u32),
    Product(Multiply, [u32; 2]),
    Shift(Truncate, u32),
    AtLeast(Comparison, usize, u32),
    Choose(Inside),
    Lookup(Lookup, u32),
}

impl Program {
    /// Plans `count` arguments whose shares have `bits`, at least as many as the program's.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths.
    pub fn new(
        count: usize,
        straight_line: &StraightLine,
        bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        if bits < straight_line.bits()[0]
            || count.checked_mul(straight_line.steps.len().max(1)).is_none()
        {
            return Err(Error::misuse("a program on arguments of other widths"));
        }
        let first = straight_line.rings.first().copied().unwrap_or(1);
        let widening = (first > bits)
            .then(|| Extend::new(count, bits, first, Sign::NonNegative, radix))
            .transpose()?;
        let mut groups = Vec::new();
        let mut start = 0;
        while start < straight_line.steps.len() {
            let length = together(straight_line, start);
            let protocol = protocol(straight_line, count, start..start + length, radix)?;
            groups.push(Group { start, length, protocol });
            start += length;
        }
        Ok(Self { count, straight_line: straight_line.clone(), bits, widening, groups })
    }

    /// Returns the program.
    pub fn straight_line(&self) -> &StraightLine {
        &self.straight_line
    }

    /// Returns the width of the result.
    pub fn out_bits(&self) -> u32 {
        self.straight_line.bits()[1]
    }

    /// Returns the correlations that a run consumes.
    pub fn demand(&self) -> Demand {
        let first = self.widening.as_ref().map(Extend::demand).unwrap_or_default();
        first + self.groups.iter().map(|group| group.protocol.demand()).sum()
    }

    /// Returns what [`run`] costs.
    pub fn cost(&self) -> Cost {
        let first = self.widening.as_ref().map_or(Cost::NONE, Extend::cost);
        self.groups.iter().fold(first, |cost, group| cost.then(group.protocol.cost()))
    }
}

/// How many steps from `start` on run at once.
fn together(straight_line: &StraightLine, start: usize) -> usize {
    let Some(first) = straight_line.steps.get(start) else { return 0 };
    let alike = |index: &usize| match (first, straight_line.steps.get(*index)) {
        (Step::AtLeast(a, _), Some(Step::AtLeast(b, _))) => a == b,
        (Step::Choose([_, a]), Some(Step::Choose([bit, b]))) => a == b && *bit <= start,
        _ => false,
    };
    1 + (start + 1..straight_line.steps.len()).take_while(alike).count()
}

fn widest(straight_line: &StraightLine, steps: std::ops::Range<usize>) -> u32 {
    let rings = steps.map(|index| straight_line.rings.get(index + 1).copied().unwrap_or(1));
    rings.max().unwrap_or(1)
}

fn protocol(
    straight_line: &StraightLine,
    count: usize,
    steps: std::ops::Range<usize>,
    radix: Radix,
) -> Result<Protocol> {
    let ring = widest(straight_line, steps.clone());
    let all = count * steps.len();
    let factor = |value: usize| Factor {
        bits: straight_line.factor_bits(value, ring),
        sign: Sign::NonNegative,
    };
    let Some(step) = straight_line.steps.get(steps.start) else { return Ok(Protocol::Local) };
    Ok(match step {
        Step::Affine(..) => Protocol::Local,
        Step::Square(value) => {
            let factor = factor(*value);
            Protocol::Square(Square::new(all, factor, ring, radix)?, factor.bits)
        }
        Step::Product([a, b]) => {
            let factors = [factor(*a), factor(*b)];
            Protocol::Product(Multiply::new(all, factors, ring, radix)?, factors.map(|f| f.bits))
        }
        Step::Shift(value, drop) => {
            let least = straight_line.shifted_bits(*value, *drop);
            let have = straight_line.rings.get(*value).copied().unwrap_or(least);
            let bits = have.min(least.max(ring + drop));
            let plan = Truncate::widening(all, bits, *drop, ring, Sign::NonNegative, radix)?;
            Protocol::Shift(plan, bits)
        }
        Step::AtLeast(value, _) => {
            let thresholds = straight_line.steps.get(steps).unwrap_or_default().iter();
            let bits = thresholds.map(|step| match step {
                Step::AtLeast(_, threshold) => straight_line.compared_bits(*value, *threshold),
                _ => 2,
            });
            let bits = bits.max().unwrap_or(2);
            Protocol::AtLeast(Comparison::carry(bits - 1, radix), all, bits)
        }
        Step::Choose(_) => Protocol::Choose(Inside {
            count: all,
            bits: ring,
            cap: None,
            out_bits: ring,
            asks: Role::Client,
        }),
        Step::Lookup(_, values) => {
            let bits = values.len().ilog2();
            Protocol::Lookup(Lookup::new(all, bits, ring)?, bits)
        }
    })
}

impl Protocol {
    fn demand(&self) -> Demand {
        match self {
            Self::Local => Demand::default(),
            Self::Square(plan, _) => plan.demand(),
            Self::Product(plan, _) => plan.demand(),
            Self::Shift(plan, _) => plan.demand(),
            Self::AtLeast(plan, count, _) => plan.demand(*count),
            Self::Choose(plan) => plan.demand(),
            Self::Lookup(plan, _) => plan.demand(),
        }
    }

    fn cost(&self) -> Cost {
        match self {
            Self::Local => Cost::NONE,
            Self::Square(plan, _) => plan.cost(),
            Self::Product(plan, _) => plan.cost(),
            Self::Shift(plan, _) => plan.cost(),
            Self::AtLeast(plan, count, _) => plan.cost(*count),
            Self::Choose(plan) => plan.cost(Role::Client),
            Self::Lookup(plan, _) => plan.cost(),
        }
    }
}

/// The shares of every value so far, additive ones or, of comparisons, by exclusive or.
struct Values {
    shares: Vec<Share>,
    bits: BTreeMap<usize, Zeroizing<Bits>>,
}

impl Values {
    /// A value in a ring that is no wider than it has.
    fn at(&self, value: usize, bits: u32) -> Result<Share> {
        let share =
            self.shares.get(value).ok_or_else(|| Error::misuse("a program out of order"))?;
        share.narrow(bits)
    }

    fn affine(&self, role: Role, terms: &[(usize, i64)], constant: i64, ring: u32) -> Share {
        let count = self.shares.first().map_or(0, Share::len);
        let mut sums = vec![0u64; count];
        for (value, factor) in terms {
            let words = self.shares.get(*value).map(Share::words).unwrap_or_default();
            let pairs = sums.iter_mut().zip(words);
            pairs.for_each(|(sum, word)| {
                *sum = sum.wrapping_add(word.wrapping_mul(*factor as u64));
            });
        }
        Share::new(sums, ring).plus(role, constant)
    }
}

fn joined(parts: &[Share]) -> Share {
    let mut words = Vec::with_capacity(parts.iter().map(Share::len).sum());
    parts.iter().for_each(|part| words.extend_from_slice(part.words()));
    Share::new(words, parts.first().map_or(1, Share::bits))
}

/// Runs the program; the argument's shares are as wide as planned.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Program,
    x: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    x.check(plan.count, plan.bits, "program")?;
    let first = match &plan.widening {
        Some(widening) => {
            let now = ots.split(channel.role(), &widening.demand())?;
            extend::run(channel, widening, x, now)?
        }
        None => x.clone(),
    };
    // With room for all: a vector that grows leaves copies behind.
    let shares = Vec::with_capacity(plan.straight_line.steps.len() + 1);
    let mut values = Values { shares, bits: BTreeMap::new() };
    values.shares.push(first);
    for group in &plan.groups {
        let now = ots.split(channel.role(), &group.protocol.demand())?;
        if let Protocol::AtLeast(comparison, ..) = &group.protocol {
            compared(channel, plan, group, comparison, &mut values, now)?;
            continue;
        }
        let results = together_run(channel, plan, group, &values, now)?;
        for (index, words) in results.words().chunks(plan.count.max(1)).enumerate() {
            let ring = plan.straight_line.rings.get(group.start + index + 1).copied().unwrap_or(1);
            values.shares.push(Share::new(words.to_vec(), ring));
        }
    }
    values.shares.pop().ok_or_else(|| Error::misuse("an empty program"))
}

/// Adds the bits of comparisons to `values`.
fn compared(
    channel: &mut Channel,
    plan: &Program,
    group: &Group,
    comparison: &Comparison,
    values: &mut Values,
    mut ots: Correlations,
) -> Result<()> {
    let (role, Protocol::AtLeast(_, _, bits)) = (channel.role(), &group.protocol) else {
        return Err(defect("a step of a formula is in the group of another protocol"));
    };
    let steps = plan.straight_line.steps.iter().skip(group.start).take(group.length);
    let moved = steps.map(|step| match step {
        Step::AtLeast(value, threshold) => Ok(values.at(*value, *bits)?.plus(role, -threshold)),
        _ => Err(defect("a step of a formula is in the group of another protocol")),
    });
    let moved = joined(&moved.collect::<Result<Vec<_>>>()?);
    let found = compare::of_share(channel, comparison, &moved, &mut ots)?;
    let mut reached = Zeroizing::new(sign_of(role, moved.words(), *bits));
    reached.xor(&found.greater);
    for index in 0..group.length {
        let own: Bits = reached.iter().skip(index * plan.count).take(plan.count).collect();
        values.bits.insert(group.start + index + 1, Zeroizing::new(own));
        values.shares.push(Share::new(Vec::new(), 1));
    }
    Ok(())
}

fn together_run(
    channel: &mut Channel,
    plan: &Program,
    group: &Group,
    values: &Values,
    ots: Correlations,
) -> Result<Share> {
    let role = channel.role();
    let range = group.start..group.start + group.length;
    let steps = plan.straight_line.steps.get(range.clone()).unwrap_or_default();
    let each = |pick: &dyn Fn(&Step) -> Result<Share>| -> Result<Share> {
        let parts: Vec<Share> = steps.iter().map(pick).collect::<Result<_>>()?;
        Ok(joined(&parts))
    };
    let odd = || defect("a step of a formula is in the group of another protocol");
    match &group.protocol {
        Protocol::Local => match steps.first() {
            Some(Step::Affine(terms, constant)) => {
                let ring = widest(&plan.straight_line, range);
                Ok(values.affine(role, terms, *constant, ring))
            }
            _ => Err(odd()),
        },
        Protocol::Square(square, bits) => match steps.first() {
            Some(Step::Square(value)) => {
                square::run(channel, square, &values.at(*value, *bits)?, ots)
            }
            _ => Err(odd()),
        },
        Protocol::Product(product, bits) => {
            let [a, b] = [0, 1].map(|place: usize| {
                each(&|step| match step {
                    Step::Product(factors) => values.at(
                        factors.get(place).copied().unwrap_or(0),
                        bits.get(place).copied().unwrap_or(1),
                    ),
                    _ => Err(odd()),
                })
            });
            multiply::run(channel, product, &a?, &b?, ots)
        }
        Protocol::Shift(shift, bits) => match steps.first() {
            Some(Step::Shift(value, _)) => {
                truncate::run(channel, shift, &values.at(*value, *bits)?, ots)
            }
            _ => Err(odd()),
        },
        Protocol::AtLeast(..) => Err(odd()),
        Protocol::Choose(inside) => {
            let x = each(&|step| match step {
                Step::Choose([_, value]) => values.at(*value, inside.bits),
                _ => Err(odd()),
            })?;
            let chosen = steps.iter().flat_map(|step| match step {
                Step::Choose([bit, _]) => values.bits.get(bit),
                _ => None,
            });
            let chosen = chosen.flat_map(|bits| bits.iter()).collect::<Bits>();
            let chosen = Zeroizing::new(chosen);
            inside.run(channel, Role::Client, x.words(), [&chosen, &chosen], ots)
        }
        Protocol::Lookup(plan, bits) => match steps.first() {
            Some(Step::Lookup(value, entries)) => {
                let table: Vec<u64> = match role {
                    Role::Client => Vec::new(),
                    Role::Server => entries.iter().map(|entry| *entry as u64).collect(),
                };
                lookup::run(channel, plan, &values.at(*value, *bits)?, &table, ots)
            }
            _ => Err(odd()),
        },
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
