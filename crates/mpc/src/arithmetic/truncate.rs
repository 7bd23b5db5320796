//! Exact truncation, with reduction or to full width.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^bits; correlations |
//! | Out | shares of `floor(x / 2^drop)` mod 2^out_bits; beyond `bits - drop` by extension |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | one comparison of drop bits, then out_bits bits; what an extension costs |
//! | Paper | Rathee et al., SiRNN (S&P 2021), truncate-and-reduce, section III-B |
//!
//! What leaves fewer than `out_bits` bits is extended afterwards: a known sign saves the
//! comparison of the upper bits, but not the carry out of those that are dropped. Where
//! gates and conversion take their OTs from: as in `extend.rs`.

use ring::Bits;
use ring::word::mask;
use wire::{Channel, Cost, Error, Result, Role};

use crate::arithmetic::b2a::{self, Arithmetic};
use crate::arithmetic::extend::{self, Extend, Sign};
use crate::boolean::compare::{self, Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::estimate;
use crate::protocol::{Protocol, input};
use crate::share::Share;
use crate::turns;

/// The public plan of a truncation.
#[derive(Clone, Debug)]
pub struct Truncate {
    count: usize,
    bits: u32,
    drop: u32,
    out_bits: u32,
    comparison: Comparison,
    conversion: Arithmetic,
    /// Who alone sends in the OTs of gates and conversion; of both parties each some when absent.
    sender: Option<Role>,
    extension: Option<Extend>,
}

impl Truncate {
    /// Plans `count` values of `bits`, dropping `drop >= 1` bits.
    ///
    /// # Errors
    /// [`Error::Misuse`] unless `out_bits + drop <= bits <= 64`.
    pub fn new(count: usize, bits: u32, drop: u32, out_bits: u32, radix: Radix) -> Result<Self> {
        let plan = |sender| Self::sent_by(sender, count, [bits, drop, out_bits], radix);
        estimate::leaner(plan, |plan| (plan.demand(), plan.cost()))
    }

    fn sent_by(
        sender: Option<Role>,
        count: usize,
        [bits, drop, out_bits]: [u32; 3],
        radix: Radix,
    ) -> Result<Self> {
        if drop == 0 || drop > 63 || out_bits == 0 || out_bits + drop > bits || bits > 64 {
            return Err(Error::misuse("a truncation with these widths"));
        }
        let comparison = Comparison::carry(drop, radix).gates_from(sender);
        let asks = comparison.last_sender();
        let conversion = Arithmetic::new(count, out_bits, asks)?;
        let conversion = conversion.sent_by(sender.unwrap_or(!asks));
        let extension = None;
        Ok(Self { count, bits, drop, out_bits, comparison, conversion, sender, extension })
    }

    /// Lets `first` begin, and an extension be begun by whoever spoke last; the client
    /// begins by default. It is for plans that do not keep what they drop.
    ///
    /// # Errors
    /// The errors of [`Truncate::new`].
    pub fn begun_by(self, first: Role) -> Result<Self> {
        let comparison = self.comparison.asked_by(first);
        let asks = comparison.last_sender();
        let conversion = Arithmetic::new(self.count, self.out_bits, asks)?;
        let conversion = conversion.sent_by(self.sender.unwrap_or(!asks));
        let last = turns::after(conversion.cost(), asks);
        let extension = self.extension.map(|extension| extension.begun_by(last));
        Ok(Self { comparison, conversion, extension, ..self })
    }

    /// Like [`Truncate::new`], keeping all upper bits, for [`run_split`]: lower bits become integers of
    /// `drop + carried` bits.
    ///
    /// # Errors
    /// [`Error::Misuse`] unless `drop < bits <= 64` and `1 <= carried <= 64 - drop`.
    pub(crate) fn splitting(
        count: usize,
        [bits, drop, carried]: [u32; 3],
        radix: Radix,
    ) -> Result<Self> {
        if !(1..=64u32.saturating_sub(drop)).contains(&carried) {
            return Err(Error::misuse("lower bits as integers of this width"));
        }
        let plan = |sender| {
            let upper = bits.saturating_sub(drop);
            let plan = Self::sent_by(sender, count, [bits, drop, upper], radix)?;
            let conversion =
                Arithmetic::new(count, upper.max(carried), plan.comparison.last_sender())?;
            let sender = sender.unwrap_or(!plan.comparison.last_sender());
            Ok(Self { conversion: conversion.sent_by(sender), ..plan })
        };
        estimate::leaner(plan, |plan: &Self| (plan.demand(), plan.cost()))
    }

    /// Like [`Truncate::new`], to any width: `bits` to keep that of the input, of whose
    /// values `sign` is known. Up to `bits - drop` it makes no difference.
    ///
    /// # Errors
    /// [`Error::Misuse`] unless `drop < bits <= 64`, and for an extension
    /// `out_bits <= 63`.
    pub fn widening(
        count: usize,
        bits: u32,
        drop: u32,
        out_bits: u32,
        sign: Sign,
        radix: Radix,
    ) -> Result<Self> {
        let left = bits.saturating_sub(drop);
        let plan = |sender| {
            let widths = [bits, drop, out_bits.min(left)];
            let mut plan = Self::sent_by(sender, count, widths, radix)?;
            if out_bits > left {
                let extension = Extend::sent_by(sender, count, [left, out_bits], sign, radix)?;
                plan.extension = Some(extension);
            }
            Ok(plan)
        };
        estimate::leaner(plan, |plan: &Self| (plan.demand(), plan.cost()))
    }

    fn reducing(&self) -> Demand {
        self.comparison.demand(self.count) + self.conversion.demand()
    }
}

/// Runs the truncation.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Truncate,
    x: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    x.check(plan.count, plan.bits, "truncation")?;
    let now = ots.split(channel.role(), &plan.reducing())?;
    let (reduced, _, _) = reduce(channel, plan, x, now)?;
    match &plan.extension {
        Some(extension) => extend::run(channel, extension, &reduced, ots),
        None => Ok(reduced),
    }
}

