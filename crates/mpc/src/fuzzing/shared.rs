//! The server of a product of two shared matrices.

use std::sync::OnceLock;

use graph::Rounding;
use he::rlwe::{PublicKey, SecretKey};
use ring::{Random, Seed};
use wire::{Error, Message, Packed, Segment, tags};

use super::{Stream, channel};
use crate::linear::coefficient::Worker;
use crate::linear::shared_matmul::{Layer, Left, Shape, server};
use crate::share::Share;

/// The client's ciphertexts.
type Inputs = Packed<{ tags::SHARED_INPUTS }>;

/// Both factors, one ciphertext each.
const CIPHERTEXTS: usize = 2;
const SHAPE: Shape = Shape { batch: 1, rows: 2, inner: 3, columns: 2 };

/// What a server has before the client speaks.
struct Waiting {
    layer: Layer,
    public: PublicKey,
}

fn waiting() -> Option<&'static Waiting> {
    static WAITING: OnceLock<Option<Waiting>> = OnceLock::new();
    let prepare = || {
        let layer = Layer::new(SHAPE, Left::Shared, 9, 12, Rounding::Stochastic).ok()?;
        let mut rng = Random::seeded(1);
        let key = SecretKey::generate(layer.params(), &mut rng).ok()?;
        let public = key.public_key(&Seed([7; 16]), &mut rng).ok()?;
        Some(Waiting { layer, public })
    };
    WAITING.get_or_init(prepare).as_ref()
}

/// The only frame of the layer: a seed and a body of each ciphertext.
fn layout(layer: &Layer) -> Vec<Segment> {
    let params = layer.params();
    let each = [(2, 64), (params.degree(), params.modulus_bits())];
    let each = each.map(|(count, bits)| Segment { count, bits });
    std::iter::repeat_n(each, CIPHERTEXTS).flatten().collect()
}

/// The server on ciphertexts of any content. An even first byte: the rest is the client's
/// stream as it stands, which ends in an error. An odd one: the rest is repeated until it
/// fills the ciphertexts, which are answered.
///
/// # Panics
/// When they are not, or when more is asked for than the layer has.
pub fn shared_ciphertexts(data: &[u8]) {
    let Some(Waiting { layer, public }) = waiting() else { return };
    let len = Inputs::body_len(&layout(layer));
    let Some(Stream { filled, bytes }) = Stream::of(data, Inputs::TAG, len) else { return };
    let mut channel = channel(&bytes, len);
    let share = |count| Share::new(vec![5; count], layer.plain_bits());
    let (a, b) = (share(SHAPE.rows * SHAPE.inner), share(SHAPE.inner * SHAPE.columns));
    let worker = &mut Worker { rng: &mut Random::seeded(1), threads: 1 };
    match server(&mut channel, layer, public, &a, &b, worker) {
        Ok(share) => assert_eq!(share.len(), layer.outputs()),
        Err(Error::Peer { .. }) => assert!(!filled, "every body of a power of two is one"),
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
    fn shared_ciphertexts_stand_their_corpus() {
        replay(&format!("{CORPUS}/mpc_shared"), 500, shared_ciphertexts);
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
