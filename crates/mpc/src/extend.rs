//! Extension of shares to a wider ring.
//!
//! | | |
//! |---|---|
//! | In | shares of a signed `x` mod 2^bits, or of `0 <= x < 2^(bits-1)`; correlations |
//! | Out | shares of the same `x` mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | sign unknown: one comparison of bits, then out_bits - bits + 1 bits or twice that; sign known: only the latter, in two rounds |
//! | Paper | Rathee et al., SiRNN (S&P 2021), extension, section III-A; sign known: ENGINE section 4 |
//!
//! With the shares read as unsigned, `x = c + s - 2^bits * w` for the wrap bit
//! `w = [c + s >= 2^bits]`. A signed x is first moved to `x + 2^(bits-1)` by the
//! server, and back at the end. For a non-negative x the wrap is `msb_c OR msb_s`,
//! one choice by the client's bit; for a signed one it is a carry.

use ot::{Entry, Job, Table};
use ring::Bits;
use ring::word::mask;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::compare::{self, Comparison, Radix};
use crate::pads::{Need, Pads};
use crate::relu::sum_of;
use crate::share::{Share, server_only};
use crate::switch::{self, Side, Switch};

/// What is known of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Nothing: `-2^(bits-1) <= x < 2^(bits-1)`.
    Unknown,
    /// `0 <= x < 2^(bits-1)`.
    NonNegative,
}

/// The public plan of an extension.
#[derive(Clone, Debug)]
pub struct Extend {
    count: usize,
    bits: u32,
    out_bits: u32,
    /// Of signed values.
    comparison: Option<Comparison>,
}

impl Extend {
    /// `count` values from `bits` (1 to 62) to `out_bits > bits` (up to 63).
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths.
    pub fn new(count: usize, bits: u32, out_bits: u32, sign: Sign, radix: Radix) -> Result<Self> {
        if bits == 0 || bits >= out_bits || out_bits > 63 {
            return Err(Error::misuse("an extension with these widths"));
        }
        let comparison = (sign == Sign::Unknown).then(|| Comparison::carry(bits, radix));
        Ok(Self { count, bits, out_bits, comparison })
    }

    /// Who asks for the wrap: the party that spoke last, which saves a round.
    fn asks(&self) -> Role {
        self.comparison.as_ref().map_or(Role::Client, Comparison::last_sender)
    }

    fn wrap_bits(&self) -> u32 {
        self.out_bits - self.bits
    }

    fn switch(&self) -> Switch {
        let entry = Entry::Word(self.wrap_bits());
        let job = Job { count: self.count, choice_bits: 1, entry };
        match self.asks() {
            Role::Client => Switch { to_client: vec![job], to_server: Vec::new() },
            Role::Server => Switch { to_client: Vec::new(), to_server: vec![job] },
        }
    }

    fn comparing(&self) -> Need {
        self.comparison.as_ref().map(|c| c.need(self.count)).unwrap_or_default()
    }

    /// Correlations consumed.
    pub fn need(&self) -> Need {
        self.comparing() + self.switch().need()
    }

    /// What [`run`] costs.
    pub fn cost(&self) -> Cost {
        let comparing = self.comparison.as_ref().map_or(Cost::NONE, |c| c.cost(self.count));
        comparing.then(self.switch().cost(self.asks()))
    }

    /// 2^(bits-1) for the server of signed values: what moves them above zero.
    fn offset(&self, role: Role) -> u64 {
        let half = self.comparison.as_ref().map_or(0, |_| 1u64 << (self.bits - 1));
        server_only(role, half)
    }

    /// The choice of the party that asks, or the table of the other, two entries a
    /// value, from what `wrap` says on its side.
    fn side(&self, role: Role, wrap: Bits) -> Side {
        if role == self.asks() {
            return Side { choices: vec![vec![wrap]], tables: Vec::new() };
        }
        let other = match self.comparison {
            Some(_) => wrap.not().to_words(),
            None => vec![1; self.count],
        };
        let table = Table::words(vec![wrap.to_words(), other]);
        Side { choices: Vec::new(), tables: vec![table] }
    }
}

