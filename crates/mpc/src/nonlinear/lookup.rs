//! A function of few bits, looked up in a table.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^bits, bits <= 8; the table `T` of 2^bits entries, the server's or, where that one chooses, the client's, or two tables; random OTs |
//! | Out | shares of `T[x]` mod 2^out_bits, of two tables each at its width |
//! | Reveals | masked choices; of the table nothing but its size |
//! | Security | semi-honest, given the correlations |
//! | Cost | bits one way, (2^bits - 1)*out_bits the other per element; 2 rounds |
//! | Paper | Rathee et al., SiRNN (S&P 2021), lookup tables, section III; Dessouky et al., NDSS 2017 |
//!
//! The holder of the table, say the server, turns the table by its share, `T'[j] = T[j + s]`, and
//! the client picks `T'[c]`. The turn is made of conditional moves of columns, one for each bit of
//! s, so that no address depends on a share. Elements are taken in blocks whose turned tables fit
//! into a cache; they share the two messages.

use ot::{Entry, Job, Table};
use ring::Bits;
use ring::word::signed;
use wire::{Channel, Cost, Error, Result, Role};
use zeroize::Zeroizing;

use crate::arithmetic::mux::{self, Side, Switch, Switched};
use crate::correlations::{Correlations, Demand};
use crate::protocol::{Protocol, input};
use crate::share::Share;

/// Entries of all tables of a block.
const BLOCK: usize = 1 << 16;

/// The public plan of a lookup.
#[derive(Clone, Debug)]
pub struct Lookup {
    count: usize,
    bits: u32,
    out_bits: u32,
    /// Width of the entries of a second table at the same positions.
    second: Option<u32>,
    chooser: Role,
}

impl Lookup {
    /// Plans `count` positions of `bits` (1 to 8) to entries of `out_bits` (1 to 64).
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths.
    pub fn new(count: usize, bits: u32, out_bits: u32) -> Result<Self> {
        if !(1..=8).contains(&bits) || !(1..=64).contains(&out_bits) {
            return Err(Error::misuse("a lookup of 1-8 bits for integers of 1-64 bits"));
        }
        Ok(Self { count, bits, out_bits, second: None, chooser: Role::Client })
    }

    /// Plans `count` positions of `bits` (1 to 8) in two tables, of entries of such widths.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths.
    pub(crate) fn pair(count: usize, bits: u32, [first, second]: [u32; 2]) -> Result<Self> {
        let plan = Self::new(count, bits, first)?;
        Self::new(count, bits, second)?;
        Ok(Self { second: Some(second), ..plan })
    }

    /// With the positions of `chooser`; the other has the table.
    #[must_use]
    pub fn chosen_by(self, chooser: Role) -> Self {
        Self { chooser, ..self }
    }

    /// Returns who has the table.
    pub fn holder(&self) -> Role {
        !self.chooser
    }

    /// Elements of a block, a multiple of 64.
    fn block(&self) -> usize {
        BLOCK >> self.bits
    }

    fn switch(&self) -> Switch {
        let first = self.out_bits;
        let entry = self.second.map_or(Entry::Word(first), |second| Entry::Pair(first, second));
        let most = self.block();
        let job = |done| Job { count: most.min(self.count - done), choice_bits: self.bits, entry };
        Switch::to(self.chooser, (0..self.count).step_by(most).map(job).collect())
    }

    /// Returns the OTs that a run consumes.
    pub fn demand(&self) -> Demand {
        self.switch().demand()
    }

    /// Returns what [`run`] costs.
    pub fn cost(&self) -> Cost {
        self.switch().cost(self.chooser)
    }

