//! Boolean circuits on xor-shared bits, many elements at a time.
//!
//! | | |
//! |---|---|
//! | In | xor shares of wires, one random transfer per gate, element and direction |
//! | Out | xor shares of every gate's outputs |
//! | Reveals | operands masked by uniform bits of unused triples |
//! | Security | semi-honest, given the transfers |
//! | Cost | per gate with k partners and element: k + 1 bits each way; one round a level |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), correlated triples, section 4 and appendix A |
//!
//! A gate multiplies one operand with k partners at once. Its correlated triple
//! `(a; b_1..b_k; a*b_1..a*b_k)` costs no communication: a random transfer with
//! pads `r0, r1` of k bits and random choice `c` *is* the cross term `c*(r0^r1)`,
//! shared as `r0` and `r_c`. The parties take turns, and each turn carries the
//! opening that completes a level and the one that begins the next.

use ot::{ReceiverBatch, SenderBatch};
use ring::word::spread;
use wire::{Channel, Cost, Error, Packed, Result, Role, Segment};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::cots::{Cots, Need};
use crate::share::server_only;

/// Index of a wire.
pub type Wire = usize;

/// One factor of a gate and where its product goes.
#[derive(Clone, Debug)]
pub struct Partner {
    /// The factor: the xor of these wires.
    pub factor: Vec<Wire>,
    /// The product is added to this wire.
    pub base: Option<Wire>,
    /// The wire that holds the result.
    pub output: Wire,
}

/// `output = base ^ (operand & factor)` for each partner.
#[derive(Clone, Debug)]
pub struct Gate {
    /// The common operand.
    pub operand: Wire,
    /// At most 63 partners.
    pub partners: Vec<Partner>,
}

/// Gates in levels; a level reads only wires of earlier ones.
#[derive(Clone, Debug, Default)]
pub struct Circuit {
    /// Number of wires, inputs first.
    pub wires: usize,
    /// The gates.
    pub levels: Vec<Vec<Gate>>,
}

/// Masked operand (low bit) and partners of each element, a segment per gate.
type Opening = Packed<0x38>;

impl Circuit {
    /// A new wire.
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

    /// Correlations for `count` elements.
    pub fn need(&self, count: usize) -> Need {
        let gates = self.levels.iter().map(Vec::len).sum::<usize>();
        Need { client_sends: count, server_sends: count } * gates
    }

    /// Who sends last when `first` sends first; that party may go on at once.
    pub fn last_sender(&self, first: Role) -> Role {
        if self.levels.len().is_multiple_of(2) { first } else { !first }
    }

    /// What [`run`] costs for `count` elements.
    pub fn cost(&self, count: usize, first: Role) -> Cost {
        let opening = |turn: usize, level: usize| {
            let from = if turn.is_multiple_of(2) { first } else { !first };
            let layout = self.levels.get(level).map(|gates| layout(gates, count));
            layout.map_or(Cost::NONE, |l| Cost::message(from, Opening::body_len(&l)))
        };
        let turns = 0..=self.levels.len();
        let turn = |t: usize| {
            let completing = t.checked_sub(1).map_or(Cost::NONE, |level| opening(t, level));
            completing.then(opening(t, t))
        };
        turns.map(turn).collect()
    }
}

fn layout(gates: &[Gate], count: usize) -> Vec<Segment> {
    gates.iter().map(|g| Segment { count, bits: 1 + g.partners.len() as u32 }).collect()
}

/// This party's half of the correlated triples of one gate, k-bit rows.
#[derive(Zeroize, ZeroizeOnDrop)]
struct Triples {
    a: Vec<u64>,
    b: Vec<u64>,
    c: Vec<u64>,
}

