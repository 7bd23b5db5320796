//! Extension of shares to a wider ring.
//!
//! | | |
//! |---|---|
//! | In | shares of a signed or unsigned `x` mod 2^bits, or of `0 <= x < 2^(bits-1)`; correlations |
//! | Out | shares of the same `x` mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | sign unknown: one comparison of bits, then out_bits - bits bits; sign known: out_bits - bits + 1 bits, in two rounds |
//! | Paper | Rathee et al., SiRNN (S&P 2021), extension, section III-A; sign known: ENGINE section 4 |
//!
//! With the summands read as unsigned, `x = c + s - 2^bits * w` up to a public offset:
//! `w` (see `wrap.rs`) is needed mod 2^(out_bits - bits). A wrap bit shared by exclusive
//! or is converted (`b2a.rs`), of a known sign one choice by a half of it tells
//! shares. Gates and conversion take their OTs from the server alone where the other
//! direction would hardly be used otherwise.

use ot::{Entry, Job, Table};
use wire::{Channel, Cost, Error, Result, Role};

use crate::arithmetic::b2a::{self, Arithmetic};
use crate::arithmetic::mux::{self, Side, Switch};
use crate::boolean::compare::Radix;
pub use crate::boolean::wrap::Sign;
use crate::boolean::wrap::{self, Wrap, Wrapped};
use crate::correlations::{Correlations, Demand};
use crate::estimate;
use crate::protocol::{Protocol, input};
use crate::share::{Share, server_only};

/// The public plan of an extension.
#[derive(Clone, Debug)]
pub struct Extend {
    count: usize,
    bits: u32,
    out_bits: u32,
    wrap: Wrap,
    last: Last,
    /// Who begins where the sign is known.
    first: Role,
}

/// How the halves of the wrap bit become integers.
#[derive(Clone, Debug)]
enum Last {
    /// Halves by exclusive or.
    Convert(Arithmetic),
    /// Halves by or.
    Choose(Switch),
}

impl Extend {
    /// Plans `count` values from `bits` (1 to 62) to `out_bits > bits` (up to 63).
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths.
    pub fn new(count: usize, bits: u32, out_bits: u32, sign: Sign, radix: Radix) -> Result<Self> {
        let plan = |sender| Self::sent_by(sender, count, [bits, out_bits], sign, radix);
        estimate::leaner(plan, |plan| (plan.demand(), plan.cost()))
    }

    /// Plans the extension with gates and conversion from what `sender` alone sends.
    pub(crate) fn sent_by(
        sender: Option<Role>,
        count: usize,
        [bits, out_bits]: [u32; 2],
        sign: Sign,
        radix: Radix,
    ) -> Result<Self> {
        if bits == 0 || bits >= out_bits || out_bits > 63 {
            return Err(Error::misuse("an extension with these widths"));
        }
        let wrap = Wrap::new(bits, sign, radix).gates_from(sender);
        let last = Last::new(count, out_bits - bits, &wrap, sender)?;
        let first = asks(&wrap);
        Ok(Self { count, bits, out_bits, wrap, last, first })
    }

    /// Lets `first` begin where the sign is known, which it may whoever chooses; the client does
    /// by default. Where it is not known nothing changes.
    #[must_use]
    pub fn begun_by(self, first: Role) -> Self {
        match self.last {
            Last::Choose(_) => Self { first, ..self },
            Last::Convert(_) => self,
        }
    }

    /// The choice of the party that asks, or the table of the other.
    fn side(&self, role: Role, wrapped: &Wrapped) -> Side {
        if role == asks(&self.wrap) {
            return Side { choices: vec![vec![wrapped.half.clone()]], tables: Vec::new() };
        }
        let wraps = self.wrap.given(&wrapped.half);
        let table = Table::words(wraps.iter().map(ring::Bits::to_words).collect());
        Side { choices: Vec::new(), tables: vec![table] }
    }
}

/// Who begins after the wrap: the party that spoke last, which saves a round.
fn asks(wrap: &Wrap) -> Role {
    wrap.last_sender().unwrap_or(Role::Client)
}

