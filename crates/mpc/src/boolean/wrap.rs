//! Whether two shares wrap around their ring.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^bits, with what is known of its sign; correlations |
//! | Out | each party's summand as an integer, and its half of the wrap bit `w` |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | one comparison of bits; for `x >= 0` and with a bit to spare nothing |
//! | Paper | Rathee et al., SiRNN (S&P 2021), wrap, section III |
//!
//! With both summands read as unsigned, `x = c + s - 2^bits * w` for the wrap bit
//! `w = [c + s >= 2^bits]`. A signed x is first moved to `x + 2^(bits-1)` by the
//! server. The wrap is a carry, shared by exclusive or; for `0 <= x < 2^(bits-1)`
//! it is `msb_c OR msb_s`, of which each party has its half already. A signed x with a bit to spare
//! becomes one of those when the server moves it to `x + 2^(bits-2)`.

use ring::Bits;
use ring::word::mask;
use wire::{Channel, Cost, Result, Role};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::boolean::compare::{self, Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::share::{Share, server_only};

/// What is known of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Nothing: `-2^(bits-1) <= x < 2^(bits-1)`.
    Unknown,
    /// There is none: `0 <= x < 2^bits`.
    Unsigned,
    /// `0 <= x < 2^(bits-1)`.
    NonNegative,
    /// There is a bit to spare: `-2^(bits-2) <= x < 2^(bits-2)`, of 2 bits or more.
    Spare,
}

/// The public plan.
#[derive(Clone, Debug)]
pub(crate) struct Wrap {
    bits: u32,
    sign: Sign,
    /// The comparison that finds the wrap; none where values are known not to be negative.
    comparison: Option<Comparison>,
}

/// One party's end.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Wrapped {
    /// Summands in `0..2^bits`, before the offset is taken off again.
    pub(crate) words: Vec<u64>,
    /// Halves of the wrap bits: to be xored, or for known signs ored.
    pub(crate) half: Bits,
}

impl Wrap {
    /// Plans the wrap of shares of values of `bits`, 1 to 63.
    pub(crate) fn new(bits: u32, sign: Sign, radix: Radix) -> Self {
        let known = matches!(sign, Sign::NonNegative | Sign::Spare);
        let comparison = (!known).then(|| Comparison::carry(bits, radix));
        Self { bits, sign, comparison }
    }

    /// Plans the wrap of unsigned values whose halves of it a run is told.
    pub(crate) fn told(bits: u32) -> Self {
        Self { bits, sign: Sign::Unsigned, comparison: None }
    }

    /// As [`Comparison::gates_from`].
    pub(crate) fn gates_from(mut self, sender: Option<Role>) -> Self {
        self.comparison = self.comparison.map(|comparison| comparison.gates_from(sender));
        self
    }

    /// Correlations consumed for `count` values.
    pub(crate) fn demand(&self, count: usize) -> Demand {
        self.comparison.as_ref().map(|c| c.demand(count)).unwrap_or_default()
    }

    /// What [`run`] costs for `count` values.
    pub(crate) fn cost(&self, count: usize) -> Cost {
        self.comparison.as_ref().map_or(Cost::NONE, |c| c.cost(count))
    }

    /// Who spoke last, if anybody did.
    pub(crate) fn last_sender(&self) -> Option<Role> {
        self.comparison.as_ref().map(Comparison::last_sender)
    }

    /// What moves the values above zero.
    pub(crate) fn offset(&self) -> u64 {
        match self.sign {
            Sign::Unknown => 1 << (self.bits - 1),
            Sign::Spare => 1 << self.bits.saturating_sub(2),
            Sign::Unsigned | Sign::NonNegative => 0,
        }
    }

    /// The wrap bit from this party's half, should the other's be 0 or 1.
    pub(crate) fn given(&self, half: &Bits) -> [Bits; 2] {
        let other = match self.sign {
            Sign::NonNegative | Sign::Spare => Bits::zeros(half.len()).not(),
            Sign::Unknown | Sign::Unsigned => half.not(),
        };
        [half.clone(), other]
    }
}

/// Runs the comparison, if one is needed, with correlations off the front of `ots`.
///
/// # Errors
/// [`wire::Error::Misuse`] when the correlations do not fit, [`wire::Error::Peer`],
/// [`wire::Error::Transport`].
pub(crate) fn run(
    channel: &mut Channel,
    plan: &Wrap,
    x: &Share,
    ots: &mut Correlations,
) -> Result<Wrapped> {
    let role = channel.role();
    let offset = server_only(role, plan.offset());
    let moved = x.words().iter().map(|word| word.wrapping_add(offset) & mask(plan.bits));
    let mut wrapped = Wrapped { words: moved.collect(), half: Bits::default() };
    wrapped.half = match &plan.comparison {
        None => Bits::of_words(&wrapped.words, plan.bits - 1),
        Some(comparison) => {
            let operands = comparison.operand(role, &wrapped.words);
            let now = ots.split(role, &comparison.demand(x.len()))?;
            let mut found = compare::run(channel, comparison, &operands, now)?;
            std::mem::take(&mut found.greater)
        }
    };
    Ok(wrapped)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::both;
    use ring::Random;
    use ring::word::signed;

    #[test]
    fn summands_and_wraps_add_up_to_every_small_value() {
        let (mut rng, bits) = (Random::seeded(34), 5);
        for sign in [Sign::Unknown, Sign::Unsigned, Sign::NonNegative, Sign::Spare] {
            let value = |sum: u64| match sign {
                Sign::Unknown | Sign::Spare => signed(sum, bits),
                _ => (sum & mask(bits)) as i64,
            };
            let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
            let quarter = 1i64 << (bits - 2);
            let fits = |sum: u64| match sign {
                Sign::NonNegative => value(sum) < 2 * quarter,
                Sign::Spare => (-quarter..quarter).contains(&value(sum)),
                _ => true,
            };
            let (x, y): (Vec<_>, Vec<_>) = pairs.filter(|(x, y)| fits(x + y)).unzip();
            let (client, server) = (Share::new(x, bits), Share::new(y, bits));
            let plan = Wrap::new(bits, sign, Radix::Four);
            let (c, s) = both(
                &mut rng,
                &plan.demand(client.len()),
                |ch, mut ots| run(ch, &plan, &client, &mut ots),
                |ch, mut ots| run(ch, &plan, &server, &mut ots),
            );
            assert_eq!(c.cost, plan.cost(client.len()));
            let (c, s) = (c.value.unwrap(), s.value.unwrap());
            for at in 0..client.len() {
                let wrap = plan.given(&c.half)[s.half.get(at) as usize].get(at) as i64;
                let sum = (c.words[at] + s.words[at]) as i64 - (wrap << bits);
                let want = value(client.words()[at] + server.words()[at]);
                assert_eq!(sum - plan.offset() as i64, want, "{sign:?}");
            }
        }
    }
}