impl Triples {
    fn new(sending: SenderBatch, receiving: ReceiverBatch, partners: u32) -> Self {
        let (a, chosen) = receiving.random(partners);
        let pairs = sending.random_pairs(partners);
        let b: Vec<u64> = pairs.iter().map(|[zero, one]| zero ^ one).collect();
        let own = a.iter().zip(&b).map(|(a, b)| spread(*a) & b);
        let cross = chosen.iter().zip(&pairs).map(|(mine, [zero, _])| mine ^ zero);
        let c = own.zip(cross).map(|(own, cross)| own ^ cross).collect();
        Self { a, b, c }
    }
}

/// The circuit in the hands of one party.
struct Runner<'a> {
    role: Role,
    circuit: &'a Circuit,
    count: usize,
    wires: Zeroizing<Vec<Vec<u64>>>,
    triples: Vec<Vec<Triples>>,
    opened: Option<Opening>,
}

impl Runner<'_> {
    fn open(&self, level: usize) -> Result<Opening> {
        let gates = self.circuit.levels.get(level).map_or(&[][..], Vec::as_slice);
        let triples = self.triples.get(level).map_or(&[][..], Vec::as_slice);
        let mut segments = Vec::with_capacity(gates.len());
        for (gate, triple) in gates.iter().zip(triples) {
            let mut rows = vec![0; self.count];
            for (index, partner) in gate.partners.iter().enumerate() {
                for &wire in &partner.factor {
                    let bits = self.read(wire)?.iter();
                    rows.iter_mut().zip(bits).for_each(|(row, bit)| *row ^= bit << index);
                }
            }
            let masked = rows.iter().zip(&triple.b).map(|(row, b)| row ^ b);
            let operand = self.read(gate.operand)?.iter().zip(&triple.a).map(|(x, a)| x ^ a);
            let packed = operand.zip(masked).map(|(x, y)| x | (y << 1)).collect();
            let bits = 1 + gate.partners.len() as u32;
            segments.push((Segment { count: self.count, bits }, packed));
        }
        Ok(Packed(segments))
    }

    fn close(&mut self, level: usize, ours: &Opening, theirs: &Opening) -> Result<()> {
        let gates = self.circuit.levels.get(level).map_or(&[][..], Vec::as_slice);
        let triples = self.triples.get_mut(level).map(std::mem::take).unwrap_or_default();
        let openings = ours.0.iter().zip(&theirs.0);
        for ((gate, triple), ((_, ours), (_, theirs))) in gates.iter().zip(triples).zip(openings) {
            let rows: Vec<u64> = (ours.iter().zip(theirs))
                .zip(triple.a.iter().zip(&triple.b).zip(&triple.c))
                .map(|((x, y), ((a, b), c))| {
                    let (e, f) = (spread((x ^ y) & 1), (x ^ y) >> 1);
                    c ^ (e & b) ^ (spread(*a) & f) ^ server_only(self.role, e & f)
                })
                .collect();
            for (index, partner) in gate.partners.iter().enumerate() {
                let mut bits: Vec<u64> = rows.iter().map(|row| (row >> index) & 1).collect();
                if let Some(base) = partner.base {
                    bits.iter_mut().zip(self.read(base)?).for_each(|(bit, base)| *bit ^= base);
                }
                match self.wires.get_mut(partner.output) {
                    Some(wire) => *wire = bits,
                    None => return Err(Error::misuse("a gate without its output wire")),
                }
            }
        }
        Ok(())
    }

    fn read(&self, wire: Wire) -> Result<&[u64]> {
        let bits = self.wires.get(wire).filter(|bits| bits.len() == self.count);
        bits.map(Vec::as_slice).ok_or_else(|| Error::misuse("a gate before its input"))
    }

    /// One turn: completes `level - 1` and begins `level`.
    fn turn(&mut self, channel: &mut Channel, level: usize, ours: bool) -> Result<()> {
        let begins = level < self.circuit.levels.len();
        let before = level.checked_sub(1);
        if ours {
            if let Some(before) = before {
                let theirs = self.opened.take();
                let theirs = theirs.ok_or_else(|| Error::misuse("a turn out of order"))?;
                let completing = self.open(before)?;
                channel.send(&completing)?;
                self.close(before, &completing, &theirs)?;
            }
            if begins {
                let beginning = self.open(level)?;
                channel.send(&beginning)?;
                self.opened = Some(beginning);
            }
            return Ok(());
        }
        let shape = |level: usize| {
            self.circuit.levels.get(level).map_or_else(Vec::new, |gates| layout(gates, self.count))
        };
        if let Some(before) = before {
            let theirs: Opening = channel.receive(&shape(before))?;
            let begun = if begins { Some(channel.receive(&shape(level))?) } else { None };
            let ours = self.opened.take();
            let ours = ours.ok_or_else(|| Error::misuse("a turn out of order"))?;
            self.close(before, &ours, &theirs)?;
            self.opened = begun;
        } else {
            self.opened = Some(channel.receive(&shape(level))?);
        }
        Ok(())
    }
}

