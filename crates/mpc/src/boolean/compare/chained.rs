//! What chains of digits tell beside a comparison: all carries of a shared sum, and its sign or its
//! carry as a number.
//!
//! | | |
//! |---|---|
//! | In | shares of x mod 2^bits, or more for carries; random OTs |
//! | Out | xor shares of the carries out of bits 0 to bits - 1 of both parties' summands; or shares of `[x >= 0]`, or of the carry out of bit bits - 1, mod 2^out_bits |
//! | Reveals | masked digits and masked rows |
//! | Security | that of a [`super::chain`]: perfect given the OTs |
//! | Cost | bits up, for carries bits*(bits + 1) bits down; 2 rounds |
//! | Paper | as [`super::chain`] |
//!
//! A label of a chain shows its colour, which is the state under a mask of the sender's, so both
//! have shares of it. With digits of one bit the states are all carries, and no carry waits for the
//! one before. The colour of an outcome may be its sum with the mask in place of its exclusive or: then the
//! shares are summands.

use ring::Bits;
use ring::word::mask;
use wire::{Channel, Cost, Result, Role};
use zeroize::Zeroizing;

use super::chain::{self, Chain, Goal, States};
use crate::correlations::{Correlations, Demand};
use crate::share::Share;

/// The public plan.
#[derive(Clone, Debug)]
pub(crate) struct Chained {
    bits: u32,
    chain: Chain,
    /// Bits of the outcome.
    out_bits: u32,
    asks: Role,
}

impl Chained {
    /// Plans the carries out of the `bits` (1 to 14) lowest bits; the client asks.
    pub(crate) fn carries(bits: u32) -> Self {
        let chain = Chain::of_widths(bits, Goal::Carry, vec![1; bits as usize]);
        Self { bits, chain, out_bits: 1, asks: Role::Client }
    }

    /// Plans whether values of `bits` are not negative, as numbers mod `2^out_bits`; the client asks.
    /// There is none where the rows of tables do not fit into pads.
    pub(crate) fn signs(bits: u32, out_bits: u32) -> Option<Self> {
        let goal = Goal::NonNegative { top: bits.checked_sub(1)?, bits: out_bits };
        let chain = Chain::new(bits, goal)?;
        Some(Self { bits, chain, out_bits, asks: Role::Client })
    }

    /// Plans the carries out of the `bits` lowest bits as numbers mod `2^out_bits`; the client asks. There
    /// is none where the rows of tables do not fit into pads.
    pub(crate) fn numbers(bits: u32, out_bits: u32) -> Option<Self> {
        let chain = Chain::new(bits, Goal::Number { bits: out_bits })?;
        Some(Self { bits, chain, out_bits, asks: Role::Client })
    }

    /// Lets `role` ask, and so speak first; the other party speaks last.
    pub(crate) fn asked_by(self, role: Role) -> Self {
        Self { asks: role, ..self }
    }

    /// Returns the OTs for `count` sums.
    pub(crate) fn demand(&self, count: usize) -> Demand {
        Demand::from(!self.asks, self.chain.jobs(count))
    }

    /// Returns what [`carries`] or [`signs`] costs for `count` sums.
    pub(crate) fn cost(&self, count: usize) -> Cost {
        let asked = ot::one_of_n::choices_cost(self.asks, &self.chain.jobs(count));
        asked.then(self.chain.answer_cost(!self.asks, count))
    }

    fn run(&self, channel: &mut Channel, words: &[u64], ots: &mut Correlations) -> Result<States> {
        let all = mask(self.bits);
        let asks = channel.role() == self.asks;
        let flip = if asks { 0 } else { all };
        let operands = words.iter().map(|word| (word & all) ^ flip).collect();
        let operands: Zeroizing<Vec<u64>> = Zeroizing::new(operands);
        match asks {
            true => chain::asked(channel, &self.chain, &operands, ots),
            false => chain::told(channel, &self.chain, &operands, ots),
        }
    }
}

/// Finds the carries, the lowest first, with OTs off the front of `ots`.
///
/// # Errors
/// [`wire::Error::Misuse`] when the OTs do not fit, [`wire::Error::Peer`],
/// [`wire::Error::Transport`].
pub(crate) fn carries(
    channel: &mut Channel,
    plan: &Chained,
    words: &[u64],
    ots: &mut Correlations,
) -> Result<Vec<Bits>> {
    let mut states = plan.run(channel, words, ots)?;
    Ok(states.iter_mut().flat_map(std::mem::take).collect())
}

/// Finds which values are not negative, with OTs off the front of `ots`.
///
/// # Errors
/// As [`carries`].
pub(crate) fn signs(
    channel: &mut Channel,
    plan: &Chained,
    x: &Share,
    ots: &mut Correlations,
) -> Result<Share> {
    x.check(x.len(), plan.bits, "signs")?;
    numbers(channel, plan, x.words(), ots)
}

