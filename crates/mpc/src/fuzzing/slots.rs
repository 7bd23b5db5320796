//! The server of a layer on packed slots.

use std::sync::OnceLock;

use graph::Conv;
use he::bfv::SecretKey;
use ring::{Random, Seed};
use wire::{Error, Message, Packed, Segment, tags};

use super::{Stream, channel};
use crate::linear::slots::{Layer, Protocol, Server, ServerKeys, ServerWeights, Worker, server};

/// The client's ciphertexts.
type Inputs = Packed<{ tags::SLOT_INPUTS }>;

/// What a server has before the client speaks.
struct Waiting {
    layer: Layer,
    weights: ServerWeights,
    keys: ServerKeys,
}

fn waiting() -> Option<&'static Waiting> {
    static WAITING: OnceLock<Option<Waiting>> = OnceLock::new();
    let prepare = || {
        let layer = Layer::new(&Conv::fully_connected(3, 2), Protocol::Gala, 8, 20, None).ok()?;
        let weights = ServerWeights::new(&layer, &[1, -2, 3, 4, -5, 6], &[7, -8], &mut 0).ok()?;
        let mut rng = Random::seeded(1);
        let key = SecretKey::generate(layer.params(), &mut rng).ok()?;
        let seed = Seed([7; 16]);
        let public = key.public_key(&seed, &mut rng).ok()?;
        let rotations = key.rotation_keys(&layer.rotations(), false, &seed, &mut rng).ok()?;
        Some(Waiting { layer, weights, keys: ServerKeys { public, rotations } })
    };
    WAITING.get_or_init(prepare).as_ref()
}

/// The only frame of the layer: a seed, and residues of each prime.
fn layout(layer: &Layer) -> Vec<Segment> {
    let params = layer.params();
    let body = params.widths().into_iter();
    let body = body.map(|bits| Segment { count: params.degree(), bits });
    std::iter::once(Segment { count: 2, bits: 64 }).chain(body).collect()
}

/// The server on ciphertexts of any content. An even first byte: the rest is the client's
/// stream as it stands, which ends in an error. An odd one: the rest is repeated until it
/// fills the ciphertext, which is answered unless a residue is too large.
///
/// # Panics
/// When it is not, or when more is asked for than the layer has.
pub fn slot_ciphertexts(data: &[u8]) {
    let Some(Waiting { layer, weights, keys }) = waiting() else { return };
    let len = Inputs::body_len(&layout(layer));
    let Some(Stream { filled, bytes }) = Stream::of(data, Inputs::TAG, len) else { return };
    let mut channel = channel(&bytes, len);
    let x = vec![5; layer.inputs()];
    let worker = &mut Worker { rng: &mut Random::seeded(1), threads: 1 };
    match server(&mut channel, &Server { layer, keys, weights }, &x, worker) {
        Ok(share) => {
            assert_eq!(share.len(), layer.outputs());
            assert!(share.iter().all(|word| *word < layer.prime()));
        }
        Err(Error::Peer { .. }) => {}
        Err(error) => assert!(!filled && matches!(error, Error::Transport(_)), "{error}"),
    }
}

#[cfg(test)]
mod tests {
    use ring::mutate::replay;
    use wire::HEADER_LEN;

    use super::*;

    const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

    #[test]
    fn slot_ciphertexts_stand_their_corpus() {
        replay(&format!("{CORPUS}/mpc_slots"), 500, slot_ciphertexts);
    }

    /// The target reaches what it is for.
    #[test]
    #[allow(clippy::unwrap_used)]
    fn one_frame_is_what_the_layer_waits_for() {
        let Waiting { layer, .. } = waiting().unwrap();
        let up = layer.cost().client_to_server;
        assert_eq!(up, HEADER_LEN + Inputs::body_len(&layout(layer)));
    }
}