/// Runs the extension.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Extend, x: &Share, mut pads: Pads) -> Result<Share> {
    if (x.len(), x.bits()) != (plan.count, plan.bits) {
        return Err(Error::misuse("a share that does not fit its extension"));
    }
    let role = channel.role();
    let offset = plan.offset(role);
    let moved = x.words().iter().map(|word| word.wrapping_add(offset) & mask(plan.bits));
    let moved = Zeroizing::new(moved.collect::<Vec<u64>>());
    let wrap = match &plan.comparison {
        None => Bits::of_words(&moved, plan.bits - 1),
        Some(comparison) => {
            let operands = compare::operand(role, &moved, plan.bits);
            let now = pads.split(role, &plan.comparing())?;
            let mut found = compare::run(channel, comparison, &operands, now)?;
            std::mem::take(&mut found.greater)
        }
    };
    let side = plan.side(role, wrap);
    let switched = switch::run(channel, &plan.switch(), plan.asks(), side, pads)?;
    let wraps = sum_of(plan.count, plan.wrap_bits(), &switched);
    let wide = moved
        .iter()
        .zip(wraps.words())
        .map(|(word, wrap)| word.wrapping_sub(wrap << plan.bits).wrapping_sub(offset));
    Ok(Share::new(wide.collect(), plan.out_bits))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{both, split};
    use ring::Random;
    use ring::word::signed;

    fn check(plan: &Extend, client: &Share, server: &Share, rng: &mut Random) {
        let (c, s) = both(
            rng,
            &plan.need(),
            |ch, pads| run(ch, plan, client, pads),
            |ch, pads| run(ch, plan, server, pads),
        );
        assert_eq!(c.cost, plan.cost());
        let (c, s) = (c.value.unwrap(), s.value.unwrap());
        assert_eq!((c.bits(), s.bits()), (plan.out_bits, plan.out_bits));
        assert_eq!(Share::reconstruct(&c, &s), Share::reconstruct(client, server));
    }

    #[test]
    fn every_pair_of_small_shares() {
        let mut rng = Random::seeded(11);
        for bits in 1..=6u32 {
            for (sign, radix) in [
                (Sign::Unknown, Radix::Two),
                (Sign::Unknown, Radix::Four),
                (Sign::Unknown, Radix::Sixteen),
                (Sign::NonNegative, Radix::Four),
            ] {
                let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
                let pairs =
                    pairs.filter(|(x, y)| sign == Sign::Unknown || signed(x + y, bits) >= 0);
                let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
                let (client, server) = (Share::new(x, bits), Share::new(y, bits));
                for out_bits in [bits + 1, bits + 2, 14] {
                    let plan = Extend::new(client.len(), bits, out_bits, sign, radix).unwrap();
                    check(&plan, &client, &server, &mut rng);
                }
            }
        }
    }

    #[test]
    fn wide_values_at_the_bounds() {
        let mut rng = Random::seeded(12);
        for (bits, out_bits) in [(8, 16), (12, 20), (31, 33), (40, 63), (62, 63)] {
            let edge = 1i64 << (bits - 1);
            let mut values = vec![0, 1, edge - 1, edge / 2];
            values.extend(rng.uniform(100, bits - 1).iter().map(|v| *v as i64));
            let (client, server) = split(&mut rng, &values, bits);
            let known =
                |sign| Extend::new(values.len(), bits, out_bits, sign, Radix::Four).unwrap();
            check(&known(Sign::NonNegative), &client, &server, &mut rng);
            values.iter_mut().skip(1).for_each(|v| *v = -*v);
            values[2] = -edge;
            let (client, server) = split(&mut rng, &values, bits);
            let open = Extend::new(values.len(), bits, out_bits, Sign::Unknown, Radix::Four);
            check(&open.unwrap(), &client, &server, &mut rng);
        }
    }

    #[test]
    fn other_widths_are_refused() {
        for (bits, out_bits) in [(0, 4), (8, 8), (9, 8), (40, 64)] {
            assert!(Extend::new(1, bits, out_bits, Sign::Unknown, Radix::Four).is_err());
        }
    }
}