    /// The chooser's positions or the holder's turned tables, block by block.
    fn side(&self, role: Role, shares: &[u64], tables: &[&[u64]]) -> Side {
        let mut side = Side { choices: Vec::new(), tables: Vec::new() };
        for block in shares.chunks(self.block()) {
            let bits = (0..self.bits).map(|bit| Bits::of_words(block, bit)).collect();
            if role == self.chooser {
                side.choices.push(bits);
            } else {
                let bits = Zeroizing::new(bits);
                side.tables.push(paired(tables.iter().map(|table| turned(table, bits.clone()))));
            }
        }
        side
    }
}

/// One table of entries of as many words as there are tables.
fn paired(mut tables: impl Iterator<Item = Table>) -> Table {
    let mut all = tables.next().unwrap_or(Table(Vec::new()));
    for mut more in tables {
        let pairs = all.0.iter_mut().zip(&mut more.0);
        pairs.for_each(|(entry, more)| entry.words.append(&mut more.words));
    }
    all
}

/// The table as every element's share sees it, a column for each entry: entry `j + s`
/// at position j. `shares` are planes of the bits of s, lowest first.
pub(crate) fn turned(table: &[u64], shares: Zeroizing<Vec<Bits>>) -> Table {
    let count = shares.first().map_or(0, Bits::len);
    // Entry by entry: the macro `vec!` would ask the allocator for zeros where an entry is zero.
    let column = |entry: &u64| std::iter::repeat_n(*entry, count).collect();
    let mut columns: Vec<Vec<u64>> = table.iter().map(column).collect();
    for (level, plane) in shares.iter().enumerate() {
        let moved = Zeroizing::new(plane.masks().collect::<Vec<u64>>());
        let step = 1usize << level;
        let first = Zeroizing::new(columns.iter().take(step).cloned().collect::<Vec<_>>());
        for at in 0..columns.len() {
            let (low, high) = columns.split_at_mut((at + step).min(table.len()));
            let from = high.first().or_else(|| first.get(at + step - table.len()));
            let (Some(to), Some(from)) = (low.get_mut(at), from) else { continue };
            let places = to.iter_mut().zip(from).zip(moved.iter());
            places.for_each(|((to, from), moved)| *to ^= (*to ^ from) & moved);
        }
    }
    Table::words(columns)
}

/// Returns the table of `function` over integers of `bits` (1 to 8), signed or not.
pub fn tabulate(bits: u32, of_signed: bool, function: impl Fn(i64) -> i64) -> Vec<u64> {
    let value = |word: u64| if of_signed { signed(word, bits) } else { word as i64 };
    (0..1u64 << bits).map(|word| function(value(word)) as u64).collect()
}

/// Looks every value up; only its holder has a `table`, of which the low `out_bits`
/// of each entry count. Position j stands for `x = j` mod 2^bits.
///
/// # Errors
/// [`Error::Misuse`] when share, table or correlations do not fit the plan,
/// [`Error::Peer`], [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Lookup,
    x: &Share,
    table: &[u64],
    ots: Correlations,
) -> Result<Share> {
    let switched = switched(channel, plan, x, &[table], ots)?;
    Ok(Share::new(joined(plan, &switched, 0), plan.out_bits))
}

/// Looks every value up in two tables of a plan for a pair.
///
/// # Errors
/// As of [`run`].
pub(crate) fn run_pair(
    channel: &mut Channel,
    plan: &Lookup,
    x: &Share,
    tables: [&[u64]; 2],
    ots: Correlations,
) -> Result<[Share; 2]> {
    let second = plan.second.ok_or_else(|| Error::misuse("a lookup in one table"))?;
    let switched = switched(channel, plan, x, &tables, ots)?;
    let share = |table, bits| Share::new(joined(plan, &switched, table), bits);
    Ok([share(0, plan.out_bits), share(1, second)])
}