/// Evaluates `circuit` on `count` elements; `inputs` are the first wires. Returns
/// all wires. `first` sends first, [`Circuit::last_sender`] last.
///
/// # Errors
/// [`Error::Misuse`] when inputs or correlations do not fit, [`Error::Peer`],
/// [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    circuit: &Circuit,
    inputs: Vec<Vec<u64>>,
    mut cots: Cots,
    first: Role,
) -> Result<Zeroizing<Vec<Vec<u64>>>> {
    let role = channel.role();
    let count = inputs.first().map_or(0, Vec::len);
    let need = circuit.need(count);
    let given = Need::from(role, cots.sending.len()) + Need::from(!role, cots.receiving.len());
    if given != need {
        return Err(Error::misuse("correlations do not fit the circuit"));
    }
    let triples = circuit.levels.iter().map(|gates| {
        let each = gates.iter().map(|gate| {
            let (sending, receiving) =
                (cots.sending.split_off(count), cots.receiving.split_off(count));
            Triples::new(sending, receiving, gate.partners.len() as u32)
        });
        each.collect()
    });
    let triples = triples.collect();
    let mut wires = Zeroizing::new(inputs);
    wires.resize_with(circuit.wires, Vec::new);
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
    use crate::testing::{both, random};
    use ring::Random;

    /// x & y & z by two levels, and x & (y ^ z) beside.
    fn circuit() -> Circuit {
        let mut circuit = Circuit { wires: 3, ..Circuit::default() };
        let (xy, x_yz) = (circuit.wire(), circuit.wire());
        let partners = vec![
            Partner { factor: vec![1], base: None, output: xy },
            Partner { factor: vec![1, 2], base: Some(0), output: x_yz },
        ];
        circuit.push(0, Gate { operand: 0, partners });
        let xyz = circuit.wire();
        let partners = vec![Partner { factor: vec![2], base: None, output: xyz }];
        circuit.push(1, Gate { operand: xy, partners });
        circuit
    }

    #[test]
    fn gates_compute_on_shared_bits_and_cost_what_is_said() {
        let circuit = circuit();
        let mut rng = Random::seeded(5);
        let count = 200;
        let shares = |rng: &mut Random| (0..3).map(|_| random(rng, count, 1)).collect::<Vec<_>>();
        let (client, server) = (shares(&mut rng), shares(&mut rng));
        for first in [Role::Client, Role::Server] {
            let (c, s) = both(
                &mut rng,
                circuit.need(count),
                |ch, cots| run(ch, &circuit, client.clone(), cots, first),
                |ch, cots| run(ch, &circuit, server.clone(), cots, first),
            );
            let (ours, theirs) = (c.value.unwrap(), s.value.unwrap());
            let clear = |wire: usize, i: usize| ours[wire][i] ^ theirs[wire][i];
            for i in 0..count {
                let (x, y, z) = (clear(0, i), clear(1, i), clear(2, i));
                assert_eq!(clear(4, i), x ^ (x & (y ^ z)));
                assert_eq!(clear(5, i), x & y & z);
            }
            assert_eq!(c.cost, circuit.cost(count, first));
        }
    }
}
