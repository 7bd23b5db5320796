//! Comet's flooded shares: why this is no protocol.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^bits; small masks of the server's |
//! | Out | `x - mask - flood` for the client, `mask + flood` for the server |
//! | Reveals | to the client `x - mask`, where the mask is [`AcceptLeakage`]'s few bits wide: about x |
//! | Security | none: whoever calls this has to accept that |
//! | Cost | one message of `bits` a value from the server |
//! | Paper | Comet, section 3.3 (share flooding) |
//!
//! The published start of Newton's iteration needs shares whose exponents are alike, so it adds
//! a large public number to one and takes it off the other. What is left to hide x is a mask of
//! its own size. The start that shares of this kind allow is a constant
//! ([`graph::functions::flooding`]); [`super::smu`] needs neither.

use ring::Random;
use ring::word::mask as low_bits;
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment, tags};

use crate::linear::falcon::AcceptLeakage;
use crate::share::Share;

type Flooded = Packed<{ tags::FLOODED_SHARES }>;

/// The public plan.
#[derive(Clone, Copy, Debug)]
pub struct Flooding {
    count: usize,
    bits: u32,
    flood: i64,
    hidden_bits: u32,
}

impl Flooding {
    /// Plans `count` values mod 2^bits (2 to 62), flooded by `2^flood_bits`; masks are signed and
    /// as wide as leakage is accepted for.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths, and for masks that reach the flood.
    pub fn new(count: usize, bits: u32, flood_bits: u32, leakage: AcceptLeakage) -> Result<Self> {
        let hidden_bits = leakage.bits();
        let fits = (2..=62).contains(&bits) && flood_bits + 1 < bits;
        if !fits || !(1..=flood_bits).contains(&hidden_bits) {
            return Err(Error::misuse("a flood of these widths"));
        }
        Ok(Self { count, bits, flood: 1 << flood_bits, hidden_bits })
    }

    /// Returns what [`run`] costs.
    pub fn cost(&self) -> Cost {
        Cost::message(Role::Server, Flooded::body_len(&[self.segment()]))
    }

    fn segment(&self) -> Segment {
        Segment { count: self.count, bits: self.bits }
    }
}

/// Shares anew, with masks from `rng` of the server.
///
/// # Errors
/// [`Error::Misuse`] when the share does not fit the plan, [`Error::Peer`],
/// [`Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Flooding, x: &Share, rng: &mut Random) -> Result<Share> {
    x.check(plan.count, plan.bits, "flood")?;
    if channel.role() == Role::Client {
        let theirs: Flooded = channel.receive(&vec![plan.segment()])?;
        return Ok(x.add_scaled(&Share::new(theirs.concat(), plan.bits), 1));
    }
    let half = 1i64 << (plan.hidden_bits - 1);
    let masks = rng.uniform(plan.count, plan.hidden_bits);
    let own = masks.iter().map(|word| (*word as i64 - half + plan.flood) as u64);
    let own = Share::new(own.collect(), plan.bits);
    let shown = x.words().iter().zip(own.words());
    let shown = shown.map(|(x, own)| x.wrapping_sub(*own) & low_bits(plan.bits));
    channel.send(&Flooded::one(shown.collect(), plan.bits))?;
    Ok(own)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::boolean::compare::Radix;
    use crate::nonlinear::comet::smu::{self, Smu};
    use crate::protocol::Protocol;
    use crate::testing::{both, split};
    use graph::functions::{self, smu::Smooth};
    use ring::word::signed;
    use wire::testing::run_pair;

    const COUNT: usize = 4000;
    const FLOOD: u32 = 13;

    /// How two lists of numbers go together, -1 to 1.
    fn correlation(a: &[f64], b: &[f64]) -> f64 {
        let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
        let (ma, mb) = (mean(a), mean(b));
        let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
            a.iter().zip(b).map(|(x, y)| f(x - ma, y - mb)).sum()
        };
        sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt()
    }

    fn values(rng: &mut Random) -> Vec<i64> {
        rng.uniform(COUNT, 8).iter().map(|x| *x as i64 - 128).collect()
    }

    fn seen(share: &Share) -> Vec<f64> {
        share.words().iter().map(|word| signed(*word, share.bits()) as f64).collect()
    }

    #[test]
    fn a_flooded_share_tells_the_client_what_is_shared() {
        let mut rng = Random::seeded(98);
        let values = values(&mut rng);
        let (client, server) = split(&mut rng, &values, 16);
        let leakage = AcceptLeakage::hiding_bits(8);
        let plan = Flooding::new(COUNT, 16, FLOOD, leakage).unwrap();
        let mut masks = [rng.child(), rng.child()];
        let [first, second] = &mut masks;
        let (c, s) = run_pair(
            |channel| run(channel, &plan, &client, first).unwrap(),
            |channel| run(channel, &plan, &server, second).unwrap(),
        );
        assert_eq!(c.cost, plan.cost());
        assert_eq!(Share::reconstruct(&c.value, &s.value), values);
        // Take the flood off again: what is left is x and a mask of its size.
        let guesses: Vec<f64> = seen(&c.value).iter().map(|c| c + (1 << FLOOD) as f64).collect();
        let real: Vec<f64> = values.iter().map(|x| *x as f64).collect();
        assert!(correlation(&guesses, &real) > 0.6);
        let signs = guesses.iter().zip(&real).filter(|(g, x)| g.signum() == x.signum()).count();
        assert!(signs > COUNT * 7 / 10, "{signs}");
    }

    #[test]
    fn shares_of_the_affine_start_tell_nothing() {
        let mut rng = Random::seeded(99);
        let values = values(&mut rng);
        let smooth = Smooth { bits: 9, scale: 0.05, slope: 0.0, smoothness: 0.5, fraction: 0 };
        let (newton, out_bits) = functions::Smu::least(smooth).unwrap();
        let function = functions::Smu::new(smooth, newton, out_bits + 6).unwrap();
        let plan = Smu::new(COUNT, &function, Radix::Four).unwrap();
        let (client, server) = split(&mut rng, &values, 10);
        let (c, s) = both(
            &mut rng,
            &plan.demand(),
            |ch, ots| smu::run(ch, &plan, &client, ots).unwrap(),
            |ch, ots| smu::run(ch, &plan, &server, ots).unwrap(),
        );
        let real: Vec<f64> = values.iter().map(|x| *x as f64).collect();
        for share in [&client, &server, &c.value, &s.value] {
            // Five deviations of what independent lists show.
            let found = correlation(&seen(share), &real);
            assert!(found.abs() < 5.0 / (COUNT as f64).sqrt(), "{found}");
            let signs = seen(share).into_iter().zip(&real);
            let signs = signs.filter(|(g, x)| g.signum() == x.signum()).count();
            assert!(signs.abs_diff(COUNT / 2) < 200, "{signs}");
        }
    }

    #[test]
    fn misfits_are_refused() {
        let new = |bits, flood, hidden| {
            Flooding::new(4, bits, flood, AcceptLeakage::hiding_bits(hidden)).is_err()
        };
        assert!(new(63, 13, 8) && new(14, 13, 8) && new(16, 13, 14) && new(16, 13, 0));
    }
}