impl Last {
    fn new(count: usize, bits: u32, wrap: &Wrap, sender: Option<Role>) -> Result<Self> {
        let asks = asks(wrap);
        if wrap.last_sender().is_some() {
            let plan = Arithmetic::new(count, bits, asks)?;
            return Ok(Self::Convert(plan.sent_by(sender.unwrap_or(!asks))));
        }
        let job = Job { count, choice_bits: 1, entry: Entry::Word(bits) };
        Ok(Self::Choose(Switch::to(asks, vec![job])))
    }
}

/// Runs the extension.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Extend,
    x: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    x.check(plan.count, plan.bits, "extension")?;
    let role = channel.role();
    let wrapped = wrap::run(channel, &plan.wrap, x, &mut ots)?;
    let wraps = match &plan.last {
        Last::Convert(last) => b2a::run(channel, last, &wrapped.half, ots)?,
        Last::Choose(switch) => {
            let side = plan.side(role, &wrapped);
            let switched = mux::run(channel, switch, plan.first, side, ots)?;
            switched.sum(plan.count, plan.out_bits - plan.bits)
        }
    };
    let offset = server_only(role, plan.wrap.offset());
    let wide = wrapped
        .words
        .iter()
        .zip(wraps.words())
        .map(|(word, wrap)| word.wrapping_sub(wrap << plan.bits).wrapping_sub(offset));
    Ok(Share::new(wide.collect(), plan.out_bits))
}

impl Protocol for Extend {
    fn operator(&self) -> &'static str {
        "extend"
    }

    fn describe(&self) -> String {
        "wrap bit by OT".into()
    }

    fn demand(&self) -> Demand {
        let last = match &self.last {
            Last::Convert(plan) => plan.demand(),
            Last::Choose(switch) => switch.demand(),
        };
        self.wrap.demand(self.count) + last
    }

    fn cost(&self) -> Cost {
        let last = match &self.last {
            Last::Convert(plan) => plan.cost(),
            Last::Choose(switch) => switch.cost(self.first),
        };
        self.wrap.cost(self.count).then(last)
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 0)?, ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{shares_of, split};
    use ring::Random;
    use ring::word::{mask, signed};

    fn check(plan: &Extend, client: &Share, server: &Share, rng: &mut Random) {
        let price = (plan.demand(), plan.cost());
        let [c, s] = shares_of(rng, price, [client, server], |ch, x, ots| run(ch, plan, x, ots));
        assert_eq!((c.bits(), s.bits()), (plan.out_bits, plan.out_bits));
        let value = |sum: &i64| match plan.wrap.offset() {
            0 => *sum & mask(plan.bits) as i64,
            _ => *sum,
        };
        let values = Share::reconstruct(client, server);
        let got = Share::reconstruct(&c, &s).into_iter();
        let got = got.map(|got| got & mask(plan.out_bits) as i64);
        let want = values.iter().map(|sum| value(sum) & mask(plan.out_bits) as i64);
        assert!(got.eq(want));
    }

    #[test]
    fn every_pair_of_small_shares() {
        let mut rng = Random::seeded(11);
        for bits in 1..=6u32 {
            for (sign, radix) in [
                (Sign::Unknown, Radix::Two),
                (Sign::Unknown, Radix::Four),
                (Sign::Unknown, Radix::Sixteen),
                (Sign::Unsigned, Radix::Four),
                (Sign::NonNegative, Radix::Four),
            ] {
                let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
                let pairs =
                    pairs.filter(|(x, y)| sign != Sign::NonNegative || signed(x + y, bits) >= 0);
                let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
                let (client, server) = (Share::new(x, bits), Share::new(y, bits));
                for out_bits in [bits + 1, bits + 2, 14] {
                    for sender in [None, Some(Role::Server)] {
                        let (count, widths) = (client.len(), [bits, out_bits]);
                        let plan = Extend::sent_by(sender, count, widths, sign, radix).unwrap();
                        check(&plan, &client, &server, &mut rng);
                    }
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
            let unsigned = Extend::new(values.len(), bits, out_bits, Sign::Unsigned, Radix::Two);
            check(&unsigned.unwrap(), &client, &server, &mut rng);
        }
    }

    #[test]
    fn other_widths_are_refused() {
        for (bits, out_bits) in [(0, 4), (8, 8), (9, 8), (40, 64)] {
            assert!(Extend::new(1, bits, out_bits, Sign::Unknown, Radix::Four).is_err());
        }
    }
}
