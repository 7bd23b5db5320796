//! Shares mod a prime, as slot-packed encryption has them, and shares mod a power of two.
//!
//! | | |
//! |---|---|
//! | In | [`leave`]: shares mod p of `-p/2 < x < p/2`; [`enter`]: shares mod 2^bits of `x`; correlations |
//! | Out | [`leave`]: shares of the same `x` mod 2^out_bits; [`enter`]: shares of it mod p |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | [`leave`]: one comparison of the bits of p, then out_bits bits; [`enter`]: an extension to 63 bits |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), section 5: rings that are not powers of two |
//!
//! Leaving is exact. With both summands in `0..p` and x moved above zero,
//! `x = c + s - p*w` for `w = [c + s >= p]`, which is the carry of `c + (s + 2^k - p)` out
//! of k bits.
//!
//! Entering is local once the shares are wide: uniform summands mod 2^63 of `0 <= x < 2^b`
//! wrap around unless the client's is at most x, so `x = c + s - 2^63` but for a
//! probability below 2^(b-63) a value, and each party takes its part mod p.

use ring::Modulus;
use ring::word::signed;
use wire::{Channel, Cost, Error, Result, Role};

use crate::arithmetic::b2a::{self, Arithmetic};
use crate::arithmetic::extend::{self, Extend, Sign};
use crate::boolean::compare::{self, Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::estimate;
use crate::protocol::{Protocol, input};
use crate::share::{Share, server_only};

/// Width of the shares that are reduced locally.
const WIDE: u32 = 63;

/// Widest values that may enter, so that none fails with more than 2^-40.
pub const WIDEST_ENTRY: u32 = 22;

/// The public plan of leaving a prime.
#[derive(Clone, Debug)]
pub struct Leave {
    count: usize,
    prime: Modulus,
    out_bits: u32,
    comparison: Comparison,
    conversion: Arithmetic,
}

impl Leave {
    /// Plans `count` values from shares mod an odd `prime` to shares mod 2^out_bits (1 to 64).
    ///
    /// # Errors
    /// [`Error::Misuse`] for other numbers.
    pub fn new(count: usize, prime: Modulus, out_bits: u32, radix: Radix) -> Result<Self> {
        if prime.value().is_multiple_of(2) {
            return Err(Error::misuse("shares mod an even number leave it without conversion"));
        }
        let plan = |sender: Option<Role>| {
            let comparison = Comparison::carry(prime.bits(), radix).gates_from(sender);
            let asks = comparison.last_sender();
            let conversion = Arithmetic::new(count, out_bits, asks)?;
            let conversion = conversion.sent_by(sender.unwrap_or(!asks));
            Ok(Self { count, prime, out_bits, comparison, conversion })
        };
        estimate::leaner(plan, |plan: &Self| (plan.demand(), plan.cost()))
    }

    /// What moves the values into `0..p`.
    fn offset(&self) -> u64 {
        self.prime.value() / 2
    }

    /// This party's summand in `0..p` of the moved value.
    fn summand(&self, role: Role, word: u64) -> u64 {
        self.prime.add(word, server_only(role, self.offset()))
    }
}

/// Runs the conversion. The share's words are below the prime, in as many bits as that has.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn leave(
    channel: &mut Channel,
    plan: &Leave,
    x: &Share,
    mut ots: Correlations,
) -> Result<Share> {
    let (bits, prime) = (plan.prime.bits(), plan.prime.value());
    x.check(plan.count, bits, "prime")?;
    if x.words().iter().fold(false, |any, word| any | (*word >= prime)) {
        return Err(Error::misuse("shares beyond their prime"));
    }
    let role = channel.role();
    let words = x.words().iter().map(|word| plan.summand(role, *word));
    let moved = Share::new(words.collect(), bits);
    let above = server_only(role, (1 << bits) - prime);
    let shifted = Share::new(moved.words().iter().map(|word| word + above).collect(), bits);
    let operands = plan.comparison.operand(role, shifted.words());
    let now = ots.split(role, &plan.comparison.demand(x.len()))?;
    let found = compare::run(channel, &plan.comparison, &operands, now)?;
    let wraps = b2a::run(channel, &plan.conversion, &found.greater, ots)?;
    let offset = server_only(role, plan.offset());
    let words = moved
        .words()
        .iter()
        .zip(wraps.words())
        .map(|(word, wrap)| word.wrapping_sub(offset).wrapping_sub(prime.wrapping_mul(*wrap)));
    Ok(Share::new(words.collect(), plan.out_bits))
}

