//! A start and a slope for each piece of a curve, from one look-up.
//!
//! | | |
//! |---|---|
//! | In | shares of a piece mod 2^bits; a public start and a public slope of each piece, neither negative; correlations |
//! | Out | shares of the start mod 2^wide and of the slope mod 2^narrow |
//! | Reveals | masked choices, or operands masked by uniform bits |
//! | Security | semi-honest, given the correlations |
//! | Cost | by 1-of-2^bits OT: bits up, (2^bits - 1)*(wide + narrow) down, 2 rounds; by a circuit as in `boolean/table.rs`, then for each bit i of an entry 1 bit up and a width less i + 1 bits down, about bits + 2 rounds |
//! | Paper | as of `digits.rs` |

use wire::{Channel, Cost, Result, Role};

use crate::arithmetic::planes::{self, Number, Planes};
use crate::boolean::table::{self, Table as Circuit};
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::nonlinear::lookup::{self, Lookup};
use crate::share::Share;

/// The public plan.
#[derive(Clone, Debug)]
pub(super) struct Ends {
    count: usize,
    entries: [Vec<u64>; 2],
    lookup: Lookup,
    /// What looks them up where that takes fewer bytes.
    circuit: Option<(Circuit, Planes)>,
}

/// Bits of the largest entry, one at least.
fn width(entries: &[u64]) -> u32 {
    entries.iter().fold(1, |all, entry| all | entry).ilog2() + 1
}

impl Ends {
    /// Plans `count` look-ups of `starts` and `slopes`, a power of two of each, as shares of so many
    /// bits.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for more than 8 bits of pieces, or widths that a look-up has not.
    pub(super) fn new(count: usize, entries: [Vec<u64>; 2], widths: [u32; 2]) -> Result<Self> {
        let [starts, slopes] = &entries;
        let bits = starts.len().max(2).ilog2();
        let lookup = Lookup::pair(count, bits, widths)?;
        let [start, slope] = [width(starts).min(widths[0]), width(slopes).min(widths[1])];
        let joined = starts.iter().zip(slopes).map(|(one, other)| other | one << slope);
        let circuit = Circuit::new(&joined.collect::<Vec<_>>(), slope + start);
        let numbers = vec![Number::of_bits(slope, widths[1]), Number::of_bits(start, widths[0])];
        let numbers = Planes::new(count, numbers);
        let bytes = circuit.cost(count).then(numbers.cost()).bytes();
        let saves = bytes < lookup.cost().bytes();
        Ok(Self { count, entries, circuit: saves.then_some((circuit, numbers)), lookup })
    }

    /// With entries looked up by OT, in fewer rounds and often more bytes.
    pub(super) fn by_transfers(self) -> Self {
        Self { circuit: None, ..self }
    }

    /// Correlations consumed.
    pub(super) fn demand(&self) -> Demand {
        match &self.circuit {
            Some((circuit, numbers)) => circuit.demand(self.count) + numbers.demand(),
            None => self.lookup.demand(),
        }
    }

    /// What [`run`] costs.
    pub(super) fn cost(&self) -> Cost {
        match &self.circuit {
            Some((circuit, numbers)) => circuit.cost(self.count).then(numbers.cost()),
            None => self.lookup.cost(),
        }
    }
}

/// Looks every piece up: starts, then slopes.
///
/// # Errors
/// [`wire::Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub(super) fn run(
    channel: &mut Channel,
    plan: &Ends,
    pieces: &Share,
    mut ots: Correlations,
) -> Result<[Share; 2]> {
    let role = channel.role();
    let Some((circuit, numbers)) = &plan.circuit else {
        let held = |entries| if role == Role::Server { entries } else { &[][..] };
        let [starts, slopes] = plan.entries.each_ref().map(|entries| held(entries.as_slice()));
        return lookup::run_pair(channel, &plan.lookup, pieces, [starts, slopes], ots);
    };
    let now = ots.split(role, &circuit.demand(plan.count))?;
    let found = table::run(channel, circuit, pieces, now)?;
    let found = planes::run(channel, numbers, &found, ots)?;
    let [slope, start] = found.try_into().map_err(|_| defect("a piece has two ends"))?;
    Ok([start, slope])
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::shares_of;
    use ring::Random;
    use ring::word::mask;

    #[test]
    fn every_pair_of_shares_either_way() {
        let mut rng = Random::seeded(79);
        for (bits, sizes, widths) in
            [(1, [3, 2], [5, 4]), (3, [7, 4], [9, 5]), (4, [10, 5], [11, 6]), (5, [4, 9], [4, 30])]
        {
            let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
            let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
            let (client, server) = (Share::new(x, bits), Share::new(y, bits));
            let entries = sizes.map(|width| rng.uniform(1 << bits, width));
            let fewest = Ends::new(client.len(), entries.clone(), widths).unwrap();
            let transfers = fewest.clone().by_transfers();
            assert!(fewest.cost().bytes() <= transfers.cost().bytes());
            for plan in [fewest, transfers] {
                let price = (plan.demand(), plan.cost());
                let [c, s] = shares_of(&mut rng, price, [&client, &server], |ch, x, ots| {
                    run(ch, &plan, x, ots)
                });
                for at in 0..client.len() {
                    let piece = (client.words()[at] + server.words()[at]) & mask(bits);
                    for part in 0..2 {
                        let sum = c[part].words()[at].wrapping_add(s[part].words()[at]);
                        let want = entries[part][piece as usize] & mask(widths[part]);
                        assert_eq!(sum & mask(widths[part]), want, "{bits} {piece} {part}");
                    }
                }
            }
        }
    }
}
