//! Bodies of the fuzz targets of this crate. Each panics when an invariant breaks.

use std::sync::OnceLock;

use serde_json::{Value, json};
use wire::Message;

use crate::plan::Plan;
use crate::session::expected::MOST_INPUTS;
use crate::session::handshake::{Accept, Offer};
use crate::session::opening::{Hello, OPENING, Visitor};

/// The first message: what decodes has exactly one encoding.
///
/// # Panics
/// When it has another.
pub fn hello(data: &[u8]) {
    if let Ok(hello) = Hello::decode(data, &()) {
        assert_eq!(encoded(&hello), data);
    }
}

/// The opening of a session as it arrives at a server: what is read whole stands in so many bytes, and
/// an answer to what cannot be is a frame.
///
/// # Panics
/// When it is not.
pub fn opening(data: &[u8]) {
    match Visitor::read(data) {
        Ok(Some(visitor)) => {
            assert!(data.len() >= OPENING);
            assert!(visitor.token().is_none_or(|token| token.len() == 64));
        }
        // More must come, and what came is the beginning of one.
        Ok(None) => assert!(data.len() < OPENING),
        Err((answer, error)) => {
            assert!(answer.is_empty() || answer.len() > 5);
            assert!(!error.to_string().chars().any(char::is_control));
        }
    }
}

/// Files of suite `lola` as a server and a client get them; the first byte says which. What
/// decodes has exactly one encoding, and ciphertexts or keys that are none are refused.
///
/// # Panics
/// When it has another.
pub fn lola_files(data: &[u8]) {
    if let Some((kind, body)) = data.split_first() {
        crate::files::inspect(lola_plan(), *kind, body);
    }
}

fn lola_plan() -> &'static Plan {
    static PLAN: OnceLock<Plan> = OnceLock::new();
    let offer = include_str!("../../../fuzz/corpus/runtime_lola_files/plan.json");
    PLAN.get_or_init(|| match Plan::from_offer(offer) {
        Ok(plan) => plan,
        Err(error) => unreachable!("the plan in the corpus: {error}"),
    })
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
    if let Ok(offer) = Offer::decode(data, &()) {
        planned(&offer.json);
    }
}

/// An offer that is well-formed JSON: each seven bytes replace a leaf of a good one,
/// two say which, one the kind of value, four the value.
///
/// # Panics
/// As [`offer`].
pub fn plan(data: &[u8]) {
    let good = include_str!("../../../fuzz/corpus/runtime_offer/exact");
    let Ok(mut offer) = serde_json::from_str::<Value>(good) else { return };
    for [low, high, kind, value @ ..] in data.as_chunks::<7>().0.iter().take(12) {
        let mut leaves = Vec::new();
        collect(&mut offer, &mut leaves);
        let at = usize::from(u16::from_le_bytes([*low, *high])) % leaves.len().max(1);
        let number = u32::from_le_bytes(*value);
        if let Some(leaf) = leaves.into_iter().nth(at) {
            *leaf = match kind % 8 {
                0 => json!(number),
                1 => json!(number % 64),
                2 => json!(1u64 << (number % 64)),
                3 => json!((1u64 << (number % 64)) - 1),
                4 => json!(-i64::from(number)),
                5 => json!(f64::from_bits(u64::from(number) << 32)),
                6 => json!(number & 1 == 1),
                _ => json!(["exact", "stochastic", "label", "\u{1b}[2J"][number as usize % 4]),
            };
        }
    }
    planned(&offer.to_string());
}

fn collect<'a>(value: &'a mut Value, leaves: &mut Vec<&'a mut Value>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| collect(item, leaves)),
        Value::Object(fields) => fields.values_mut().for_each(|field| collect(field, leaves)),
        leaf => leaves.push(leaf),
    }
}

fn planned(json: &str) {
    match Plan::offered(json) {
        Ok((plan, provenance)) => {
            let again = Plan::offered(&provenance.offer(&plan.offer()));
            assert!(matches!(again, Ok((again, same))
                if again.digest() == plan.digest() && same == provenance));
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
#[allow(clippy::unwrap_used)]
mod tests {
    use ring::mutate::replay;

    const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

    #[test]
    fn openings_stand_their_corpus() {
        replay(&format!("{CORPUS}/runtime_opening"), 100_000, super::opening);
    }

    #[test]
    fn hellos_stand_their_corpus() {
        replay(&format!("{CORPUS}/runtime_hello"), 100_000, super::hello);
    }

    #[test]
    fn lola_files_stand_their_corpus_and_bodies_of_their_lengths() {
        replay(&format!("{CORPUS}/runtime_lola_files"), 1000, super::lola_files);
        let lola = super::lola_plan().evaluated().unwrap();
        let bytes = |layouts: Vec<Vec<wire::Segment>>| -> u64 {
            layouts.iter().flatten().map(wire::Segment::len).sum()
        };
        let requests = lola.request_messages().into_iter().flatten().collect();
        let answers = lola.answer_messages().unwrap();
        let all = [lola.key_layouts().unwrap(), requests, answers].map(bytes);
        for (kind, length) in (0u8..).zip(all) {
            for fill in [0, 1, 0x55, 255] {
                let mut data = vec![fill; length as usize + 1];
                data[0] = kind;
                super::lola_files(&data);
            }
        }
    }

    #[test]
    fn acceptances_stand_their_corpus() {
        replay(&format!("{CORPUS}/runtime_accept"), 100_000, super::accept);
    }

    #[test]
    fn offers_stand_their_corpus() {
        replay(&format!("{CORPUS}/runtime_offer"), 100_000, super::offer);
    }

    #[test]
    fn plans_stand_their_corpus() {
        replay(&format!("{CORPUS}/runtime_plan"), 20_000, super::plan);
    }
}
