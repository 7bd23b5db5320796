//! Products of shared integers, of different widths.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^m and `y` mod 2^n, with what is known of their signs; correlations |
//! | Out | shares of `x*y` mod 2^out_bits, element by element |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | n <= m: twice the sum over i < n of out_bits - i + 1 bits; for each factor narrower than the result its wrap, then 2*(out_bits - width + 1) bits ([`Multiply::cost`]) |
//! | Paper | Rathee et al., SiRNN (S&P 2021), multiplication with non-uniform widths, section III-C |
//!
//! As integers `x = X_c + X_s - 2^m*w_x` and `y = Y_c + Y_s - 2^n*w_y` (`wrap.rs`).
//! `X_c*Y_c` and `X_s*Y_s` are local. Of the cross terms each party adds up the other's
//! X where a bit of its own Y is set: bit i is worth 2^i, so its share is needed mod
//! 2^(out_bits - i) only. `w_x*(Y_c + Y_s)` is a choice each way by the halves of w_x,
//! and `w_x*w_y` one of four; they are needed only as far as `2^m` and `2^n` are not zero
//! mod 2^out_bits. All OTs run at once. A factor that is not narrower than the
//! result is reduced first and has no wrap.

pub mod known;
mod terms;

use ring::Bits;
use wire::{Channel, Cost, Error, Result, Role};

use crate::arithmetic::mux::{self, Switch};
use crate::boolean::compare::Radix;
use crate::boolean::wrap::{self, Sign, Wrap, Wrapped};
use crate::correlations::{Correlations, Demand};
use crate::protocol::{Protocol, input};
use crate::share::Share;
use terms::{Ends, Term, What};

/// One of two factors: its width, 1 to 63, and its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Width of its shares.
    pub bits: u32,
    /// What is known of its values.
    pub sign: Sign,
}

impl Factor {
    /// Whether the width has the bits that the sign asks for.
    fn fits(self) -> bool {
        self.sign != Sign::Spare || self.bits >= 2
    }
}

/// A factor as it is used: no wider than the result.
#[derive(Clone, Debug)]
struct Reduced {
    bits: u32,
    /// The wrap of a factor that is narrower than the result.
    wrap: Option<Wrap>,
}

/// The public plan of elementwise products.
#[derive(Clone, Debug)]
pub struct Multiply {
    count: usize,
    factors: [Factor; 2],
    out_bits: u32,
    /// A run is told the wraps of the second factor.
    told: bool,
    /// The wider factor, of which tables are made, and the one whose bits choose.
    wide: Reduced,
    narrow: Reduced,
    /// Both wraps are found by one comparison of twice as many values.
    together: bool,
    /// Who begins where nothing is compared.
    first: Role,
}

impl Reduced {
    fn new(factor: Factor, out_bits: u32, radix: Radix) -> Self {
        let wrap = (factor.bits < out_bits).then(|| Wrap::new(factor.bits, factor.sign, radix));
        Self { bits: factor.bits.min(out_bits), wrap }
    }

    fn offset(&self) -> u64 {
        self.wrap.as_ref().map_or(0, Wrap::offset)
    }

    fn last_sender(&self) -> Option<Role> {
        self.wrap.as_ref().and_then(Wrap::last_sender)
    }

    /// This party's summands and, of a narrow factor, its halves of the wraps, unless it is told
    /// them.
    fn run(
        &self,
        channel: &mut Channel,
        (x, told): (&Share, Option<&Bits>),
        ots: &mut Correlations,
    ) -> Result<Wrapped> {
        let x = x.narrow(self.bits)?;
        match (&self.wrap, told) {
            (Some(plan), None) => wrap::run(channel, plan, &x, ots),
            (_, half) => {
                Ok(Wrapped { words: x.words().to_vec(), half: half.cloned().unwrap_or_default() })
            }
        }
    }
}