/// Both parts of an unsigned value: its upper bits, and what the lower ones are as integers.
pub(crate) struct Parts {
    /// Shares of the upper bits.
    pub(crate) upper: Share,
    /// This party's half of the carry out of the lower bits, which is their wrap.
    pub(crate) carry: Bits,
    /// The lower bits as integers of as many bits more as the plan's carries have.
    pub(crate) lower: Share,
}

/// Runs a truncation without an extension that keeps what it drops, x being unsigned.
///
/// # Errors
/// As of [`run`].
pub(crate) fn run_split(
    channel: &mut Channel,
    plan: &Truncate,
    x: &Share,
    ots: Correlations,
) -> Result<Parts> {
    x.check(plan.count, plan.bits, "truncation")?;
    let (upper, carry, half) = reduce(channel, plan, x, ots)?;
    let low = x.words().iter().map(|word| word & mask(plan.drop)).collect();
    let lower = Share::new(low, plan.drop + carry.bits());
    let lifted = carry.words().iter().map(|word| word << plan.drop).collect();
    let lower = lower.add_scaled(&Share::new(lifted, lower.bits()), -1);
    Ok(Parts { upper, carry: half, lower })
}

fn reduce(
    channel: &mut Channel,
    plan: &Truncate,
    x: &Share,
    mut ots: Correlations,
) -> Result<(Share, Share, Bits)> {
    let mut found = compare::of_share(channel, &plan.comparison, x, &mut ots)?;
    let carry = b2a::run(channel, &plan.conversion, &found.greater, ots)?;
    let high = x.words().iter().map(|word| (word >> plan.drop) & mask(plan.out_bits)).collect();
    let upper = Share::new(high, plan.out_bits).add_scaled(&carry.narrow(plan.out_bits)?, 1);
    Ok((upper, carry, std::mem::take(&mut found.greater)))
}

