//! A public table of narrow entries, bit by bit.
//!
//! | | |
//! |---|---|
//! | In | shares of z mod 2^bits, bits <= 10; a table of 2^bits entries of at most 16 bits; correlations |
//! | Out | shares of the entry at z, mod 2^out_bits |
//! | Reveals | masked choices |
//! | Security | semi-honest, given the correlations |
//! | Cost | by 1-of-2^bits OT: bits up, (2^bits - 1)*width down, 2 rounds; by a circuit as in `boolean/table.rs`; then for each bit i of the width 1 bit up and out_bits - i - 1 down, 2 rounds |
//! | Paper | Dessouky et al., NDSS 2017 (tables); Rathee et al., CrypTFlow2 (CCS 2020), boolean to arithmetic |
//!
//! A circuit looks the entries up where it takes fewer bytes, which it does for all but small
//! tables, in about as many rounds as positions have bits ([`Digits::by_transfers`] keeps the OT).
//!
//! Against `lookup.rs` the entries are shared by exclusive or and held as bit planes, 64
//! elements to a word, and become integers afterwards. The server turns the table by its
//! share, a conditional move for each bit of it. Where a shared bit is set, `span - entry` can take
//! the place of an entry: all bits of the entry are flipped by it, which takes no message, and
//! what is left is a multiple of the bit itself.

use graph::functions::curve::TABLED;
use ot::{Entry, Job, Table};
use ring::Bits;
use ring::word::mask;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::arithmetic::mux::{self, Side, Switch};
use crate::arithmetic::planes::{self, Number, Planes};
use crate::boolean::table::{self, Table as Circuit};
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::share::Share;
use crate::turns;

/// Bits of the positions that an OT of all entries can have.
const TRANSFERRED: u32 = 8;

/// The public plan.
#[derive(Clone, Debug)]
pub(super) struct Digits {
    count: usize,
    bits: u32,
    width: u32,
    out_bits: u32,
    entries: Vec<u64>,
    /// What looks entries up where that takes fewer bytes than an OT of all of them.
    circuit: Option<Circuit>,
    /// What is added, besides the flipped bits of the entry, where the bit is set that mirrors.
    mirrored: Option<u64>,
    /// Who begins to make numbers of entries' bits.
    first: Role,
}

impl Digits {
    /// `count` values of 1 to 10 bits to `entries` of so many, mod 2^out_bits (1 to 63).
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths.
    pub(super) fn new(count: usize, entries: Vec<u64>, out_bits: u32) -> Result<Self> {
        let bits = entries.len().checked_ilog2().unwrap_or(0);
        let largest = entries.iter().fold(1, |all, entry| all | entry);
        let width = (largest.ilog2() + 1).min(out_bits);
        let fits = (1..=TABLED).contains(&bits) && (1..=63).contains(&out_bits) && width <= 16;
        if !fits || !entries.len().is_power_of_two() {
            return Err(Error::misuse("a table of other than 2 to 1024 entries of 1 to 16 bits"));
        }
        let circuit = Circuit::new(&entries, width);
        let first = Role::Client;
        let (plain, mirrored) = (None, None);
        let table = Self { count, bits, width, out_bits, entries, circuit: plain, mirrored, first };
        let saves = bits > TRANSFERRED
            || circuit.cost(count).bytes() < table.lookup().cost(Role::Client).bytes();
        Ok(Self { circuit: saves.then_some(circuit), ..table })
    }

    /// With entries looked up by OT, in fewer rounds and often more bytes, if they are at most 256.
    pub(super) fn by_transfers(self) -> Self {
        let circuit = self.circuit.filter(|_| self.bits > TRANSFERRED);
        Self { circuit, ..self }
    }

    /// With a circuit of fewer levels and more bits, where there is one.
    pub(super) fn shallow(self) -> Self {
        let circuit = self.circuit.map(|_| Circuit::shallow(&self.entries, self.width));
        Self { circuit, ..self }
    }

    /// With parts that whoever spoke last begins, which `first` did before all.
    pub(super) fn in_turns(self, first: Role) -> Self {
        let circuit = self.circuit.map(|circuit| circuit.begun_by(first));
        let table = Self { circuit, ..self };
        let first = turns::after(table.looking_up(), first);
        Self { first, ..table }
    }

    /// With `span - entry` in place of the entry where a bit is set that [`run`] is given.
    pub(super) fn mirrored(self, span: i64) -> Self {
        let rest = (span as u64).wrapping_sub(mask(self.width));
        Self { mirrored: Some(rest & mask(self.out_bits)), ..self }
    }

    fn lookup(&self) -> Switch {
        let (count, entry) = (self.count, Entry::Bits(self.width));
        Switch::to(Role::Client, vec![Job { count, choice_bits: self.bits, entry }])
    }

    /// The bits of an entry, then the one that mirrors, as an integer.
    fn number(&self) -> Planes {
        let mut number = Number::of_bits(self.width, self.out_bits);
        number.weights.extend(self.mirrored);
        Planes::new(self.count, vec![number]).begun_by(self.first)
    }

    /// What it costs to look entries' bits up.
    fn looking_up(&self) -> Cost {
        match &self.circuit {
            Some(circuit) => circuit.cost(self.count),
            None => self.lookup().cost(Role::Client),
        }
    }