impl Multiply {
    /// Plans `count` products mod 2^out_bits (1 to 63).
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths or a count out of range.
    pub fn new(count: usize, factors: [Factor; 2], out_bits: u32, radix: Radix) -> Result<Self> {
        Self::planned(count, factors, out_bits, radix, false)
    }

    /// Plans products whose second factor is unsigned, and whose run is told its wraps, by
    /// [`run_told`].
    ///
    /// # Errors
    /// As of [`Multiply::new`], and for a second factor with a sign.
    pub(crate) fn told(
        count: usize,
        factors: [Factor; 2],
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        if factors[1].sign != Sign::Unsigned {
            return Err(Error::misuse("a product by told wraps of signed values"));
        }
        Self::planned(count, factors, out_bits, radix, true)
    }

    fn planned(
        count: usize,
        factors: [Factor; 2],
        out_bits: u32,
        radix: Radix,
        told: bool,
    ) -> Result<Self> {
        let fits = |bits: u32| (1..=63).contains(&bits);
        let widths =
            fits(out_bits) && factors.iter().all(|factor| fits(factor.bits) && factor.fits());
        if !widths || count.checked_mul(2).is_none() {
            return Err(Error::misuse("a product of these sizes"));
        }
        let [mut wide, mut narrow] = factors.map(|factor| Reduced::new(factor, out_bits, radix));
        if let (true, Some(wrap)) = (told, &mut narrow.wrap) {
            *wrap = Wrap::told(narrow.bits);
        }
        if wide.bits < narrow.bits {
            std::mem::swap(&mut wide, &mut narrow);
        }
        let together = !told && factors[0] == factors[1] && wide.last_sender().is_some();
        let first = Role::Client;
        Ok(Self { count, factors, out_bits, told, wide, narrow, together, first })
    }

    /// Lets `first` begin where nothing is compared; the client does by default.
    #[must_use]
    pub fn begun_by(self, first: Role) -> Self {
        Self { first, ..self }
    }

    /// Returns the width of the result.
    pub fn out_bits(&self) -> u32 {
        self.out_bits
    }

    /// The wraps in the order in which they are found, with their numbers of values.
    fn wraps(&self) -> impl Iterator<Item = (&Wrap, usize)> {
        let (count, narrow) = match self.together {
            true => (2 * self.count, None),
            false => (self.count, self.narrow.wrap.as_ref()),
        };
        self.wide.wrap.iter().chain(narrow).map(move |wrap| (wrap, count))
    }

    fn first(&self) -> Role {
        let spoke = self.narrow.last_sender().or(self.wide.last_sender());
        spoke.unwrap_or(self.first)
    }

    /// Bits of the result above a multiple of `2^bits`.
    fn above(&self, bits: u32) -> Option<u32> {
        self.out_bits.checked_sub(bits).filter(|left| *left > 0)
    }

    /// The OTs towards `receiver`: what each of its choices has, the width of an
    /// entry and its factor in the result.
    fn terms(&self, receiver: Role) -> Vec<Term> {
        let (m, n) = (self.wide.bits, self.narrow.bits);
        let term = |what, bits, shift: u32| Term { what, bits, shift };
        let mut terms: Vec<Term> =
            (0..n).map(|bit| term(What::Bit(bit), self.out_bits - bit, bit)).collect();
        terms.extend(self.above(m).map(|bits| term(What::WideWrap, bits, m)));
        terms.extend(self.above(n).map(|bits| term(What::NarrowWrap, bits, n)));
        if receiver == Role::Client {
            terms.extend(self.above(m + n).map(|bits| term(What::BothWraps, bits, m + n)));
        }
        terms
    }

    fn switch(&self) -> Switch {
        let jobs = |receiver| self.terms(receiver).iter().map(|t| t.job(self.count)).collect();
        Switch { to_client: jobs(Role::Client), to_server: jobs(Role::Server) }
    }