fn switched(
    channel: &mut Channel,
    plan: &Lookup,
    x: &Share,
    tables: &[&[u64]],
    ots: Correlations,
) -> Result<Switched> {
    let role = channel.role();
    let held = |table: &&[u64]| role == plan.chooser || table.len() == 1 << plan.bits;
    let fits = (x.len(), x.bits()) == (plan.count, plan.bits) && tables.iter().all(held);
    if !fits || tables.len() != 1 + usize::from(plan.second.is_some()) {
        return Err(Error::misuse("a share or table that does not fit its lookup"));
    }
    let side = plan.side(role, x.words(), tables);
    mux::run(channel, &plan.switch(), plan.chooser, side, ots)
}

/// The words of all blocks, of the first or second table.
fn joined(plan: &Lookup, switched: &Switched, table: usize) -> Vec<u64> {
    let columns = switched.received.iter().chain(&switched.sent);
    // With room for all: a vector that grows leaves copies behind.
    let mut words = Vec::with_capacity(plan.count);
    columns.filter_map(|column| column.words.get(table)).for_each(|w| words.extend_from_slice(w));
    words
}

/// A table that both parties know, applied to shares: the holder of the lookup reads it.
pub struct PublicTable {
    lookup: Lookup,
    values: Vec<u64>,
}

impl PublicTable {
    /// Makes a table of `values`, which has an entry for each of the 2^bits words of the inputs of
    /// `lookup`.
    pub fn new(lookup: Lookup, values: Vec<u64>) -> Self {
        Self { lookup, values }
    }

    /// Returns the entries, by the word that selects them.
    pub fn values(&self) -> &[u64] {
        &self.values
    }
}

impl std::fmt::Debug for PublicTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PublicTable({:?}, {} entries)", self.lookup, self.values.len())
    }
}