/// The public plan of entering a prime.
#[derive(Clone, Debug)]
pub struct Enter {
    count: usize,
    bits: u32,
    prime: Modulus,
    offset: u64,
    extension: Extend,
}

impl Enter {
    /// Plans `count` values from shares mod 2^bits (1 to [`WIDEST_ENTRY`]) to shares mod `prime`;
    /// `sign` says what is known of them.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths.
    pub fn new(count: usize, bits: u32, prime: Modulus, sign: Sign, radix: Radix) -> Result<Self> {
        if !(1..=WIDEST_ENTRY).contains(&bits) {
            return Err(Error::misuse(format!(
                "values of {bits} bits cannot enter a prime; at most {WIDEST_ENTRY} bits can"
            )));
        }
        // Moved above zero first, a signed value is an unsigned one.
        let (offset, sign) = match sign {
            Sign::Unknown => (1 << (bits - 1), Sign::Unsigned),
            known => (0, known),
        };
        let extension = Extend::new(count, bits, WIDE, sign, radix)?;
        Ok(Self { count, bits, prime, offset, extension })
    }
}

/// Runs the conversion; the words of the result are below the prime.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn enter(channel: &mut Channel, plan: &Enter, x: &Share, ots: Correlations) -> Result<Share> {
    let role = channel.role();
    let moved = x.plus(role, plan.offset as i64);
    let wide = extend::run(channel, &plan.extension, &moved, ots)?;
    // The server takes off the wrap, which is all but certain, and the offset.
    let prime = plan.prime;
    let off = server_only(role, prime.reduce((1 << WIDE) + plan.offset));
    let words = wide.words().iter().map(|word| prime.subtract(prime.reduce(*word), off));
    Ok(Share::new(words.collect(), prime.bits()))
}

/// Shares mod `prime` of values that the client knows: `x` is its share, and zero is the
/// server's. Local.
pub fn known(x: &Share, prime: Modulus) -> Share {
    let words = x.words().iter().map(|word| prime.of_signed(signed(*word, x.bits())));
    Share::new(words.collect(), prime.bits())
}

impl Protocol for Enter {
    fn operator(&self) -> &'static str {
        "enter prime"
    }

    fn describe(&self) -> String {
        "wrap bit by OT".into()
    }

    fn demand(&self) -> Demand {
        self.extension.demand()
    }

    fn cost(&self) -> Cost {
        self.extension.cost()
    }

    fn failure(&self) -> f64 {
        self.count as f64 * (f64::from(self.bits) - f64::from(WIDE)).exp2()
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        enter(channel, self, input(inputs, 0)?, ots)
    }
}

