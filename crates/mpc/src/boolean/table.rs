//! A public table of shared positions, by a circuit.
//!
//! | | |
//! |---|---|
//! | In | shares of d mod 2^bits; a public table of 2^bits entries of `width` bits; random OTs |
//! | Out | xor shares of the bits of the entry at d |
//! | Reveals | operands masked by uniform bits of unused triples |
//! | Security | semi-honest, given the OTs |
//! | Cost | 4*(bits - 1) bits for the carries, about 2^(low + 1) for the products of the `low` lower bits, 2*(width + 1) for each choice between two parts of the table by an upper bit; bits levels |
//! | Paper | the ring of polynomials over GF(2): every bit of a table is a sum of products of bits of its position; circuits as [`crate::boolean::gmw`] |
//!
//! The carries of both parties' summands tell the bits of d one after the other, the lowest
//! first. The products of any of the `low` lower bits are found once. Every bit of every part
//! of the table, a part for each value of the upper bits, is a sum of these, which is local.
//! Each upper bit then chooses between neighbouring parts, in the level that knows it. Where
//! two parts agree nothing is chosen, so that a table that ends in zeros costs little more
//! than a short one. Products that no entry depends on are left out, so that a table whose
//! neighbours agree costs little more than one of half as many entries.
//!
//! A *shallow* table ([`Table::shallow`]) has the carries from a chain of bits, all at once, so that
//! the circuit has about log2(bits) levels.

mod known;
mod shallow;

use ring::Bits;
use wire::{Channel, Cost, Result, Role};
use zeroize::Zeroizing;

use crate::boolean::compare::chained::{self, Chained};
use crate::boolean::gmw::{self, Circuit, Gate, Partner, Wire};
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use crate::share::Share;

/// The wire that holds a one.
const ONE: Wire = 0;
/// Most products of a gate.
const PARTNERS: usize = 16;
/// Most lower bits whose products are found.
const LOW: u32 = 7;

/// Wires whose xor is a bit, in ascending order and each once.
type Sum = Vec<Wire>;

/// The public plan of look-ups.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    bits: u32,
    /// What finds the carries, where the circuit does not.
    carries: Option<Chained>,
    circuit: Circuit,
    outputs: Vec<Sum>,
    /// Who begins.
    first: Role,
}

impl Table {
    /// Plans look-ups in `entries`, of which the lowest `width` bits count. Their number is a
    /// power of two, and more than one.
    pub(crate) fn new(entries: &[u64], width: u32) -> Self {
        known::table(entries, width, Self::leanest)
    }

    /// The circuit of the fewest bits.
    fn leanest(entries: &[u64], width: u32) -> Self {
        let bits = entries.len().max(2).ilog2();
        let mut best = Self::with(entries, [bits, width], 1);
        for low in 2..=bits.min(LOW) {
            let plan = Self::with(entries, [bits, width], low);
            if plan.weight() < best.weight() {
                best = plan;
            }
        }
        best
    }

    fn with(entries: &[u64], [bits, width]: [u32; 2], low: u32) -> Self {
        let mut plan = Builder::new(bits);
        plan.carries();
        plan.products(low);
        let part = |part: &[u64]| (0..width).map(|bit| plan.sum_of(part, bit)).collect();
        let mut parts: Vec<Vec<Sum>> = entries.chunks(1 << low).map(part).collect();
        for bit in low..bits {
            parts = plan.choose(bit, &parts);
        }
        let outputs = parts.pop().unwrap_or_default();
        plan.drop_unread(&outputs);
        let first = plan.circuit.last_sender(Role::Client);
        Self { bits, carries: None, circuit: plan.circuit, outputs, first }
    }

    /// Lets `first` begin; by default that is who lets the client speak last.
    pub(crate) fn begun_by(self, first: Role) -> Self {
        let carries = self.carries.map(|carries| carries.asked_by(first));
        Self { carries, first, ..self }
    }

    /// Who begins the circuit.
    fn opens(&self) -> Role {
        if self.carries.is_some() { !self.first } else { self.first }
    }

