//! Shares mod a power of two to small shares: integers that add up to the value, a few bits
//! longer than it. The published layers want them; they leak.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^bits |
//! | Out | `r` for the client and `x - r` for the server, integers; r is uniform from -2^m to 2^m - 1, m = held - 1 + hidden |
//! | Reveals | to the server: `x - r`, which tells two values of x apart with probability up to 2^-hidden; x itself once in 2^(m+1) times for its extremes |
//! | Security | leaks: every value of every layer is shown so in every run |
//! | Cost | `held + hidden + 1` bits a value, one message from the client |
//! | Paper | Li, Xue, Zhu, Ding, Gao, Wei, Wan, "FALCON" (arXiv 1811.08257), section 5.2; how r is chosen is not said there |
//!
//! The client takes r from its share and sends the rest. That rest is uniform, as its share is, but
//! together with the server's share it is `x - r`.

use ring::Random;
use ring::word::signed;
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment, tags};
use zeroize::Zeroizing;

use super::layer::AcceptLeakage;
use crate::share::Share;

/// The client's share without its mask.
type Rest = Packed<{ tags::SMALL_SHARES }>;

/// Widest small shares.
const WIDEST: u32 = 62;

/// The public plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Small {
    count: usize,
    /// Bits of what the server is sent: small shares of both signs fit them.
    bits: u32,
}

impl Small {
    /// Plans small shares of `count` values of a signed width.
    ///
    /// # Errors
    /// [`Error::Misuse`] when they do not fit a machine word.
    pub fn hidden(count: usize, held_bits: u32, leakage: AcceptLeakage) -> Result<Self> {
        let bits = held_bits.saturating_add(leakage.hidden_bits).saturating_add(1);
        if held_bits == 0 || bits > WIDEST {
            return Err(Error::misuse(format!(
                "small shares of values of {held_bits} bits, {} more hidden",
                leakage.hidden_bits
            )));
        }
        Ok(Self { count, bits })
    }

    /// Shares of integers that only the client knows. This is local, and hides nothing.
    pub fn known(x: &Share) -> Share {
        let words = x.words().iter().map(|word| signed(*word, x.bits()) as u64);
        Share::new(words.collect(), u64::BITS)
    }

    /// Returns the least width of the shares that go in.
    pub const fn bits(&self) -> u32 {
        self.bits
    }

    /// Returns the number of values.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns what a run costs.
    pub fn cost(&self) -> Cost {
        Cost::message(Role::Client, Rest::body_len(&self.layout()))
    }

    fn layout(&self) -> Vec<Segment> {
        vec![Segment { count: self.count, bits: self.bits }]
    }

    /// Returns this party's small share of `x`, in two's complement of 64 bits. All that the client
    /// sends fits: what it adds up to is an integer of that width.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other shares than planned, [`Error::Peer`], [`Error::Transport`].
    pub fn run(&self, channel: &mut Channel, x: &Share, rng: &mut Random) -> Result<Share> {
        let x = x.narrow(self.bits)?;
        x.check(self.count, self.bits, "small shares")?;
        match channel.role() {
            Role::Client => {
                let masks = Zeroizing::new(rng.uniform(self.count, self.bits - 1));
                let masks = masks.iter().map(|word| signed(*word, self.bits - 1) as u64);
                let masks = Share::new(masks.collect(), u64::BITS);
                let rest = x.add_scaled(&masks, -1);
                channel.send(&Rest::one(rest.words().to_vec(), self.bits))?;
                Ok(masks)
            }
            Role::Server => {
                let rest: Rest = channel.receive(&self.layout())?;
                let sums = x.add_scaled(&Share::new(rest.concat(), self.bits), 1);
                let sums = sums.words().iter().map(|word| signed(*word, self.bits) as u64);
                Ok(Share::new(sums.collect(), u64::BITS))
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::split;
    use wire::testing::run_pair;

    const COUNT: usize = 300;

    /// Small shares of both parties of `values` of 6 bits with 3 hidden ones.
    fn shared(values: &[i64], seed: u64) -> [Vec<i64>; 2] {
        let plan = Small::hidden(values.len(), 6, AcceptLeakage::hiding_bits(3)).unwrap();
        let (client, server) = split(&mut Random::seeded(seed), values, 17);
        let (c, s) = run_pair(
            |channel| plan.run(channel, &client, &mut Random::seeded(seed + 1)),
            |channel| plan.run(channel, &server, &mut Random::seeded(seed + 2)),
        );
        assert_eq!((c.cost, s.cost), (plan.cost(), plan.cost()));
        [c, s].map(|party| party.value.unwrap().words().iter().map(|x| *x as i64).collect())
    }

    #[test]
    fn small_shares_add_up_over_the_integers() {
        let values: Vec<i64> = (0..COUNT as i64).map(|x| x % 64 - 32).collect();
        let [client, server] = shared(&values, 5);
        let sums = client.iter().zip(&server).map(|(c, s)| c + s);
        assert_eq!(sums.collect::<Vec<_>>(), values);
        assert!(client.iter().all(|r| (-256..256).contains(r)));
        assert!(client.iter().any(|r| *r > 128) && client.iter().any(|r| *r < -128));
    }

    /// Why they leak: from a large value come shares of the server that a small one never has.
    #[test]
    fn the_server_tells_values_apart() {
        let beyond = |value: i64| {
            let [_, server] = shared(&[value; 4 * COUNT], 9);
            server.iter().filter(|share| **share > 256).count()
        };
        assert_eq!(beyond(0), 0);
        assert!(beyond(31) > COUNT / 10);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for (held, hidden) in [(0, 3), (60, 3), (8, u32::MAX)] {
            assert!(Small::hidden(4, held, AcceptLeakage::hiding_bits(hidden)).is_err());
        }
        let plan = Small::hidden(4, 6, AcceptLeakage::hiding_bits(3)).unwrap();
        let (narrow, _) = split(&mut Random::seeded(1), &[1; 4], plan.bits() - 1);
        let (few, _) = split(&mut Random::seeded(1), &[1; 3], plan.bits());
        for x in [narrow, few] {
            let (c, _) = run_pair(
                |channel| plan.run(channel, &x, &mut Random::seeded(1)),
                |_| Ok::<(), Error>(()),
            );
            assert!(matches!(c.value, Err(Error::Misuse(_))));
        }
    }
}
