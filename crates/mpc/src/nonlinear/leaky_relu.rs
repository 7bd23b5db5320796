//! Functions of two slopes: absolute values and leaky ReLU.
//!
//! | | |
//! |---|---|
//! | In | shares of `y` mod 2^bits, -2^(bits-1) <= y < 2^(bits-1); correlations |
//! | Out | shares of `floor(p*y / 2^k)` for `y >= 0`, of `floor(q*y / 2^k)` for `y < 0`, mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | for w = out_bits + k: one comparison of bits - 1, then 2*(w + 1) bits less twice the zeros that p - q ends with; w > bits: 3*(w - bits) + 2 bits more; k > 0: a truncation of w by k ([`Slope::cost`]) |
//! | Paper | CrypTFlow2 (sign by carry, multiplexer), SiRNN (extension, truncation) |
//!
//! With d = [y >= 0], `z = q*y + (p - q)*d*y` is a multiplexer. Read as signed integers
//! the shares add up to `y - 2^bits*v`, where v is 1 if d and both top bits are 1, -1 if
//! all three are 0, else 0: where z is wider than y, `v` times its slope is one of
//! four, chosen by the client's d and top bit. Leaky ReLU is `p = 2^k`: exact, because
//! `floor(2^k*y / 2^k) = y`.

use ot::{Entry, Job, Table};
use ring::Bits;
use ring::word::signed;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::arithmetic::multiply::{add_terms, kept};
use crate::arithmetic::mux::{self, Side, Switch};
use crate::arithmetic::truncate::{self, Truncate};
use crate::boolean::compare::{self, Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::relu::gated;
use crate::protocol::Protocol;
use crate::share::{Share, sign_of};

/// The public plan of one layer.
#[derive(Clone, Debug)]
pub struct Slope {
    count: usize,
    bits: u32,
    /// Width before the truncation.
    width: u32,
    positive: i64,
    negative: i64,
    comparison: Comparison,
    truncate: Option<Truncate>,
}

impl Slope {
    /// Plans `|y|` for `count` values of `bits` (2 to 63), mod 2^out_bits (2 to 63).
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths.
    pub fn absolute(count: usize, bits: u32, out_bits: u32, radix: Radix) -> Result<Self> {
        Self::new(count, bits, [1, -1], 0, out_bits, radix)
    }

    /// Plans `y` where it is not negative, else `floor(slope*y / 2^shift)`.
    ///
    /// # Errors
    /// As [`Slope::new`].
    pub fn leaky(
        count: usize,
        bits: u32,
        slope: i64,
        shift: u32,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let one = 1i64.checked_shl(shift).ok_or_else(refused)?;
        Self::new(count, bits, [one, slope], shift, out_bits, radix)
    }

    /// Slopes `positive / 2^shift` and `negative / 2^shift`, from `bits` (2 to 63) to
    /// `out_bits`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths out of range (`out_bits + shift` is at most 63), and
    /// for slopes that are equal mod 2^(out_bits + shift).
    pub fn new(
        count: usize,
        bits: u32,
        [positive, negative]: [i64; 2],
        shift: u32,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let width = out_bits.checked_add(shift).filter(|width| out_bits > 0 && *width <= 63);
        let width = width.filter(|_| (2..=63).contains(&bits)).ok_or_else(refused)?;
        if positive.wrapping_sub(negative).trailing_zeros() >= width {
            return Err(refused());
        }
        let comparison = Comparison::carry(bits - 1, radix);
        let truncate = match shift {
            0 => None,
            _ => Some(Truncate::new(count, width, shift, out_bits, radix)?),
        };
        Ok(Self { count, bits, width, positive, negative, comparison, truncate })
    }

    /// `p - q`.
    fn difference(&self) -> i64 {
        self.positive.wrapping_sub(self.negative)
    }

    fn switch(&self) -> Switch {
        let job =
            |choice_bits, bits| Job { count: self.count, choice_bits, entry: Entry::Word(bits) };
        let gated = job(1, self.width - self.difference().trailing_zeros());
        let wrap = (self.width > self.bits).then(|| job(2, self.width - self.bits));
        let to_client = std::iter::once(gated).chain(wrap).collect();
        Switch { to_client, to_server: vec![gated] }
    }

    fn choosing(&self) -> Demand {
        self.comparison.demand(self.count) + self.switch().demand()
    }

    /// Returns the correlations that a run consumes.
    pub fn demand(&self) -> Demand {
        self.choosing() + self.truncate.as_ref().map(Truncate::demand).unwrap_or_default()
    }

    /// Returns what [`run`] costs.
    pub fn cost(&self) -> Cost {
        let first = self.comparison.last_sender();
        let choosing = self.comparison.cost(self.count).then(self.switch().cost(first));
        choosing.then(self.truncate.as_ref().map_or(Cost::NONE, Truncate::cost))
    }

    /// `y` are this party's summands as signed integers, `top` their top bits, `d` its
    /// shares of `[y >= 0]`.
    fn side(&self, role: Role, y: &[u64], top: Bits, d: &Bits) -> Side {
        let wraps = self.width > self.bits;
        let mut side =
            Side { choices: vec![vec![d.clone()]], tables: vec![Table::words(gated(y, d))] };
        match role {
            Role::Client => side.choices.extend(wraps.then(|| vec![d.clone(), top])),
            Role::Server => side.tables.extend(wraps.then(|| self.wraps(d, &top))),
        }
        side
    }

    /// `v` times its slope, by the client's share of d and its top bit.
    fn wraps(&self, d: &Bits, top: &Bits) -> Table {
        let slope = |slope: i64| Zeroizing::new(vec![slope as u64; self.count]);
        let (up, down) = (slope(self.positive), slope(self.negative.wrapping_neg()));
        let (other, low) = (d.not(), top.not());
        Table::words(vec![
            kept(&down, &other.and(&low)),
            kept(&down, &d.and(&low)),
            kept(&up, &d.and(top)),
            kept(&up, &other.and(top)),
        ])
    }

    /// What the entries towards `receiver` count.
    fn factors(&self, receiver: Role) -> Vec<u64> {
        let wrap = (receiver == Role::Client && self.width > self.bits).then(|| 1u64 << self.bits);
        std::iter::once(self.difference() as u64).chain(wrap).collect()
    }
}

fn refused() -> Error {
    Error::misuse("two slopes with these widths")
}

/// Runs the layer.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Slope, y: &Share, mut ots: Correlations) -> Result<Share> {
    y.check(plan.count, plan.bits, "slopes")?;
    let role = channel.role();
    let now = ots.split(role, &plan.choosing())?;
    let sums = choose(channel, plan, y, now)?;
    match &plan.truncate {
        Some(truncation) => truncate::run(channel, truncation, &sums, ots),
        None => Ok(sums),
    }
}

