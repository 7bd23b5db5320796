//! The sign of shared integers.
//!
//! | | |
//! |---|---|
//! | In | shares of `y` mod 2^bits, -2^(bits-1) <= y < 2^(bits-1); correlations |
//! | Out | shares mod 2^out_bits of `[y >= 0]`, or of -1, 0 or 1 |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | one comparison of bits - 1, then out_bits bits (one bit: nothing); -1, 0 or 1: with a zero test, then 3*out_bits + 2 bits |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), DReLU; zero test as in ENGINE section 4 |

use ot::{Entry, Job, Table};
use ring::Bits;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::arithmetic::b2a::{self, Arithmetic};
use crate::arithmetic::mux::{self, Side, Switch};
use crate::boolean::compare::{self, Comparison, Radix};
use crate::correlations::{Correlations, Demand};
use crate::estimate;
use crate::protocol::{Protocol, input};
use crate::share::{Share, sign_of};

/// What is told of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// 1 when it is not negative, else 0.
    NonNegative,
    /// -1, 0 or 1.
    Sign,
}

/// The public plan of signs.
#[derive(Clone, Debug)]
pub struct Signs {
    count: usize,
    bits: u32,
    out_bits: u32,
    comparison: Comparison,
    last: Last,
}

/// How bits become integers.
#[derive(Clone, Debug)]
enum Last {
    Convert(Arithmetic),
    Choose(Switch),
}

impl Signs {
    /// Plans `count` values of `bits` (2 to 64) to integers of `out_bits` (1 to 64).
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths.
    pub fn new(count: usize, bits: u32, told: Told, out_bits: u32, radix: Radix) -> Result<Self> {
        if !(2..=64).contains(&bits) || !(1..=64).contains(&out_bits) {
            return Err(Error::misuse("signs with these widths"));
        }
        let plan = |sender| Self::sent_by(sender, count, [bits, out_bits], told, radix);
        estimate::leaner(plan, |plan| (plan.demand(), plan.cost()))
    }

    /// With gates and conversion from what `sender` alone sends.
    fn sent_by(
        sender: Option<Role>,
        count: usize,
        [bits, out_bits]: [u32; 2],
        told: Told,
        radix: Radix,
    ) -> Result<Self> {
        let comparison = match told {
            Told::NonNegative => Comparison::carry(bits - 1, radix),
            Told::Sign => Comparison::with_middle(0, bits - 1, radix),
        };
        let comparison = comparison.gates_from(sender);
        let asks = comparison.last_sender();
        let last = match told {
            Told::NonNegative => {
                let plan = Arithmetic::new(count, out_bits, asks)?;
                Last::Convert(plan.sent_by(sender.unwrap_or(!asks)))
            }
            Told::Sign => {
                let job = Job { count, choice_bits: 2, entry: Entry::Word(out_bits) };
                Last::Choose(Switch::to(asks, vec![job]))
            }
        };
        Ok(Self { count, bits, out_bits, comparison, last })
    }

    /// One of four, by shares of `[y >= 0]` and of `[the lower bits are 0]`.
    fn side(&self, role: Role, positive: &Bits, zero: &Bits) -> Side {
        if role == self.comparison.last_sender() {
            let choice = vec![positive.clone(), zero.clone()];
            return Side { choices: vec![choice], tables: Vec::new() };
        }
        let either = |bits: &Bits| Zeroizing::new([bits.clone(), bits.not()]);
        let (positives, zeros) = (either(positive), either(zero));
        let sign = |positive: &Bits, zero: &Bits| -> Vec<u64> {
            let one = positive.and(&zero.not());
            one.iter().zip(positive.not().masks()).map(|(one, minus)| one | minus).collect()
        };
        let columns = zeros.iter().flat_map(|zero| positives.iter().map(|p| sign(p, zero)));
        Side { choices: Vec::new(), tables: vec![Table::words(columns.collect())] }
    }
}

/// Finds the signs.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(channel: &mut Channel, plan: &Signs, y: &Share, mut ots: Correlations) -> Result<Share> {
    y.check(plan.count, plan.bits, "signs")?;
    let role = channel.role();
    let found = compare::of_share(channel, &plan.comparison, y, &mut ots)?;
    let mut positive = sign_of(role, y.words(), plan.bits);
    positive.xor(&found.greater);
    match &plan.last {
        Last::Convert(plan) => b2a::run(channel, plan, &positive, ots),
        Last::Choose(switch) => {
            let side = plan.side(role, &positive, &found.middle_zero);
            let first = plan.comparison.last_sender();
            let switched = mux::run(channel, switch, first, side, ots)?;
            Ok(switched.sum(plan.count, plan.out_bits))
        }
    }
}

impl Protocol for Signs {
    fn operator(&self) -> &'static str {
        "sign"
    }

    fn describe(&self) -> String {
        "comparison by OT".into()
    }

    fn demand(&self) -> Demand {
        let last = match &self.last {
            Last::Convert(plan) => plan.demand(),
            Last::Choose(switch) => switch.demand(),
        };
        self.comparison.demand(self.count) + last
    }

    fn cost(&self) -> Cost {
        let last = match &self.last {
            Last::Convert(plan) => plan.cost(),
            Last::Choose(switch) => switch.cost(self.comparison.last_sender()),
        };
        self.comparison.cost(self.count).then(last)
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
    use ring::word::mask;

    fn check(bits: u32, client: &Share, server: &Share, rng: &mut Random) {
        let values = Share::reconstruct(client, server);
        for (told, radix) in [Told::NonNegative, Told::Sign]
            .into_iter()
            .flat_map(|told| Radix::ALL.map(|radix| (told, radix)))
        {
            for out_bits in [1, 2, 9, 64] {
                let plan = Signs::new(values.len(), bits, told, out_bits, radix).unwrap();
                let price = (plan.demand(), plan.cost());
                let got =
                    computed(rng, price, [client, server], |ch, x, ots| run(ch, &plan, x, ots));
                let want = values.iter().map(|y| match told {
                    Told::NonNegative => i64::from(*y >= 0),
                    Told::Sign => y.signum(),
                });
                let low = |value: i64| value as u64 & mask(out_bits);
                assert!(got.into_iter().map(low).eq(want.map(low)), "{bits} {told:?} {out_bits}");
            }
        }
    }

    #[test]
    fn every_pair_of_small_shares() {
        let mut rng = Random::seeded(44);
        for bits in 2..=6u32 {
            let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
            let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
            check(bits, &Share::new(x, bits), &Share::new(y, bits), &mut rng);
        }
    }

    #[test]
    fn wide_values_at_the_bounds() {
        let mut rng = Random::seeded(45);
        for bits in [7, 16, 33, 63, 64] {
            let edge = 1i64 << (bits - 2);
            let mut values = vec![0, 1, -1, edge, -edge, edge - 1 + edge, -edge - edge];
            values.extend(rng.uniform(80, bits - 1).iter().map(|word| *word as i64 - edge));
            let (client, server) = split(&mut rng, &values, bits);
            check(bits, &client, &server, &mut rng);
        }
    }

    #[test]
    fn other_widths_are_refused() {
        for (bits, out_bits) in [(1, 4), (65, 4), (8, 0), (8, 65)] {
            assert!(Signs::new(1, bits, Told::Sign, out_bits, Radix::Four).is_err());
        }
    }
}
