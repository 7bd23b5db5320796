//! Boolean circuits on xor-shared bits, many elements at a time.
//!
//! | | |
//! |---|---|
//! | In | xor shares of wires as bit vectors, random OTs ([`Circuit::demand`]) |
//! | Out | xor shares of every gate's outputs |
//! | Reveals | operands masked by uniform bits of unused triples |
//! | Security | semi-honest, given the OTs |
//! | Cost | per gate with k partners and element: k + 1 bits each way, 2k from who alone sends in the OTs; one round a level |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), correlated triples, section 4 and appendix A |
//!
//! A gate multiplies one operand with k partners at once, by a correlated triple
//! `(a; b_1..b_k; a*b_1..a*b_k)` (`triples.rs`). The parties take turns, and each turn
//! carries the opening that completes a level and the one that begins the next.

use ring::Bits;
use wire::{Channel, Cost, Lane, Lanes, Result, Role, Values, tags};
use zeroize::Zeroizing;

use crate::boolean::triples::{self, Triples};
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;

/// Index of a wire.
pub type Wire = usize;

/// One factor of a gate and where its product goes.
#[derive(Clone, Debug)]
pub struct Partner {
    /// The factor: the xor of these wires.
    pub factor: Vec<Wire>,
    /// The product is added to the xor of these wires.
    pub base: Vec<Wire>,
    /// The wire that holds the result.
    pub output: Wire,
}

/// `output = base ^ (operand & factor)` for each partner.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The common operand: the xor of these wires.
    pub operand: Vec<Wire>,
    /// At most 16 partners.
    pub partners: Vec<Partner>,
}

/// Gates in levels; a level reads only wires of earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Circuit {
    /// Number of wires, inputs first.
    pub wires: usize,
    /// The gates.
    pub levels: Vec<Vec<Gate>>,
    /// Who alone sends in the OTs; each party in half of them when absent.
    pub sender: Option<Role>,
}

/// For each gate the planes of its masked operand and partners.
type Opening = Lanes<{ tags::GMW_OPENING }>;

impl Circuit {
    /// Returns a new wire.
    pub fn wire(&mut self) -> Wire {
        self.wires += 1;
        self.wires - 1
    }

    /// Adds a gate at `level`.
    pub fn push(&mut self, level: usize, gate: Gate) {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Vec::new);
        }
        if let Some(gates) = self.levels.get_mut(level) {
            gates.push(gate);
        }
    }

    /// Returns the OTs for `count` elements.
    pub fn demand(&self, count: usize) -> Demand {
        self.levels.iter().flatten().map(|gate| self.gate_need(gate, count)).sum()
    }

    fn gate_need(&self, gate: &Gate, count: usize) -> Demand {
        triples::demand(self.sender, gate.partners.len(), count)
    }

    /// Returns who sends last when `first` sends first; that party may go on at once.
    pub fn last_sender(&self, first: Role) -> Role {
        if self.levels.len().is_multiple_of(2) { first } else { !first }
    }

    /// Returns what [`run`] costs for `count` elements.
    pub fn cost(&self, count: usize, first: Role) -> Cost {
        let opening = |turn: usize, level: usize| {
            let from = if turn.is_multiple_of(2) { first } else { !first };
            let layout = self.levels.get(level).map(|_| self.layout(level, count, from));
            layout.map_or(Cost::NONE, |l| Cost::message(from, Opening::body_len(&l)))
        };
        let turns = 0..=self.levels.len();
        let turn = |t: usize| {
            let completing = t.checked_sub(1).map_or(Cost::NONE, |level| opening(t, level));
            completing.then(opening(t, t))
        };
        turns.map(turn).collect()
    }

    /// Layout of the opening of `level` by `from`.
    fn layout(&self, level: usize, count: usize, from: Role) -> Vec<Lane> {
        let planes = |gate: &Gate| {
            let products = gate.partners.len();
            triples::masks(self.sender, from, products) + products
        };
        let planes = self.levels.get(level).into_iter().flatten().map(planes).sum();
        vec![Lane::Planes { planes, count }]
    }
}

/// The circuit in the hands of one party.
struct Runner<'a> {
    role: Role,
    circuit: &'a Circuit,
    count: usize,
    wires: Zeroizing<Vec<Bits>>,
    triples: Vec<Vec<Triples>>,
    opened: Option<Opening>,
}