impl Protocol for Leave {
    fn operator(&self) -> &'static str {
        "leave prime"
    }

    fn describe(&self) -> String {
        "comparison with the prime by OT".into()
    }

    fn demand(&self) -> Demand {
        self.comparison.demand(self.count) + self.conversion.demand()
    }

    fn cost(&self) -> Cost {
        self.comparison.cost(self.count).then(self.conversion.cost())
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        leave(channel, self, input(inputs, 0)?, ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{both, computed, split};
    use ring::Random;

    fn centred(sum: u64, prime: u64) -> i64 {
        let value = (sum % prime) as i64;
        if value > prime as i64 / 2 { value - prime as i64 } else { value }
    }

    #[test]
    fn every_pair_of_shares_leaves_small_primes() {
        let mut rng = Random::seeded(71);
        for (prime, radix) in [(3, Radix::Two), (17, Radix::Four), (31, Radix::Sixteen)] {
            let pairs = (0..prime).flat_map(|c| (0..prime).map(move |s| (c, s)));
            let (c, s): (Vec<u64>, Vec<u64>) = pairs.unzip();
            let modulus = Modulus::new(prime).unwrap();
            let bits = modulus.bits();
            let (client, server) = (Share::new(c, bits), Share::new(s, bits));
            for out_bits in [1, 7, 20, 64] {
                let plan = Leave::new(client.len(), modulus, out_bits, radix).unwrap();
                let price = (plan.demand(), plan.cost());
                let got = computed(&mut rng, price, [&client, &server], |ch, x, ots| {
                    leave(ch, &plan, x, ots)
                });
                let pairs = client.words().iter().zip(server.words());
                let want = pairs.map(|(c, s)| centred(c + s, prime));
                assert!(got.into_iter().eq(want.map(|v| signed(v as u64, out_bits))));
            }
        }
    }

    #[test]
    fn values_enter_and_leave_unchanged() {
        let mut rng = Random::seeded(72);
        for (bits, prime) in [(9, 65_537), (12, 1_032_193), (20, 0x0fff_ffff_fffc_0001)] {
            for sign in [Sign::Unknown, Sign::Unsigned, Sign::NonNegative] {
                let top = 1i64 << (bits - 1);
                let mut values = vec![0, 1, top - 1];
                values.extend(rng.uniform(60, bits - 1).iter().map(|v| *v as i64));
                if sign == Sign::Unknown {
                    values.iter_mut().skip(1).step_by(2).for_each(|v| *v = -*v);
                    values.push(-top);
                }
                let (client, server) = split(&mut rng, &values, bits);
                let modulus = Modulus::new(prime).unwrap();
                let enters = Enter::new(values.len(), bits, modulus, sign, Radix::Four).unwrap();
                let leaves = Leave::new(values.len(), modulus, 32, Radix::Four).unwrap();
                let through = |ch: &mut Channel, share: &Share, mut ots: Correlations| {
                    let now = ots.split(ch.role(), &enters.demand()).unwrap();
                    let inside = enter(ch, &enters, share, now).unwrap();
                    assert!(inside.words().iter().all(|word| *word < prime));
                    leave(ch, &leaves, &inside, ots).unwrap()
                };
                let (c, s) = both(
                    &mut rng,
                    &(enters.demand() + leaves.demand()),
                    |ch, ots| through(ch, &client, ots),
                    |ch, ots| through(ch, &server, ots),
                );
                assert_eq!(c.cost, enters.cost().then(leaves.cost()));
                assert_eq!(Share::reconstruct(&c.value, &s.value), values, "{sign:?}");
            }
        }
    }

    #[test]
    fn what_the_client_knows_enters_without_a_word() {
        let prime = Modulus::new(17).unwrap();
        let x = Share::known(Some(&[-3, 0, 5]), 3, 9);
        assert_eq!(known(&x, prime).words(), [14, 0, 5]);
        assert_eq!(known(&Share::known(None, 3, 9), prime).words(), [0, 0, 0]);
    }

    #[test]
    fn other_numbers_are_refused() {
        let [even, prime] = [16, 17].map(|value| Modulus::new(value).unwrap());
        assert!(Leave::new(1, even, 8, Radix::Four).is_err());
        assert!(Leave::new(1, prime, 0, Radix::Four).is_err());
        assert!(Enter::new(1, 23, prime, Sign::Unknown, Radix::Four).is_err());
        assert!(Enter::new(1, 0, prime, Sign::Unknown, Radix::Four).is_err());
    }
}
