//! ReLU that saturates and extends on the way.
//!
//! | | |
//! |---|---|
//! | In | shares of `y` mod 2^bits with `-2^(bits-1) + 2^a <= y < 2^(bits-1)`; correlations |
//! | Out | shares of `min(max(y, 0), 2^a - 1)` mod 2^out_bits, any out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | one comparison of bits - 1, then out_bits + 2*a + 6 bits; 4 + levels rounds |
//! | Paper | CrypTFlow2 (sign by carry), SiRNN (extension); fused as in ENGINE section 4 |
//!
//! Without saturation the lower bound on y falls away, and `out_bits + bits + 3` bits remain;
//! without extension (out_bits <= bits) it is `3*out_bits + 3`, and a round less.
//!
//! Each party picks by its share of the sign bit from the other's share of y. The
//! result has few bits, and what chooses it knows only so many; one more choice by its top
//! bit extends it (`clamp.rs`). The comparison is asked by that party after whom the
//! client speaks last: it goes on with the next layer.
//!
//! After a layer on a mask the client knows its share before the server does. [`Relu::on_mask`] has
//! the client ask at once, with chained digits, and extends the shares of y before they are
//! chosen (`lift.rs`): the client's messages go with the masked inputs of the layers before and after,
//! and the server's are one between them.

use ring::Bits;
use ring::word::mask;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::boolean::compare::{self, Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::nonlinear::clamp::Inside;
use crate::nonlinear::lift::Lift;
use crate::protocol::{Protocol, input};
use crate::share::{Share, sign_of};

/// The public plan of one ReLU layer.
#[derive(Clone, Debug)]
pub struct Relu {
    count: usize,
    bits: u32,
    saturate: Option<u32>,
    comparison: Comparison,
    /// What extends y before the comparison is answered, where the result is not extended.
    lift: Option<Lift>,
    inside: Inside,
}

impl Relu {
    /// Plans `count` elements from `bits` (3 to 63) to `out_bits` (1 to 63), clipped to `2^saturate
    /// - 1`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for widths out of range or `saturate > bits - 2`.
    pub fn new(
        count: usize,
        bits: u32,
        saturate: Option<u32>,
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let fits = saturate.is_none_or(|a| a >= 1 && a + 2 <= bits && a <= out_bits);
        if !(3..=63).contains(&bits) || !(1..=63).contains(&out_bits) || !fits {
            return Err(Error::misuse("a ReLU with these widths"));
        }
        let comparison = match saturate {
            Some(low) => Comparison::with_middle(low, bits - 1, radix),
            None => Comparison::carry(bits - 1, radix),
        };
        let comparison = comparison.ending_with(Role::Client);
        let (cap, asks) = (saturate.map(mask), comparison.asks());
        let inside = Inside { count, bits, cap, out_bits, asks };
        Ok(Self { count, bits, saturate, comparison, lift: None, inside })
    }

    /// Like [`Relu::new`], in three runs of messages: the client begins with what depends on its
    /// share alone, and ends. It takes about `2*out_bits` bits a value more.
    ///
    /// # Errors
    /// As [`Relu::new`].
    pub fn on_mask(count: usize, bits: u32, saturate: Option<u32>, out_bits: u32) -> Result<Self> {
        let asks = Role::Client;
        let plan = Self::new(count, bits, saturate, out_bits, Radix::Chain)?;
        let more = out_bits.checked_sub(bits).filter(|more| *more > 0);
        let lift = more.map(|more| Lift { count, bits, more, asks });
        let inside = Inside { bits: bits.max(out_bits), asks, ..plan.inside };
        let comparison = plan.comparison.asked_by(asks);
        Ok(Self { comparison, lift, inside, ..plan })
    }

    /// Who begins with the choice between values.
    fn first(&self) -> Role {
        let lifts = self.lift.as_ref().map(|lift| !lift.asks);
        lifts.unwrap_or(self.comparison.last_sender())
    }

    /// Shares of `[y >= 0]` and of `[0 <= y < 2^saturate]`.
    fn indicators(
        &self,
        role: Role,
        y: &[u64],
        found: &mut compare::Compared,
    ) -> Zeroizing<[Bits; 2]> {
        let mut positive = sign_of(role, y, self.bits);
        positive.xor(&found.greater);
        Zeroizing::new(match self.saturate {
            Some(_) => [positive, std::mem::take(&mut found.middle_zero)],
            None => [positive.clone(), positive],
        })
    }
}

/// `[b * value, (1 - b) * value]`: what the peer's share of a bit picks from.
pub(crate) fn gated(values: &[u64], bits: &Bits) -> Vec<Vec<u64>> {
    let taken = values.iter().zip(bits.masks()).map(|(value, mask)| value & mask);
    let left = values.iter().zip(bits.masks()).map(|(value, mask)| value & !mask);
    vec![taken.collect(), left.collect()]
}

/// Runs the layer.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Relu, y: &Share, mut ots: Correlations) -> Result<Share> {
    y.check(plan.count, plan.bits, "ReLU")?;
    let role = channel.role();
    let begun = match &plan.lift {
        Some(lift) => {
            let now = ots.split(role, &lift.demand())?;
            Some((lift, lift.begin(channel, y.words(), now)?))
        }
        None => None,
    };
    let mut found = compare::of_share(channel, &plan.comparison, y, &mut ots)?;
    let indicators = plan.indicators(role, y.words(), &mut found);
    let [positive, inside] = &*indicators;
    let lifted = begun.map(|(lift, begun)| lift.finish(channel, y.words(), begun)).transpose()?;
    let words = lifted.as_ref().unwrap_or(y).words();
    plan.inside.run(channel, plan.first(), words, [positive, inside], ots)
}