impl Runner<'_> {
    fn gates(&self, level: usize) -> &[Gate] {
        self.circuit.levels.get(level).map_or(&[], Vec::as_slice)
    }

    fn open(&self, level: usize) -> Result<Opening> {
        let gates = self.gates(level);
        let triples = self.triples.get(level).map_or(&[][..], Vec::as_slice);
        let mut planes = Vec::new();
        for (gate, triple) in gates.iter().zip(triples) {
            for a in &triple.a {
                planes.push(self.plus(a.clone(), &gate.operand)?);
            }
            for (partner, b) in gate.partners.iter().zip(&triple.b) {
                planes.push(self.plus(b.clone(), &partner.factor)?);
            }
        }
        let lane = Lane::Planes { planes: planes.len(), count: self.count };
        Ok(Lanes(vec![(lane, Values::Planes(planes))]))
    }

    /// `x*y = c ^ e*b ^ a*f ^ e*f` with the opened `e = x ^ a`, `f = y ^ b`.
    fn close(&mut self, level: usize, ours: Opening, theirs: Opening) -> Result<()> {
        let triples = self.triples.get_mut(level).map(std::mem::take).unwrap_or_default();
        let circuit = self.circuit;
        let gates = circuit.levels.get(level).map_or(&[][..], Vec::as_slice);
        let (mut ours, mut theirs) = (planes(ours).into_iter(), planes(theirs).into_iter());
        let mut next = |mine: usize, others: usize| {
            opened(ours.by_ref().take(mine).collect(), theirs.by_ref().take(others).collect())
        };
        for (gate, mut triple) in gates.iter().zip(triples) {
            let products = gate.partners.len();
            let masked = triples::masks(circuit.sender, !self.role, products);
            let (e, f) = (next(triple.a.len(), masked), next(products, products));
            let terms = std::mem::take(&mut triple.c).into_iter().zip(&mut triple.b);
            for (at, (partner, (mut product, b))) in gate.partners.iter().zip(terms).enumerate() {
                let (Some(a), Some(e), Some(f)) =
                    (shared(&triple.a, at), shared(&e, at), f.get(at))
                else {
                    return Err(defect("an opening of a circuit has too few planes"));
                };
                if self.role == Role::Server {
                    b.xor(f);
                }
                product.xor_and(e, b);
                product.xor_and(a, f);
                let product = self.plus(product, &partner.base)?;
                match self.wires.get_mut(partner.output) {
                    Some(wire) => *wire = product,
                    None => return Err(defect("a gate of a circuit has no output wire")),
                }
            }
        }
        Ok(())
    }

    /// `plane` xor all of `wires`.
    fn plus(&self, mut plane: Bits, wires: &[Wire]) -> Result<Bits> {
        for wire in wires {
            plane.xor(self.read(*wire)?);
        }
        Ok(plane)
    }

    fn read(&self, wire: Wire) -> Result<&Bits> {
        let bits = self.wires.get(wire).filter(|bits| bits.len() == self.count);
        bits.ok_or_else(|| defect("a gate of a circuit stands before its input"))
    }

    /// One turn: completes `level - 1` and begins `level`.
    fn turn(&mut self, channel: &mut Channel, level: usize, ours: bool) -> Result<()> {
        let begins = level < self.circuit.levels.len();
        let before = level.checked_sub(1);
        if ours {
            if let Some(before) = before {
                let theirs = self.opened.take();
                let theirs = theirs.ok_or_else(|| defect("a turn of a circuit is out of order"))?;
                let completing = self.open(before)?;
                channel.send(&completing)?;
                self.close(before, completing, theirs)?;
            }
            if begins {
                let beginning = self.open(level)?;
                channel.send(&beginning)?;
                self.opened = Some(beginning);
            }
            return Ok(());
        }
        let shape = |level: usize| self.circuit.layout(level, self.count, !self.role);
        if let Some(before) = before {
            let theirs: Opening = channel.receive(&shape(before))?;
            let begun =
                if begins { Some(channel.receive::<Opening>(&shape(level))?) } else { None };
            let ours = self.opened.take();
            let ours = ours.ok_or_else(|| defect("a turn of a circuit is out of order"))?;
            self.close(before, ours, theirs)?;
            self.opened = begun;
        } else {
            self.opened = Some(channel.receive(&shape(level))?);
        }
        Ok(())
    }
}

/// The plane of a product, or the one for all products.
fn shared(planes: &[Bits], product: usize) -> Option<&Bits> {
    planes.get(product).or(planes.first())
}

