//! The server of a product by OT.

use ot::ideal::deal_pads;
use ring::Random;
use wire::{Error, HEADER_LEN, tags};

use super::{Stream, channel};
use crate::correlations::Correlations;
use crate::linear::ot_matmul::{Product, Weights, ask, server};

/// The client's one frame: the corrections of 18 OTs.
const TAG: u8 = tags::OT_MATMUL_CORRECTIONS;

fn plan() -> Option<Product> {
    Product::new([1, 3, 3, 5], 9, &[1, -2], 0).ok()
}

/// Bytes of the frame's body: three rows of 15 values of 9 bits and of 8.
const BODY: u64 = 3 * (17 + 15);

/// The server on corrections of any content. An even first byte: the rest is the client's
/// stream as it stands. An odd one: the rest is repeated until it fills the one frame, of
/// which everything but set padding is a share.
///
/// # Panics
/// When it is not, or when more is asked for than the plan has.
pub fn ot_corrections(data: &[u8]) {
    let Some(plan) = plan() else { return };
    let Some(Stream { filled, bytes }) = &Stream::of(data, TAG, BODY) else { return };
    let mut channel = channel(bytes, BODY);
    let Ok(weights) = Weights::new(&plan, vec![-1; 9], &[3; 9]) else { return };
    let jobs: Vec<_> = plan.demands().into_iter().flat_map(|demand| demand.client_sends).collect();
    let (_, receiving) = deal_pads(&mut Random::seeded(1), &jobs);
    let ots = Correlations::new(Vec::new(), receiving);
    let Ok(asked) = ask(&mut channel, &plan, 0, Some(&weights), ots) else { return };
    match server(&mut channel, &plan, 0, &weights, asked, 1) {
        Ok(share) => assert_eq!(share.len(), plan.outputs()),
        Err(Error::Peer { .. }) => assert!(!filled || padded(bytes), "a frame of the right size"),
        Err(error) => assert!(!filled && matches!(error, Error::Transport(_)), "{error}"),
    }
}

/// Whether a padding bit is set: 135 bits are a bit less than 17 bytes.
fn padded(stream: &[u8]) -> bool {
    let body = stream.get(HEADER_LEN as usize..).unwrap_or_default();
    body.chunks(17 + 15).any(|row| row.get(16).is_some_and(|last| last >> 7 != 0))
}

#[cfg(test)]
mod tests {
    use ring::mutate::replay;

    use super::*;

    const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

    #[test]
    fn ot_corrections_stand_their_corpus() {
        replay(&format!("{CORPUS}/mpc_ot_products"), 500, ot_corrections);
    }

    /// The target reaches what it is for.
    #[test]
    #[allow(clippy::unwrap_used)]
    fn one_frame_is_what_the_server_waits_for() {
        let cost: wire::Cost = plan().unwrap().costs().into_iter().flatten().collect();
        assert_eq!(cost.client_to_server, HEADER_LEN + BODY);
        ot_corrections(&[1, 0]);
    }
}
