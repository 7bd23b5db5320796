//! The server of a product with a matrix that grows.

use std::sync::OnceLock;

use ring::Random;
use wire::{Error, Message, Packed, Segment, tags};

use super::{Stream, channel};
use crate::linear::appended_matmul::{Axis, Layer, Memory, Prepared, Shape};
use crate::share::Share;

/// The client's shares of a left factor and of a new entry, less its masks.
type Masked = Packed<{ tags::MASKED_FACTORS }>;

/// The values that cross the wire fill whole bytes, so that every body of the right length is one.
const SHAPE: Shape = Shape { batch: 1, rows: 2, inner: 3, columns: 2, axis: Axis::Inner, fixed: 1 };
const LEFT: usize = SHAPE.rows * SHAPE.inner;
const RIGHT: usize = SHAPE.inner * SHAPE.columns;
const RUNS: usize = 2;
const OUT: u32 = 12;

fn layer() -> Option<&'static Layer> {
    static LAYER: OnceLock<Option<Layer>> = OnceLock::new();
    LAYER.get_or_init(|| Layer::new(SHAPE, 9, OUT, RUNS).ok()).as_ref()
}

/// The only frame of a run.
fn layout(layer: &Layer) -> Vec<Segment> {
    vec![Segment { count: LEFT + SHAPE.columns, bits: layer.products().plain_bits() }]
}

/// What a server has before the client speaks: its memory, and runs on masks that were drawn together.
fn waiting(layer: &Layer) -> Option<(Memory, Vec<Prepared>)> {
    let mut memory = Memory::default();
    let fixed = [3; SHAPE.fixed * SHAPE.columns];
    let drawn = memory.draw(layer, Some(&fixed), &mut Random::seeded(1)).ok()?;
    let products = layer.products();
    let products = Share::new(vec![7; products.outputs()], OUT + 3);
    Some((memory, drawn.split(layer, &products)))
}

/// The server of a run on masked factors of any content. An even first byte: the rest is the
/// client's stream as it stands. An odd one: the rest is repeated until it fills the frame, which is answered. The
/// stream ends there, so that the next run does not get its own.
///
/// # Panics
/// When that is otherwise, or when more is asked for than the layer has.
pub fn masked_factors(data: &[u8]) {
    let Some(layer) = layer() else { return };
    let len = Masked::body_len(&layout(layer));
    let Some(Stream { filled, bytes }) = Stream::of(data, Masked::TAG, len) else { return };
    let Some((mut memory, runs)) = waiting(layer) else { return };
    assert_eq!(runs.len(), RUNS);
    let mut channel = channel(&bytes, len);
    let share = |count| Share::new(vec![5; count], layer.products().plain_bits());
    let (a, b) = (share(LEFT), share(RIGHT));
    for (place, run) in runs.into_iter().enumerate() {
        match run.run(&mut channel, layer, &mut memory, &a, &b) {
            Ok(share) => assert_eq!(share.len(), layer.outputs()),
            Err(Error::Peer { .. }) => return assert!(!filled, "every body of whole bytes is one"),
            Err(error) => {
                assert!(place > 0 || !filled, "{error}");
                return assert!(matches!(error, Error::Transport(_)), "{error}");
            }
        }
    }
    assert!(!filled, "two runs on one frame");
}

#[cfg(test)]
mod tests {
    use ring::mutate::replay;
    use wire::HEADER_LEN;

    use super::*;

    const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

    #[test]
    fn masked_factors_stand_their_corpus() {
        replay(&format!("{CORPUS}/mpc_appended"), 2_000, masked_factors);
    }

    /// The target reaches what it is for.
    #[test]
    #[allow(clippy::unwrap_used)]
    fn one_frame_is_what_a_run_waits_for() {
        let layer = layer().unwrap();
        let len = Masked::body_len(&layout(layer));
        assert_eq!(layer.cost().client_to_server, HEADER_LEN + len);
        assert_eq!(waiting(layer).unwrap().1.len(), RUNS);
    }
}