    /// Bits that a party sends for an element.
    fn weight(&self) -> usize {
        self.circuit.levels.iter().flatten().map(|gate| gate.partners.len() + 1).sum()
    }

    /// Returns the OTs for `count` look-ups.
    pub(crate) fn demand(&self, count: usize) -> Demand {
        self.carried(count) + self.circuit.demand(count)
    }

    /// Returns the OTs for the carries.
    fn carried(&self, count: usize) -> Demand {
        self.carries.as_ref().map(|carries| carries.demand(count)).unwrap_or_default()
    }

    /// Returns what [`run`] costs for `count` look-ups.
    pub(crate) fn cost(&self, count: usize) -> Cost {
        let carries = self.carries.as_ref().map_or(Cost::NONE, |carries| carries.cost(count));
        carries.then(self.circuit.cost(count, self.opens()))
    }

    /// This party's halves of the wires that it knows from the start, or with the carries.
    fn inputs(&self, role: Role, words: &[u64], carries: Option<Vec<Bits>>) -> Vec<Bits> {
        let none = Bits::zeros(words.len());
        let own = |bit| Bits::of_words(words, bit);
        let one = if role == Role::Server { none.not() } else { none.clone() };
        let clients = |bit| if role == Role::Client { own(bit) } else { none.clone() };
        let both = std::iter::once(one).chain((0..self.bits).map(own));
        match carries {
            Some(carries) => both.chain(carries).collect(),
            None => both.chain((0..self.bits - 1).map(clients)).collect(),
        }
    }
}

/// A circuit in the making: the wires are a one, the sums of both parties' bits, and the
/// client's bits but the highest.
struct Builder {
    bits: u32,
    circuit: Circuit,
    /// The carry into each bit.
    carry: Vec<Sum>,
    /// The products of every subset of the lower bits, that of none being one.
    products: Vec<Sum>,
}

impl Builder {
    fn new(bits: u32) -> Self {
        let circuit = Circuit { wires: 2 * bits as usize, ..Circuit::default() };
        Self { bits, circuit, carry: vec![Vec::new()], products: vec![vec![ONE]] }
    }

    /// Adds the carries: `(c ^ k)&(s ^ k) ^ k` for bits c and s and the carry k into them.
    fn carries(&mut self) {
        for bit in 0..self.bits as usize - 1 {
            let [sum, client] = [1 + bit, 1 + self.bits as usize + bit];
            let carry = self.carry.last().cloned().unwrap_or_default();
            let factor = added(&[sum, client], &carry);
            let output = self.circuit.wire();
            let partners = vec![Partner { factor, base: carry.clone(), output }];
            self.circuit.push(bit, Gate { operand: added(&[client], &carry), partners });
            self.carry.push(vec![output]);
        }
    }

    /// Bit `bit` of the position, known from level `bit` on.
    fn position(&self, bit: u32) -> Sum {
        let carry = self.carry.get(bit as usize).map_or(&[][..], Vec::as_slice);
        added(&[1 + bit as usize], carry)
    }

    /// Adds the products of the `low` lower bits.
    fn products(&mut self, low: u32) {
        for bit in 0..low {
            let factors = self.products.iter().skip(1).cloned();
            let partners = factors.map(|factor| (factor, Vec::new())).collect();
            let with = self.multiply(bit, partners);
            self.products.push(self.position(bit));
            self.products.extend(with);
        }
    }

    /// Adds products of bit `bit` with factors, to each of which a base is added.
    fn multiply(&mut self, bit: u32, factors: Vec<(Sum, Sum)>) -> Vec<Sum> {
        let operand = self.position(bit);
        let mut partners = Vec::with_capacity(factors.len());
        for (factor, base) in factors {
            partners.push(Partner { factor, base, output: self.circuit.wire() });
        }
        for chunk in partners.chunks(PARTNERS) {
            let gate = Gate { operand: operand.clone(), partners: chunk.to_vec() };
            self.circuit.push(bit as usize, gate);
        }
        partners.iter().map(|partner| vec![partner.output]).collect()
    }

