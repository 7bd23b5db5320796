//! Bodies of the fuzz targets of this crate. Each panics when an invariant breaks.

use wire::Message;

use crate::hello::{Accept, Hello, MOST_INPUTS, Offer};
use crate::plan::Plan;

/// The first message: what decodes has exactly one encoding.
///
/// # Panics
/// When it has another.
pub fn hello(data: &[u8]) {
    if let Ok(hello) = Hello::decode(data, &()) {
        assert_eq!(encoded(&hello), data);
    }
}

/// The client's consent: what decodes is in range and has exactly one encoding.
///
/// # Panics
/// When it is not or has another.
pub fn accept(data: &[u8]) {
    if let Ok(accept) = Accept::decode(data, &()) {
        assert!((1..=MOST_INPUTS).contains(&accept.inputs));
        assert_eq!(encoded(&accept), data);
    }
}

/// The server's offer, up to the client's own plan and its price: what is planned is
/// offered again under one digest, and errors are fit for a terminal.
///
/// # Panics
/// When they are not.
pub fn offer(data: &[u8]) {
    let Ok(offer) = Offer::decode(data, &()) else { return };
    match Plan::from_offer(&offer.json) {
        Ok(plan) => {
            let again = Plan::from_offer(&plan.offer());
            assert!(matches!(again, Ok(again) if again.digest() == plan.digest()));
            assert!(plan.cost(1).rounds > 0);
        }
        Err(error) => {
            let text = error.to_string();
            assert!(text.len() < 4096 && !text.contains(char::is_control), "{text:?}");
        }
    }
}

fn encoded<M: Message>(message: &M) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use ring::mutate::replay;

    const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

    #[test]
    fn decoders_stand_their_corpus_and_mutations_of_it() {
        replay(&format!("{CORPUS}/runtime_hello"), 100_000, super::hello);
        replay(&format!("{CORPUS}/runtime_accept"), 100_000, super::accept);
        replay(&format!("{CORPUS}/runtime_offer"), 100_000, super::offer);
    }
}