/// Xors what both parties opened; either may have one plane where the other has several.
fn opened(mut ours: Vec<Bits>, mut theirs: Vec<Bits>) -> Vec<Bits> {
    if ours.len() < theirs.len() {
        std::mem::swap(&mut ours, &mut theirs);
    }
    for (at, plane) in ours.iter_mut().enumerate() {
        if let Some(other) = shared(&theirs, at) {
            plane.xor(other);
        }
    }
    ours
}

fn planes(opening: Opening) -> Vec<Bits> {
    let parts = opening.0.into_iter().map(|(_, values)| values);
    parts
        .flat_map(|values| match values {
            Values::Planes(planes) => planes,
            Values::Words(_) => Vec::new(),
        })
        .collect()
}

/// Evaluates `circuit` on `count` elements; `inputs` are the first wires. Returns
/// all wires. `first` sends first, [`Circuit::last_sender`] last.
///
/// # Errors
/// [`Error::Misuse`](wire::Error::Misuse) when inputs or OTs do not fit,
/// [`Error::Peer`](wire::Error::Peer),
/// [`Error::Transport`](wire::Error::Transport).
pub fn run(
    channel: &mut Channel,
    circuit: &Circuit,
    inputs: Vec<Bits>,
    mut ots: Correlations,
    first: Role,
) -> Result<Zeroizing<Vec<Bits>>> {
    let role = channel.role();
    let count = inputs.first().map_or(0, Bits::len);
    let mut gate = |gate: &Gate| {
        Triples::take(role, circuit.sender, &circuit.gate_need(gate, count), &mut ots)
    };
    let mut level = |gates: &Vec<Gate>| gates.iter().map(&mut gate).collect();
    let triples = circuit.levels.iter().map(&mut level).collect::<Result<_>>()?;
    let mut wires = Zeroizing::new(inputs);
    wires.resize_with(circuit.wires, Bits::default);
    let mut runner = Runner { role, circuit, count, wires, triples, opened: None };
    if !circuit.levels.is_empty() {
        for level in 0..=circuit.levels.len() {
            let sender = if level.is_multiple_of(2) { first } else { !first };
            runner.turn(channel, level, sender == role)?;
        }
    }
    Ok(runner.wires)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{both, random_bits};
    use ring::Random;

    /// x & y & z by two levels, and x & (y ^ z) beside.
    fn circuit(sender: Option<Role>) -> Circuit {
        let mut circuit = Circuit { wires: 3, sender, ..Circuit::default() };
        let (xy, x_yz) = (circuit.wire(), circuit.wire());
        let partners = vec![
            Partner { factor: vec![1], base: Vec::new(), output: xy },
            Partner { factor: vec![1, 2], base: vec![0], output: x_yz },
        ];
        circuit.push(0, Gate { operand: vec![0], partners });
        let xyz = circuit.wire();
        let partners = vec![Partner { factor: vec![2], base: Vec::new(), output: xyz }];
        circuit.push(1, Gate { operand: vec![xy], partners });
        circuit
    }

    #[test]
    fn gates_compute_on_shared_bits_and_cost_what_is_said() {
        let mut rng = Random::seeded(5);
        let count = 200;
        let shares = |rng: &mut Random| (0..3).map(|_| random_bits(rng, count)).collect::<Vec<_>>();
        let (client, server) = (shares(&mut rng), shares(&mut rng));
        let roles = [Role::Client, Role::Server];
        let senders = [None, Some(Role::Client), Some(Role::Server)];
        for (first, sender) in roles.into_iter().flat_map(|first| senders.map(|s| (first, s))) {
            let circuit = circuit(sender);
            let (c, s) = both(
                &mut rng,
                &circuit.demand(count),
                |ch, ots| run(ch, &circuit, client.clone(), ots, first),
                |ch, ots| run(ch, &circuit, server.clone(), ots, first),
            );
            let (ours, theirs) = (c.value.unwrap(), s.value.unwrap());
            let clear = |wire: usize, i: usize| ours[wire].get(i) ^ theirs[wire].get(i);
            for i in 0..count {
                let (x, y, z) = (clear(0, i), clear(1, i), clear(2, i));
                assert_eq!(clear(4, i), x ^ (x & (y ^ z)));
                assert_eq!(clear(5, i), x & y & z);
            }
            assert_eq!(c.cost, circuit.cost(count, first));
        }
    }
}