    /// Correlations consumed.
    pub(super) fn demand(&self) -> Demand {
        let lookup = match &self.circuit {
            Some(circuit) => circuit.demand(self.count),
            None => self.lookup().demand(),
        };
        lookup + self.number().demand()
    }

    /// What [`run`] costs.
    pub(super) fn cost(&self) -> Cost {
        self.looking_up().then(self.number().cost())
    }

    /// The entries' bits, by OT.
    fn transferred(
        &self,
        channel: &mut Channel,
        z: &Share,
        ots: Correlations,
    ) -> Result<Zeroizing<Vec<Bits>>> {
        let planes = (0..self.bits).map(|bit| Bits::of_words(z.words(), bit)).collect::<Vec<_>>();
        let side = match channel.role() {
            Role::Client => Side { choices: vec![planes], tables: Vec::new() },
            Role::Server => {
                let planes = Zeroizing::new(planes);
                Side { choices: Vec::new(), tables: vec![self.turned(&planes)] }
            }
        };
        let found = mux::run(channel, &self.lookup(), Role::Client, side, ots)?;
        let found = found.received.first().or(found.sent.first());
        let planes = found.map_or(&[][..], |column| column.planes.as_slice());
        Ok(Zeroizing::new(planes.to_vec()))
    }

    /// The table as the server's shares see it: entry `j + s` at position j.
    fn turned(&self, share: &[Bits]) -> Table {
        let plane = |entry: &u64, bit: u32| {
            let zeros = Bits::zeros(self.count);
            if (entry >> bit) & 1 == 1 { zeros.not() } else { zeros }
        };
        let column = |entry: &u64| (0..self.width).map(|bit| plane(entry, bit)).collect();
        let mut columns: Vec<Vec<Bits>> = self.entries.iter().map(column).collect();
        for (level, moved) in share.iter().enumerate() {
            let step = 1usize << level;
            let first = Zeroizing::new(columns.iter().take(step).cloned().collect::<Vec<_>>());
            for at in 0..columns.len() {
                let (low, high) = columns.split_at_mut((at + step).min(self.entries.len()));
                let from = high.first().or_else(|| first.get(at + step - self.entries.len()));
                let (Some(to), Some(from)) = (low.get_mut(at), from) else { continue };
                for (to, from) in to.iter_mut().zip(from) {
                    let mut change = Zeroizing::new(to.clone());
                    change.xor(from);
                    to.xor_and(&change, moved);
                }
            }
        }
        Table::bits(columns)
    }
}

/// Looks every value up; a plan that mirrors takes a shared bit for each.
///
/// # Errors
/// [`Error::Misuse`] when the share or the correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub(super) fn run(
    channel: &mut Channel,
    plan: &Digits,
    (z, mirrors): (&Share, Option<&Bits>),
    mut ots: Correlations,
) -> Result<Share> {
    z.check(plan.count, plan.bits, "table")?;
    if mirrors.is_some() != plan.mirrored.is_some() {
        return Err(Error::misuse("a table that mirrors takes a bit, and no other does"));
    }
    let role = channel.role();
    let mut entry = match &plan.circuit {
        Some(circuit) => {
            let now = ots.split(role, &circuit.demand(plan.count))?;
            table::run(channel, circuit, z, now)?
        }
        None => {
            let now = ots.split(role, &plan.lookup().demand())?;
            plan.transferred(channel, z, now)?
        }
    };
    if let Some(mirrors) = mirrors {
        entry.iter_mut().for_each(|plane| plane.xor(mirrors));
        entry.push(mirrors.clone());
    }
    let mut numbers = planes::run(channel, &plan.number(), &entry, ots)?;
    numbers.pop().ok_or_else(|| defect("an entry is no number"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::shares_of;
    use ring::Random;

    #[test]
    fn pairs_of_shares_and_every_width() {
        let mut rng = Random::seeded(78);
        for (bits, width, out_bits) in
            [(1, 1, 1), (3, 3, 3), (4, 2, 9), (5, 9, 4), (3, 16, 40), (9, 4, 12)]
        {
            let entries = rng.uniform(1 << bits, width);
            let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
            let some = if bits > TRANSFERRED { 61 } else { 1 };
            let (x, y): (Vec<_>, Vec<_>) = pairs.step_by(some).unzip();
            let (client, server) = (Share::new(x, bits), Share::new(y, bits));
            let fewest = Digits::new(client.len(), entries, out_bits).unwrap();
            let transfers = fewest.clone().by_transfers();
            assert_eq!(transfers.circuit.is_some(), bits > TRANSFERRED);
            assert!(transfers.cost().bytes() >= fewest.cost().bytes());
            for plan in [fewest, transfers] {
                let price = (plan.demand(), plan.cost());
                let [c, s] = shares_of(&mut rng, price, [&client, &server], |ch, x, ots| {
                    run(ch, &plan, (x, None), ots)
                });
                for at in 0..client.len() {
                    let z = (client.words()[at] + server.words()[at]) & mask(bits);
                    let got = c.words()[at].wrapping_add(s.words()[at]) & mask(out_bits);
                    assert_eq!(got, plan.entries[z as usize] & mask(out_bits), "{bits} {z}");
                }
            }
        }
    }

    #[test]
    fn other_tables_are_refused() {
        for entries in [vec![0], vec![0; 3], vec![0; 2048], vec![1 << 16; 2]] {
            assert!(Digits::new(1, entries, 20).is_err());
        }
        assert!(Digits::new(1, vec![0; 2], 64).is_err());
    }
}
