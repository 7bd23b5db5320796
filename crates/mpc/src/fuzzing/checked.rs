//! Both parties of a network against a client that sends anything.

use std::sync::OnceLock;

use graph::{Conv, Linear, Rounding};
use ot::ideal::deal;
use ring::Random;
use wire::fuzzing::fed;
use wire::testing::run_pair;
use wire::{Channel, Error, HEADER_LEN, Result, Role};

use crate::checked::{self, Block, Entered, Network, Operand, Shown};
use crate::garbled::Clip;
use crate::linear::coefficient::{ServerWeights, Worker};

/// Widths of the network's layers, and bits of results.
const WIDTHS: [usize; 3] = [5, 4, 3];
const OUT: u32 = 12;
/// Bytes of a change: a frame, three of a position in it, and what is added to the byte there.
const CHANGE: usize = 5;
const INPUT: [i64; 5] = [1, 200, 0, 17, 255];

/// A network, and what either party says in a run between honest ones.
struct Case {
    network: Network,
    weights: Vec<ServerWeights>,
    said: [Vec<Vec<u8>>; 2],
}

fn case() -> Option<&'static Case> {
    static CASE: OnceLock<Option<Case>> = OnceLock::new();
    CASE.get_or_init(prepare).as_ref()
}

fn prepare() -> Option<Case> {
    let linear = |at: usize| Linear {
        conv: Conv::fully_connected(WIDTHS[at], WIDTHS[at + 1]),
        accumulator_bits: OUT + 6,
        weight_bits: 8,
        shift: 6,
        rounding: Rounding::Exact,
        addend: None,
        choice: None,
        square_bits: None,
    };
    let linears = [linear(0), linear(1)];
    let block = |(from, linear)| Block {
        linear,
        input: Operand { from, sums: None },
        addend: None,
        out_bits: OUT,
        windows: None,
        clip: (from == 0).then_some(Clip { low: 0, saturate: 8 }),
    };
    let blocks: Vec<Block<'_>> = linears.iter().enumerate().map(block).collect();
    let entered = Entered { batch: 1, count: WIDTHS[0], low: 0, bits: 8 };
    let network = Network::new(entered, &blocks, Shown::Values).ok()?;
    let layer = |(at, layer)| {
        let (inputs, outputs) = (WIDTHS.get(at)?, WIDTHS.get(at + 1)?);
        let weight: Vec<i32> = (0..inputs * outputs).map(|w| w as i32 * 12 - 100).collect();
        ServerWeights::new(layer, &weight, &vec![32; *outputs], &mut 0).ok()
    };
    let weights = network.layers().enumerate().map(layer).collect::<Option<Vec<_>>>()?;
    let mut case = Case { network, weights, said: [Vec::new(), Vec::new()] };
    let (client, server) = run_pair(|ch| case.client(ch), |ch| case.server(ch));
    client.value.and(server.value).ok()?;
    case.said = [client.frames, server.frames];
    Some(case)
}

impl Case {
    /// The client with correlations that are the same in each run.
    fn client(&self, ch: &mut Channel) -> Result<usize> {
        let (_, ots) = deal(&mut Random::seeded(1), self.network.ots());
        let worker = &mut Worker { rng: &mut Random::seeded(2), threads: 1 };
        checked::client(ch, &self.network, ots, &INPUT, worker).map(|results| results.len())
    }

    /// The server with the other end of these correlations.
    fn server(&self, ch: &mut Channel) -> Result<()> {
        let (ots, _) = deal(&mut Random::seeded(1), self.network.ots());
        let worker = &mut Worker { rng: &mut Random::seeded(3), threads: 1 };
        checked::server(ch, &self.network, ots, &self.weights, None, worker)
    }

    /// What the peer of `role` says between honest parties.
    fn heard(&self, role: Role) -> &[Vec<u8>] {
        let [client, server] = &self.said;
        match role {
            Role::Client => server,
            Role::Server => client,
        }
    }
}

/// A party on messages of any content; bit 1 of the first byte says which. Bit 0 clear: the rest is the
/// peer's stream as it stands. Bit 0 set: the peer's stream is that of an honest run, with a byte changed for each
/// five of the rest.
///
/// # Panics
/// When a server takes a changed stream for an honest one, when an error is not the peer's fault, or when
/// more is asked for than the run has.
pub fn checked_network(data: &[u8]) {
    let (Some((kind, rest)), Some(case)) = (data.split_first(), case()) else { return };
    let role = if kind & 2 == 0 { Role::Server } else { Role::Client };
    let (whole, frames) = (kind & 1 == 1, case.heard(role));
    let stream = if whole { changed(frames, rest) } else { rest.to_vec() };
    let header = usize::try_from(HEADER_LEN).unwrap_or(usize::MAX);
    let most = frames.iter().map(Vec::len).fold(header, usize::max);
    let channel = &mut fed(role, &stream, most);
    let error = match role {
        Role::Client => case.client(channel).map(|results| assert_eq!(results, WIDTHS[2])),
        Role::Server => {
            let done = case.server(channel);
            assert_eq!(done.is_ok(), stream.starts_with(&frames.concat()), "a changed stream");
            done
        }
    };
    match error {
        Ok(()) | Err(Error::Peer { .. }) => {}
        Err(error) => assert!(!whole && matches!(error, Error::Transport(_)), "{error}"),
    }
}

/// The frames, with what `changes` add to bytes of their bodies.
fn changed(frames: &[Vec<u8>], changes: &[u8]) -> Vec<u8> {
    let mut frames = frames.to_vec();
    let (count, header) = (frames.len().max(1), usize::try_from(HEADER_LEN).unwrap_or(usize::MAX));
    for change in changes.chunks_exact(CHANGE) {
        let [frame, low, middle, high, by] = change else { continue };
        let position = u32::from_le_bytes([*low, *middle, *high, 0]) as usize;
        let body =
            frames.get_mut(usize::from(*frame) % count).and_then(|all| all.get_mut(header..));
        let Some(body) = body.filter(|body| !body.is_empty()) else { continue };
        let len = body.len();
        if let Some(byte) = body.get_mut(position % len) {
            *byte = byte.wrapping_add(*by);
        }
    }
    frames.concat()
}

#[cfg(test)]
mod tests {
    use ring::mutate::replay;

    use super::*;

    const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

    #[test]
    fn checked_networks_stand_their_corpus() {
        replay(&format!("{CORPUS}/mpc_checked"), 500, checked_network);
    }

    /// The target reaches what it is for.
    #[test]
    #[allow(clippy::unwrap_used)]
    fn honest_streams_are_taken_and_no_byte_of_the_clients_is_spare() {
        let case = case().unwrap();
        for role in [Role::Client, Role::Server] {
            let heard = case.heard(role).concat();
            let mut channel = fed(role, &heard, usize::MAX);
            match role {
                Role::Client => assert_eq!(case.client(&mut channel).unwrap(), WIDTHS[2]),
                Role::Server => case.server(&mut channel).unwrap(),
            }
        }
        for frame in 0..case.heard(Role::Server).len() as u8 {
            checked_network(&[1, frame, 7, 0, 0, 1]);
        }
    }
}