impl Protocol for PublicTable {
    fn operator(&self) -> &'static str {
        "lookup"
    }

    fn describe(&self) -> String {
        "table by OT".into()
    }

    fn demand(&self) -> Demand {
        self.lookup.demand()
    }

    fn cost(&self) -> Cost {
        self.lookup.cost()
    }

    fn run(&self, channel: &mut Channel, inputs: &[Share], ots: Correlations) -> Result<Share> {
        let own = channel.role() == self.lookup.holder();
        let table: &[u64] = if own { &self.values } else { &[] };
        run(channel, &self.lookup, input(inputs, 0)?, table, ots)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::both;
    use ring::Random;
    use ring::word::mask;

    fn check(plan: &Lookup, table: &[u64], client: &Share, server: &Share, rng: &mut Random) {
        for chooser in [Role::Client, Role::Server] {
            let plan = &plan.clone().chosen_by(chooser);
            check_asked(plan, table, client, server, rng);
            assert_eq!((plan.cost().first, plan.cost().last), (Some(chooser), Some(!chooser)));
        }
    }

    fn check_asked(plan: &Lookup, table: &[u64], client: &Share, server: &Share, rng: &mut Random) {
        let tables = |role| if role == plan.holder() { table } else { &[] };
        let (c, s) = both(
            rng,
            &plan.demand(),
            |ch, ots| run(ch, plan, client, tables(Role::Client), ots),
            |ch, ots| run(ch, plan, server, tables(Role::Server), ots),
        );
        assert_eq!(c.cost, plan.cost());
        assert_eq!(c.cost.rounds, 2);
        let (c, s) = (c.value.unwrap(), s.value.unwrap());
        let positions = client.words().iter().zip(server.words());
        for (at, (x, y)) in positions.enumerate() {
            let want = table[((x + y) & mask(plan.bits)) as usize] & mask(plan.out_bits);
            let got = c.words()[at].wrapping_add(s.words()[at]) & mask(plan.out_bits);
            assert_eq!(got, want, "{x} + {y}");
        }
    }

    #[test]
    fn every_pair_of_small_shares() {
        let mut rng = Random::seeded(31);
        for bits in 1..=6u32 {
            let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
            let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
            let (client, server) = (Share::new(x, bits), Share::new(y, bits));
            for out_bits in [1, bits, 13, 64] {
                let plan = Lookup::new(client.len(), bits, out_bits).unwrap();
                let table = rng.uniform(1 << bits, 64);
                check(&plan, &table, &client, &server, &mut rng);
            }
        }
    }

    #[test]
    fn pairs_of_tables_take_one_choice() {
        let (mut rng, bits) = (Random::seeded(33), 5);
        let [x, y] =
            [rng.uniform(3000, bits), rng.uniform(3000, bits)].map(|x| Share::new(x, bits));
        let plan = Lookup::pair(3000, bits, [9, 30]).unwrap();
        let tables = [rng.uniform(1 << bits, 9), rng.uniform(1 << bits, 30)];
        let of = |role| tables.each_ref().map(|t| if role == Role::Server { &t[..] } else { &[] });
        let (c, s) = both(
            &mut rng,
            &plan.demand(),
            |ch, ots| run_pair(ch, &plan, &x, of(Role::Client), ots),
            |ch, ots| run_pair(ch, &plan, &y, of(Role::Server), ots),
        );
        assert_eq!(c.cost, plan.cost());
        assert_eq!(
            plan.demand().server_sends,
            Lookup::new(3000, bits, 1)
                .unwrap()
                .demand()
                .server_sends
                .iter()
                .map(|job| Job { entry: Entry::Pair(9, 30), ..*job })
                .collect::<Vec<_>>()
        );
        let (c, s) = (c.value.unwrap(), s.value.unwrap());
        for ((table, c), s) in tables.iter().zip(&c).zip(&s) {
            for at in 0..3000 {
                let position = (x.words()[at] + y.words()[at]) & mask(bits);
                let got = c.words()[at].wrapping_add(s.words()[at]) & mask(c.bits());
                assert_eq!(got, table[position as usize]);
            }
        }
        let one = Lookup::new(1, 2, 4).unwrap();
        let x = Share::new(vec![1], 2);
        let refused = |ch: &mut Channel| {
            run_pair(ch, &one, &x, [&[0; 4]; 2], Correlations::default()).is_err()
        };
        let (c, s) = wire::testing::run_pair(|ch| refused(ch), |ch| refused(ch));
        assert!(c.value && s.value);
        assert!(Lookup::pair(1, 2, [4, 65]).is_err() && Lookup::pair(1, 9, [4, 4]).is_err());
    }

    #[test]
    fn wide_tables_at_random_positions() {
        let mut rng = Random::seeded(32);
        for bits in [7, 8] {
            let mut x = rng.uniform(1100, bits);
            let mut y = rng.uniform(1100, bits);
            x.extend([0, 0, mask(bits), mask(bits)]);
            y.extend([0, mask(bits), 0, mask(bits)]);
            let (client, server) = (Share::new(x, bits), Share::new(y, bits));
            let plan = Lookup::new(client.len(), bits, 12).unwrap();
            let squares = tabulate(bits, true, |x| x * x - 5);
            check(&plan, &squares, &client, &server, &mut rng);
        }
    }

    #[test]
    fn tables_read_their_positions_signed_or_not() {
        assert_eq!(tabulate(2, false, |x| 3 * x), [0, 3, 6, 9]);
        assert_eq!(tabulate(2, true, |x| x), [0, 1, u64::MAX - 1, u64::MAX]);
    }

    #[test]
    fn misfits_are_refused() {
        assert!(Lookup::new(1, 9, 4).is_err() && Lookup::new(1, 0, 4).is_err());
        assert!(Lookup::new(1, 4, 65).is_err() && Lookup::new(1, 4, 0).is_err());
        let plan = Lookup::new(1, 2, 4).unwrap();
        let x = Share::new(vec![1], 2);
        let (_, s) = wire::testing::run_pair(
            |_| (),
            |ch| run(ch, &plan, &x, &[0; 3], Correlations::default()),
        );
        assert!(matches!(s.value, Err(Error::Misuse(_))));
    }
}