/// Shares of `p*y` or `q*y`.
fn choose(channel: &mut Channel, plan: &Slope, y: &Share, mut ots: Correlations) -> Result<Share> {
    let role = channel.role();
    let found = compare::of_share(channel, &plan.comparison, y, &mut ots)?;
    let mut d = sign_of(role, y.words(), plan.bits);
    d.xor(&found.greater);
    let integers = y.words().iter().map(|word| signed(*word, plan.bits) as u64);
    let integers = Zeroizing::new(integers.collect::<Vec<u64>>());
    let top = Bits::of_words(y.words(), plan.bits - 1);
    let side = plan.side(role, &integers, top, &d);
    let first = plan.comparison.last_sender();
    let switched = mux::run(channel, &plan.switch(), first, side, ots)?;
    let slope = plan.negative as u64;
    let mut sums: Vec<u64> = integers.iter().map(|y| y.wrapping_mul(slope)).collect();
    for (columns, receiver) in [(&switched.received, role), (&switched.sent, !role)] {
        add_terms(&mut sums, columns.iter(), plan.factors(receiver).into_iter());
    }
    Ok(Share::new(sums, plan.width))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{computed, split};
    use ring::Random;

    /// Slopes, shift and width of the result.
    type Case = ([i64; 2], u32, u32);

    fn check(case: Case, client: &Share, server: &Share, radix: Radix, rng: &mut Random) {
        let (slopes, shift, out_bits) = case;
        let plan = Slope::new(client.len(), client.bits(), slopes, shift, out_bits, radix).unwrap();
        let price = (plan.demand(), plan.cost());
        let got = computed(rng, price, [client, server], |ch, x, ots| run(ch, &plan, x, ots));
        let values = Share::reconstruct(client, server).into_iter().map(i128::from);
        let slope = |y: i128| i128::from(if y >= 0 { slopes[0] } else { slopes[1] });
        let want = values.map(|y| signed(((slope(y) * y) >> shift) as u64, out_bits));
        assert_eq!(got, want.collect::<Vec<_>>(), "{case:?}");
    }

    #[test]
    fn every_pair_of_small_shares() {
        let mut rng = Random::seeded(46);
        for bits in 2..=6u32 {
            let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
            let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
            let (client, server) = (Share::new(x, bits), Share::new(y, bits));
            for (slopes, shift) in
                [([1, -1], 0), ([8, 1], 3), ([8, -3], 3), ([0, 5], 1), ([3, 2], 0)]
            {
                for out_bits in [2, bits, bits + 1, 17] {
                    let case = (slopes, shift, out_bits);
                    check(case, &client, &server, Radix::Four, &mut rng);
                }
            }
        }
    }

    #[test]
    fn wide_values_at_the_bounds() {
        let mut rng = Random::seeded(47);
        for (bits, shift, out_bits) in
            [(12, 0, 12), (12, 0, 20), (16, 7, 16), (31, 8, 40), (63, 0, 63)]
        {
            let edge = 1i64 << (bits - 2);
            let mut values = vec![0, 1, -1, edge, -edge, edge - 1 + edge, -edge - edge];
            values.extend(rng.uniform(100, bits - 1).iter().map(|word| *word as i64 - edge));
            let (client, server) = split(&mut rng, &values, bits);
            for radix in [Radix::Two, Radix::Four] {
                for slopes in [[1 << shift, 13], [1, -1]] {
                    check((slopes, shift, out_bits), &client, &server, radix, &mut rng);
                }
            }
        }
    }

    #[test]
    fn absolute_and_leaky_are_slopes() {
        let absolute = Slope::absolute(1, 8, 8, Radix::Four).unwrap();
        assert_eq!((absolute.positive, absolute.negative, absolute.width), (1, -1, 8));
        let leaky = Slope::leaky(1, 8, 13, 7, 8, Radix::Four).unwrap();
        assert_eq!((leaky.positive, leaky.negative, leaky.width), (128, 13, 15));
    }

    #[test]
    fn misfits_are_refused() {
        let new = |bits, slopes, shift, out_bits| {
            Slope::new(1, bits, slopes, shift, out_bits, Radix::Four)
        };
        assert!(new(8, [5, 5], 0, 8).is_err() && new(8, [16, 0], 0, 4).is_err());
        assert!(new(1, [1, 0], 0, 8).is_err() && new(64, [1, 0], 0, 8).is_err());
        assert!(new(8, [1, 0], 0, 0).is_err() && new(8, [1, 0], 60, 4).is_err());
        assert!(new(8, [1, 0], u32::MAX, 4).is_err());
        assert!(Slope::leaky(1, 8, 3, 64, 8, Radix::Four).is_err());
    }
}