    /// Both factors with their wraps, the wide one first.
    fn wrapped(
        &self,
        channel: &mut Channel,
        [wide, narrow]: [(&Share, Option<&Bits>); 2],
        ots: &mut Correlations,
    ) -> Result<[Wrapped; 2]> {
        if !self.together {
            let wide = self.wide.run(channel, wide, ots)?;
            return Ok([wide, self.narrow.run(channel, narrow, ots)?]);
        }
        let [x, y] = [wide.0, narrow.0];
        let words = x.words().iter().chain(y.words()).copied().collect();
        let both = self.wide.run(channel, (&Share::new(words, x.bits()), None), ots)?;
        let part = |skip: usize| Wrapped {
            words: both.words.iter().skip(skip).take(self.count).copied().collect(),
            half: both.half.iter().skip(skip).take(self.count).collect(),
        };
        Ok([part(0), part(self.count)])
    }
}

/// The values whose bit is set, zero for the others.
pub(crate) fn kept(values: &[u64], bits: &Bits) -> Vec<u64> {
    values.iter().zip(bits.masks()).map(|(value, mask)| value & mask).collect()
}

/// Adds the shares of OTs, each times its factor, to `sums`.
pub(crate) fn add_terms<'a>(
    sums: &mut [u64],
    columns: impl Iterator<Item = &'a ot::Column>,
    factors: impl Iterator<Item = u64>,
) {
    for (column, factor) in columns.zip(factors) {
        let pairs = sums.iter_mut().zip(column.first_word().into_iter().flatten());
        pairs.for_each(|(sum, word)| *sum = sum.wrapping_add(word.wrapping_mul(factor)));
    }
}

/// Multiplies `x` (the first factor of the plan) and `y`.
///
/// # Errors
/// [`Error::Misuse`] when shares or correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Multiply,
    x: &Share,
    y: &Share,
    ots: Correlations,
) -> Result<Share> {
    run_told(channel, plan, x, (y, None), ots)
}

/// Multiplies `x` and `y`, with this party's halves of the wraps of y where the plan is told them.
///
/// # Errors
/// As of [`run`].
pub(crate) fn run_told(
    channel: &mut Channel,
    plan: &Multiply,
    x: &Share,
    (y, told): (&Share, Option<&Bits>),
    mut ots: Correlations,
) -> Result<Share> {
    let fits =
        |share: &Share, factor: Factor| (share.len(), share.bits()) == (plan.count, factor.bits);
    let halves = told.map(Bits::len);
    if !fits(x, plan.factors[0]) || !fits(y, plan.factors[1]) {
        return Err(Error::misuse("shares that do not fit their product"));
    }
    if halves != plan.told.then_some(plan.count) {
        return Err(Error::misuse("wraps that do not fit their product"));
    }
    let role = channel.role();
    let mut ordered = [(x, None), (y, told)];
    if x.bits() < y.bits() {
        ordered.reverse();
    }
    let ends = Ends::new(role, plan, plan.wrapped(channel, ordered, &mut ots)?);
    let side = ends.side(role);
    let switched = mux::run(channel, &plan.switch(), plan.first(), side, ots)?;
    let mut sums = ends.local();
    for (columns, receiver) in [(&switched.received, role), (&switched.sent, !role)] {
        add_terms(&mut sums, columns.iter(), plan.terms(receiver).iter().map(Term::factor));
    }
    Ok(Share::new(sums, plan.out_bits))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

impl Protocol for Multiply {
    fn operator(&self) -> &'static str {
        "multiply"
    }

    fn describe(&self) -> String {
        "products by OT".into()
    }

    fn demand(&self) -> Demand {
        let wraps: Demand = self.wraps().map(|(wrap, count)| wrap.demand(count)).sum();
        wraps + self.switch().demand()
    }

    fn cost(&self) -> Cost {
        let wraps: Cost = self.wraps().map(|(wrap, count)| wrap.cost(count)).collect();
        wraps.then(self.switch().cost(self.first()))
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 0)?, input(inputs, 1)?, ots)
    }
}