    /// Bit `bit` of the entries of one part, as a sum of products of the lower bits.
    fn sum_of(&self, part: &[u64], bit: u32) -> Sum {
        let mut terms: Vec<bool> = part.iter().map(|entry| (entry >> bit) & 1 == 1).collect();
        let mut step = 1;
        while step < terms.len() {
            for block in terms.chunks_mut(2 * step) {
                let (without, with) = block.split_at_mut(step);
                with.iter_mut().zip(without).for_each(|(with, without)| *with ^= *without);
            }
            step *= 2;
        }
        let chosen = self.products.iter().zip(terms).filter(|(_, term)| *term);
        total(chosen.map(|(product, _)| product.as_slice()))
    }

    /// Leaves products out that neither `outputs` nor other gates read, as of bits that no entry
    /// depends on.
    fn drop_unread(&mut self, outputs: &[Sum]) {
        let mut read = vec![false; self.circuit.wires];
        let mark = |read: &mut Vec<bool>, wire: Wire| {
            if let Some(read) = read.get_mut(wire) {
                *read = true;
            }
        };
        outputs.iter().flatten().for_each(|wire| mark(&mut read, *wire));
        for gates in self.circuit.levels.iter_mut().rev() {
            for gate in gates.iter_mut() {
                gate.partners.retain(|partner| read.get(partner.output).copied().unwrap_or(false));
            }
            gates.retain(|gate| !gate.partners.is_empty());
            gates.iter().flat_map(read_by).for_each(|wire| mark(&mut read, *wire));
        }
        while self.circuit.levels.last().is_some_and(Vec::is_empty) {
            self.circuit.levels.pop();
        }
    }

    /// Chooses between neighbouring parts by bit `bit`.
    fn choose(&mut self, bit: u32, parts: &[Vec<Sum>]) -> Vec<Vec<Sum>> {
        let position = self.position(bit);
        let mut factors = Vec::new();
        let mut chosen = Vec::with_capacity(parts.len() / 2);
        for pair in parts.chunks(2) {
            let [low, high] = pair else { continue };
            let mut part = Vec::with_capacity(low.len());
            for (low, high) in low.iter().zip(high) {
                let change = added(low, high);
                part.push(match change.as_slice() {
                    [] => Some(low.clone()),
                    [ONE] => Some(added(low, &position)),
                    _ => None,
                });
                if change.as_slice() != [ONE] && !change.is_empty() {
                    factors.push((change, low.clone()));
                }
            }
            chosen.push(part);
        }
        let mut products = self.multiply(bit, factors).into_iter();
        let mut filled = |sum: Option<Sum>| sum.or_else(|| products.next()).unwrap_or_default();
        chosen.into_iter().map(|part| part.into_iter().map(&mut filled).collect()).collect()
    }
}

/// The wires that a gate reads.
fn read_by(gate: &Gate) -> impl Iterator<Item = &Wire> {
    let partners =
        gate.partners.iter().flat_map(|partner| partner.factor.iter().chain(&partner.base));
    gate.operand.iter().chain(partners)
}

/// The wires that are in one of two sums but not in both.
fn added(one: &[Wire], other: &[Wire]) -> Sum {
    total([one, other])
}

/// The wires that are in an odd number of sums, in rising order.
fn total<'a>(sums: impl IntoIterator<Item = &'a [Wire]>) -> Sum {
    let mut wires: Sum = sums.into_iter().flatten().copied().collect();
    // Most sums are in order, which a stable sort makes use of.
    wires.sort();
    let odd = wires.chunk_by(|one, other| one == other).filter(|alike| alike.len() % 2 == 1);
    odd.filter_map(<[Wire]>::first).copied().collect()
}