impl Protocol for Truncate {
    fn operator(&self) -> &'static str {
        "truncate"
    }

    fn describe(&self) -> String {
        "exact truncation by OT".into()
    }

    fn demand(&self) -> Demand {
        self.reducing() + self.extension.as_ref().map(Extend::demand).unwrap_or_default()
    }

    fn cost(&self) -> Cost {
        let reducing = self.comparison.cost(self.count).then(self.conversion.cost());
        reducing.then(self.extension.as_ref().map_or(Cost::NONE, Extend::cost))
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 0)?, ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{both, computed, split};
    use ring::Random;
    use ring::word::signed;

    #[test]
    fn every_pair_of_small_shares() {
        let mut rng = Random::seeded(16);
        for (bits, drop, out_bits) in [(5, 1, 4), (5, 4, 1), (6, 2, 4), (6, 3, 2), (7, 5, 2)] {
            let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
            let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
            let (client, server) = (Share::new(x, bits), Share::new(y, bits));
            let values = Share::reconstruct(&client, &server);
            let senders = [None, Some(Role::Server)];
            for (radix, sender) in Radix::ALL.into_iter().flat_map(|r| senders.map(|s| (r, s))) {
                let plan = Truncate::sent_by(sender, values.len(), [bits, drop, out_bits], radix);
                let plan = plan.unwrap();
                let price = (plan.demand(), plan.cost());
                let got = computed(&mut rng, price, [&client, &server], |ch, x, ots| {
                    run(ch, &plan, x, ots)
                });
                let want = values.iter().map(|v| signed((v >> drop) as u64, out_bits));
                assert_eq!(got, want.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn every_pair_of_small_shares_at_full_width() {
        let mut rng = Random::seeded(35);
        for (bits, drop, out_bits) in [(5, 1, 5), (5, 4, 5), (6, 2, 6), (6, 3, 9), (6, 3, 2)] {
            for sign in [Sign::Unknown, Sign::Unsigned, Sign::NonNegative] {
                let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
                let fits = |sum| sign != Sign::NonNegative || signed(sum, bits) >= 0;
                let (x, y): (Vec<_>, Vec<_>) = pairs.filter(|(x, y)| fits(x + y)).unzip();
                let (client, server) = (Share::new(x, bits), Share::new(y, bits));
                let count = client.len();
                let plan = Truncate::widening(count, bits, drop, out_bits, sign, Radix::Four);
                let plan = plan.unwrap();
                let price = (plan.demand(), plan.cost());
                let got = computed(&mut rng, price, [&client, &server], |ch, x, ots| {
                    run(ch, &plan, x, ots)
                });
                let value = |v: i64| if sign == Sign::Unsigned { v & mask(bits) as i64 } else { v };
                let values = Share::reconstruct(&client, &server);
                let want = values.iter().map(|v| signed((value(*v) >> drop) as u64, out_bits));
                assert_eq!(got, want.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn lower_bits_become_integers() {
        let mut rng = Random::seeded(36);
        for [bits, drop, carried] in [[5, 1, 3], [5, 4, 1], [6, 3, 9], [6, 2, 62]] {
            let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
            let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
            let (client, server) = (Share::new(x, bits), Share::new(y, bits));
            let plan =
                Truncate::splitting(client.len(), [bits, drop, carried], Radix::Four).unwrap();
            let run = |ch: &mut Channel, x, ots| run_split(ch, &plan, x, ots);
            let (c, s) = both(
                &mut rng,
                &plan.demand(),
                |ch, ots| run(ch, &client, ots),
                |ch, ots| run(ch, &server, ots),
            );
            assert_eq!(c.cost, plan.cost());
            let (c, s) = (c.value.unwrap(), s.value.unwrap());
            assert!(c.lower.bits() >= drop + carried);
            for at in 0..client.len() {
                let sum = client.words()[at] + server.words()[at];
                let value = sum & mask(bits);
                let got = |c: &Share, s: &Share| {
                    c.words()[at].wrapping_add(s.words()[at]) & mask(c.bits())
                };
                assert_eq!(got(&c.upper, &s.upper), value >> drop);
                assert_eq!(got(&c.lower, &s.lower), value & mask(drop));
                let low = (client.words()[at] & mask(drop)) + (server.words()[at] & mask(drop));
                assert_eq!(c.carry.get(at) ^ s.carry.get(at), low >> drop);
            }
        }
        for [bits, drop, carried] in [[5, 5, 1], [5, 0, 1], [6, 2, 0], [6, 2, 63]] {
            assert!(Truncate::splitting(1, [bits, drop, carried], Radix::Four).is_err());
        }
    }

    #[test]
    fn other_widths_are_refused() {
        let widening = |bits, drop, out_bits| {
            Truncate::widening(1, bits, drop, out_bits, Sign::Unknown, Radix::Four)
        };
        for (bits, drop, out_bits) in [(8, 0, 8), (8, 8, 8), (8, 9, 8), (64, 3, 64), (65, 3, 9)] {
            assert!(widening(bits, drop, out_bits).is_err());
        }
    }

    #[test]
    fn floors_exactly_and_costs_what_is_said() {
        let mut rng = Random::seeded(6);
        for (bits, drop, out_bits) in
            [(6, 2, 4), (6, 3, 2), (26, 12, 12), (40, 20, 20), (64, 16, 40)]
        {
            let values: Vec<i64> =
                rng.uniform(500, bits).iter().map(|word| signed(*word, bits)).collect();
            let (client, server) = split(&mut rng, &values, bits);
            for radix in Radix::ALL {
                let plan = Truncate::new(values.len(), bits, drop, out_bits, radix).unwrap();
                let price = (plan.demand(), plan.cost());
                let got = computed(&mut rng, price, [&client, &server], |ch, x, ots| {
                    run(ch, &plan, x, ots)
                });
                let want = values.iter().map(|v| signed((v >> drop) as u64, out_bits));
                assert_eq!(got, want.collect::<Vec<_>>());
            }
        }
    }
}
