//! Bodies of the fuzz targets of this crate. Each panics when an invariant breaks.

mod appended;
mod checked;
mod garbled;
mod oblivious;
mod shared;
mod slots;

use std::sync::OnceLock;

use graph::{Conv, Linear, Rounding};
use he::rlwe::{Params, PublicKey};
use ring::{Random, Seed};
use wire::fuzzing::fed;
use wire::{Channel, Error, HEADER_LEN, Message, Packed, Role, Segment, tags};

use crate::linear::coefficient::{Layer, ServerWeights, Worker, server};
use crate::share::Share;

pub use appended::masked_factors;
pub use checked::checked_network;
pub use garbled::garbled_step;
pub use oblivious::ot_corrections;
pub use shared::shared_ciphertexts;
pub use slots::slot_ciphertexts;

/// The client's ciphertexts and the integers of its public key.
type Inputs = Packed<{ tags::COEFFICIENT_INPUTS }>;

/// What a server has before the client speaks.
struct Waiting {
    layer: Layer,
    weights: ServerWeights,
}

fn waiting() -> Option<&'static Waiting> {
    static WAITING: OnceLock<Option<Waiting>> = OnceLock::new();
    let prepare = || {
        let conv = Conv {
            in_channels: 2,
            in_height: 4,
            in_width: 4,
            out_channels: 3,
            kernel: [3, 3],
            stride: [1, 1],
            padding: [1; 4],
            dilation: [1, 1],
            groups: 1,
        };
        let linear = Linear {
            conv,
            weight_bits: 8,
            accumulator_bits: 20,
            shift: 8,
            rounding: Rounding::Exact,
            addend: None,
            choice: None,
            square_bits: None,
        };
        let layer = Layer::new(&linear, 12, 1).ok()?;
        let weight: Vec<i32> = (0..54).map(|w| w * 4 - 127).collect();
        let weights = ServerWeights::new(&layer, &weight, &[1, -1, 100], &mut 0).ok()?;
        Some(Waiting { layer, weights })
    };
    WAITING.get_or_init(prepare).as_ref()
}

/// The server of a linear layer on ciphertexts and a public key of any content. An even
/// first byte: the rest is the client's stream as it stands, which ends in an error. An
/// odd one: the rest is repeated until it fills key and ciphertexts, which are answered.
///
/// # Panics
/// When they are not, or when more is asked for than the layer has.
pub fn ciphertexts(data: &[u8]) {
    let Some(Waiting { layer, weights }) = waiting() else { return };
    let params = layer.params();
    let seed = Segment { count: 2, bits: 64 };
    let body = Segment { count: params.degree(), bits: params.modulus_bits() };
    let layout = vec![seed, body];
    let len = Inputs::body_len(&layout);
    let Some(Stream { filled, bytes }) = Stream::of(data, Inputs::TAG, len) else { return };
    let Some(key) = key(data.get(1..).unwrap_or_default(), params) else { return };

    let mut channel = channel(&bytes, len);
    let x = Share::new(vec![5; layer.inputs()], layer.plain_bits());
    let worker = &mut Worker { rng: &mut Random::seeded(1), threads: 1 };
    match server(&mut channel, layer, &key, weights, &x, None, worker) {
        Ok(share) => assert_eq!(share.words().len(), layer.outputs()),
        Err(error) => {
            assert!(!filled, "a ciphertext of the right length was refused: {error}");
            assert!(matches!(error, Error::Peer { .. } | Error::Transport(_)), "{error}");
        }
    }
}

/// The client's stream that a target feeds its server.
struct Stream {
    /// Whether it is the frame that the server waits for.
    filled: bool,
    bytes: Vec<u8>,
}

impl Stream {
    /// The stream of a server that waits for one frame of this tag, with a body of `len` bytes. After an even
    /// first byte the rest of `data` is the stream as it stands; after an odd one it is repeated
    /// until it fills the frame. `None` for no data.
    fn of(data: &[u8], tag: u8, len: u64) -> Option<Self> {
        let (kind, rest) = data.split_first()?;
        let filled = kind & 1 == 1 && !rest.is_empty();
        let bytes = if filled {
            let body = rest.iter().copied().cycle().take(usize::try_from(len).unwrap_or_default());
            let word = u32::try_from(len).unwrap_or_default().to_le_bytes();
            [tag].into_iter().chain(word).chain(body).collect()
        } else {
            rest.to_vec()
        };
        Some(Self { filled, bytes })
    }
}

/// A server's channel on which the client sends `bytes`; at most a header or a body of `len`
/// bytes may be asked for at a time.
fn channel(bytes: &[u8], len: u64) -> Channel {
    fed(Role::Server, bytes, usize::try_from(len.max(HEADER_LEN)).unwrap_or(usize::MAX))
}

/// A public key of integers from `bytes`; some are refused.
fn key(bytes: &[u8], params: Params) -> Option<PublicKey> {
    let mask = u64::MAX >> (64 - params.modulus_bits());
    // Some lengths leave the integers as they are, so that most do not fit.
    let kept = if bytes.len() % 8 == 7 { u64::MAX } else { mask };
    let mut bytes = bytes.iter().copied().cycle();
    let mut word = || u64::from_le_bytes(std::array::from_fn(|_| bytes.next().unwrap_or(0)));
    let body = (0..params.degree()).map(|_| word() & kept).collect();
    PublicKey::new(params, &Seed([7; 16]), body).ok()
}

#[cfg(test)]
mod tests {
    use ring::mutate::replay;

    use super::*;

    const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

    #[test]
    fn ciphertexts_stand_their_corpus() {
        replay(&format!("{CORPUS}/mpc_ciphertexts"), 2_000, ciphertexts);
    }

    /// The target reaches what it is for.
    #[test]
    #[allow(clippy::unwrap_used)]
    fn one_frame_is_what_the_layer_waits_for() {
        let Waiting { layer, .. } = waiting().unwrap();
        assert_eq!(
            layer.cost().client_to_server,
            HEADER_LEN + {
                let params = layer.params();
                16 + params.degree() as u64 * u64::from(params.modulus_bits()) / 8
            }
        );
        assert!(key(&[1, 2, 3], layer.params()).is_some());
        assert!(key(&[255; 7], layer.params()).is_none());
    }
}