/// Looks every position up: a plane for each bit of the entries, the lowest first.
///
/// # Errors
/// [`wire::Error::Misuse`] when the share or the OTs do not fit, [`wire::Error::Peer`],
/// [`wire::Error::Transport`].
pub(crate) fn run(
    channel: &mut Channel,
    plan: &Table,
    d: &Share,
    mut ots: Correlations,
) -> Result<Zeroizing<Vec<Bits>>> {
    d.check(d.len(), plan.bits, "table")?;
    let role = channel.role();
    let carries = match &plan.carries {
        Some(carries) => {
            let mut now = ots.split(role, &carries.demand(d.len()))?;
            Some(chained::carries(channel, carries, d.words(), &mut now)?)
        }
        None => None,
    };
    let inputs = plan.inputs(role, d.words(), carries);
    let wires = gmw::run(channel, &plan.circuit, inputs, ots, plan.opens())?;
    let mut outputs = Zeroizing::new(Vec::with_capacity(plan.outputs.len()));
    for sum in &plan.outputs {
        let mut output = Bits::zeros(d.len());
        for wire in sum {
            let wire = wires.get(*wire).filter(|bits| bits.len() == d.len());
            output.xor(wire.ok_or_else(|| defect("a table has no wire for its output"))?);
        }
        outputs.push(output);
    }
    Ok(outputs)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::both;
    use ring::Random;
    use ring::word::mask;

    #[test]
    fn every_pair_of_shares() {
        let mut rng = Random::seeded(91);
        for (bits, width) in [(1, 1), (2, 3), (4, 20), (5, 9), (6, 14), (7, 2)] {
            let random = rng.uniform(1 << bits, width);
            let short = random.iter().take(random.len() / 2 + 1).copied().collect::<Vec<_>>();
            let short = [short, vec![1; random.len() / 2 - 1]].concat();
            let twins = random.iter().step_by(2).flat_map(|entry| [*entry; 2]).collect();
            let alike = vec![random[0]; random.len()];
            for entries in [random, short, twins, alike] {
                let pairs = (0..1u64 << bits).flat_map(|x| (0..1u64 << bits).map(move |y| (x, y)));
                let (x, y): (Vec<_>, Vec<_>) = pairs.unzip();
                let (client, server) = (Share::new(x, bits), Share::new(y, bits));
                for plan in [Table::new(&entries, width), Table::shallow(&entries, width)] {
                    let (c, s) = both(
                        &mut rng,
                        &plan.demand(client.len()),
                        |ch, ots| run(ch, &plan, &client, ots),
                        |ch, ots| run(ch, &plan, &server, ots),
                    );
                    assert_eq!(c.cost, plan.cost(client.len()));
                    let (c, s) = (c.value.unwrap(), s.value.unwrap());
                    for at in 0..client.len() {
                        let position = (client.words()[at] + server.words()[at]) & mask(bits);
                        let planes = c.iter().zip(s.iter()).enumerate();
                        let entry = planes
                            .map(|(bit, (c, s))| (c.get(at) ^ s.get(at)) << bit)
                            .fold(0, |entry, bit| entry | bit);
                        assert_eq!(entry, entries[position as usize], "{bits} {position}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_table_whose_neighbours_agree_costs_little_more_than_one_of_half_as_many_entries() {
        let mut rng = Random::seeded(94);
        for bits in [4, 7, 8] {
            let half = rng.uniform(1 << bits, 6);
            let whole: Vec<u64> = half.iter().flat_map(|entry| [*entry; 2]).collect();
            let [half, whole] = [half, whole].map(|entries| Table::new(&entries, 6).weight());
            // One carry more, and gates that were cut before products were left out.
            assert!(whole <= half + 5, "{half} {whole}");
        }
        let constant = Table::new(&[3; 16], 2);
        assert_eq!((constant.weight(), constant.circuit.levels.len()), (0, 0));
    }

    #[test]
    fn a_table_that_ends_in_zeros_costs_little_more_than_a_short_one() {
        let mut rng = Random::seeded(92);
        let short = rng.uniform(64, 12);
        let long = [short.clone(), vec![0; 192]].concat();
        let [short, long] = [Table::new(&short, 12).weight(), Table::new(&long, 12).weight()];
        assert!(long <= short + 2 * (2 + 13), "{short} {long}");
    }
}