/// Finds the outcomes that are numbers for this party's `words`, of which the lowest bits count, with OTs
/// off the front of `ots`.
///
/// # Errors
/// As [`carries`].
pub(crate) fn numbers(
    channel: &mut Channel,
    plan: &Chained,
    words: &[u64],
    ots: &mut Correlations,
) -> Result<Share> {
    let outcome = Zeroizing::new(chain::outcome(plan.run(channel, words, ots)?)?);
    let mut words = vec![0u64; words.len()];
    for (bit, plane) in outcome.iter().enumerate() {
        words.iter_mut().zip(plane.iter()).for_each(|(word, told)| *word |= told << bit);
    }
    if channel.role() != plan.asks {
        // The mask, which the other party's summand has in it.
        words.iter_mut().for_each(|word| *word = word.wrapping_neg());
    }
    Ok(Share::new(words, plan.out_bits))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{both, shares_of};
    use ring::Random;

    #[test]
    fn every_carry_of_every_sum() {
        let mut rng = Random::seeded(97);
        for (bits, asks) in (1..=6).flat_map(|bits| [(bits, Role::Client), (bits, Role::Server)]) {
            let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
            let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
            let plan = Chained::carries(bits).asked_by(asks);
            let (c, s) = both(
                &mut rng,
                &plan.demand(x.len()),
                |ch, mut ots| carries(ch, &plan, &x, &mut ots),
                |ch, mut ots| carries(ch, &plan, &y, &mut ots),
            );
            assert_eq!(c.cost, plan.cost(x.len()));
            assert_eq!((c.cost.rounds, c.cost.last), (2, Some(!asks)));
            let (c, s) = (c.value.unwrap(), s.value.unwrap());
            assert_eq!((c.len(), s.len()), (bits as usize, bits as usize));
            for at in 0..x.len() {
                for bit in 0..bits {
                    let low = mask(bit + 1);
                    let carry = ((x[at] & low) + (y[at] & low)) >> (bit + 1);
                    assert_eq!(c[bit as usize].get(at) ^ s[bit as usize].get(at), carry);
                }
            }
        }
    }

    #[test]
    fn answers_take_the_bits_of_the_table() {
        for bits in 1..=11u64 {
            let cost = Chained::carries(bits as u32).cost(8);
            assert_eq!(cost.client_to_server, 5 + bits);
            assert_eq!(cost.server_to_client, 5 + bits * (bits + 1));
        }
    }

    #[test]
    fn every_sign_as_a_number() {
        let mut rng = Random::seeded(98);
        for (bits, out_bits) in [(1, 3), (2, 1), (5, 4), (6, 2)] {
            for asks in [Role::Client, Role::Server] {
                let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
                let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
                let (client, server) = (Share::new(x, bits), Share::new(y, bits));
                let plan = Chained::signs(bits, out_bits).unwrap().asked_by(asks);
                let price = (plan.demand(client.len()), plan.cost(client.len()));
                let [c, s] = shares_of(&mut rng, price, [&client, &server], |ch, x, mut ots| {
                    signs(ch, &plan, x, &mut ots)
                });
                for (at, x) in Share::reconstruct(&client, &server).into_iter().enumerate() {
                    let got = (c.words()[at] + s.words()[at]) & mask(out_bits);
                    assert_eq!(got, u64::from(x >= 0), "{bits} {out_bits}");
                }
            }
        }
        assert!(Chained::signs(0, 1).is_none());
    }

    #[test]
    fn every_carry_as_a_number() {
        let mut rng = Random::seeded(99);
        for (bits, out_bits) in [(1, 3), (2, 1), (5, 20), (6, 33)] {
            for asks in [Role::Client, Role::Server] {
                let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
                // The upper bits of words do not count.
                let (x, y): (Vec<_>, Vec<_>) = pairs.map(|(x, y)| (x | 1 << 40, y)).unzip();
                let plan = Chained::numbers(bits, out_bits).unwrap().asked_by(asks);
                let price = (plan.demand(x.len()), plan.cost(x.len()));
                assert_eq!((price.1.rounds, price.1.last), (2, Some(!asks)));
                let [c, s] = shares_of(&mut rng, price, [&x, &y], |ch, words, mut ots| {
                    numbers(ch, &plan, words, &mut ots)
                });
                for at in 0..x.len() {
                    let got = (c.words()[at] + s.words()[at]) & mask(out_bits);
                    let carry = ((x[at] & mask(bits)) + (y[at] & mask(bits))) >> bits;
                    assert_eq!(got, carry, "{bits} {out_bits}");
                }
            }
        }
        assert!(Chained::numbers(9, 64).is_none());
    }
}