impl Protocol for Relu {
    fn operator(&self) -> &'static str {
        "relu"
    }

    fn describe(&self) -> String {
        "comparison by OT".into()
    }

    fn demand(&self) -> Demand {
        let lift = self.lift.as_ref().map(Lift::demand).unwrap_or_default();
        lift + self.comparison.demand(self.count) + self.inside.demand()
    }

    fn cost(&self) -> Cost {
        let compared = self.comparison.cost(self.count);
        let lifted = self.lift.as_ref().map_or(compared, |lift| lift.cost(compared));
        lifted.then(self.inside.cost(self.first()))
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        run(channel, self, input(inputs, 0)?, ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{computed, split};
    use ring::Random;
    use ring::word::signed;

    fn check(plan: &Relu, values: &[i64], client: &Share, server: &Share, rng: &mut Random) {
        let price = (plan.demand(), plan.cost());
        let got = computed(rng, price, [client, server], |ch, x, ots| run(ch, plan, x, ots));
        for (y, got) in values.iter().zip(got) {
            let cap = plan.saturate.map_or(i64::MAX, |a| mask(a) as i64);
            let want = (*y).clamp(0, cap);
            assert_eq!(
                got & mask(plan.inside.out_bits) as i64,
                want & mask(plan.inside.out_bits) as i64,
                "{y}"
            );
        }
    }

    #[test]
    fn every_pair_of_small_shares() {
        let mut rng = Random::seeded(3);
        for (bits, saturate, out_bits) in [
            (4, None, 9),
            (5, Some(2), 8),
            (5, Some(3), 4),
            (6, Some(1), 6),
            (6, Some(4), 20),
            (4, None, 4),
        ] {
            let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
            let low = saturate.map_or(i64::MIN, |a| -(1 << (bits - 1)) + (1i64 << a));
            let pairs = pairs.filter(|(x, y)| signed(x + y, bits) >= low);
            let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
            let (client, server) = (Share::new(x, bits), Share::new(y, bits));
            let values = Share::reconstruct(&client, &server);
            for plan in [
                Relu::new(values.len(), bits, saturate, out_bits, Radix::Four),
                Relu::new(values.len(), bits, saturate, out_bits, Radix::Chain),
                Relu::on_mask(values.len(), bits, saturate, out_bits),
            ] {
                check(&plan.unwrap(), &values, &client, &server, &mut rng);
            }
        }
    }

    #[test]
    fn on_a_mask_the_server_speaks_once() {
        for (bits, saturate, out_bits) in [(12, Some(8), 24), (8, None, 20), (12, None, 9)] {
            let cost = Relu::on_mask(100, bits, saturate, out_bits).unwrap().cost();
            assert_eq!((cost.rounds, cost.first, cost.last), (3, Some(Role::Client), cost.first));
        }
    }

    #[test]
    fn wide_values_at_the_bounds() {
        let mut rng = Random::seeded(4);
        for (bits, a, out_bits) in [(13, 8, 24), (22, 8, 30), (12, 10, 20), (40, 16, 50)] {
            let edge = 1i64 << (bits - 1);
            let cap = 1i64 << a;
            let mut values =
                vec![0, 1, -1, cap - 1, cap, cap + 1, edge - 1, -edge + cap, -edge + cap + 1];
            values.extend(rng.uniform(200, bits - 1).iter().map(|v| *v as i64));
            values.extend(rng.uniform(200, bits - 2).iter().map(|v| -(*v as i64)));
            let (client, server) = split(&mut rng, &values, bits);
            for radix in [Radix::Two, Radix::Sixteen] {
                let plan = Relu::new(values.len(), bits, Some(a), out_bits, radix).unwrap();
                check(&plan, &values, &client, &server, &mut rng);
            }
            let plan = Relu::on_mask(values.len(), bits, Some(a), out_bits).unwrap();
            check(&plan, &values, &client, &server, &mut rng);
        }
    }

    #[test]
    fn rounds_are_four_and_the_depth_of_the_tree() {
        // Digits, levels of their tree, who asks.
        for (radix, levels, asks) in
            [(Radix::Four, 3, Role::Client), (Radix::Sixteen, 2, Role::Server)]
        {
            let cost = |out_bits| Relu::new(10, 12, None, out_bits, radix).unwrap().cost();
            assert_eq!((cost(20).rounds, cost(12).rounds), (4 + levels, 3 + levels));
            assert_eq!((cost(20).first, cost(20).last), (Some(asks), Some(Role::Client)));
        }
    }

    #[test]
    fn a_wider_result_takes_a_bit_for_each_bit_more() {
        for saturate in [None, Some(8)] {
            let bytes = |out_bits| {
                let plan = Relu::new(8000, 12, saturate, out_bits, Radix::Four).unwrap();
                plan.cost().bytes()
            };
            assert_eq!(bytes(30) - bytes(20), 10 * 1000);
        }
    }
}
