//! Bodies of the fuzz targets of this crate. Each panics when an invariant breaks.

use std::fmt::Display;

use crate::file::{Entries, decode, encode, examine, seal};
use crate::ir::Graph;
use crate::source::{Floats, Program, Source};

/// A model file, as it is and with a digest that holds, which a mutation almost never keeps: what
/// loads is saved as a file that loads as the same model.
///
/// # Panics
/// When it is not.
pub fn file(data: &[u8]) {
    opened(data);
    let mut sealed = data.to_vec();
    if seal(&mut sealed) {
        opened(&sealed);
    }
}

fn opened(data: &[u8]) {
    let about = examine(&mut &*data, data.len() as u64);
    match decode(data) {
        Ok(model) => {
            let again = encode(&model, &Entries::new()).map(|bytes| decode(&bytes));
            assert!(matches!(again, Ok(Ok(again)) if again == model));
            assert!(matches!(about, Ok(about) if about.holds() && about.graph == model.graph));
        }
        Err(error) => fit_for_a_terminal(&error),
    }
}

/// Writes the digest of its contents into a model file, where it is long enough to have one.
pub fn sealed(mut file: Vec<u8>) -> Vec<u8> {
    seal(&mut file);
    file
}

/// A graph in JSON: what parses is printed as a graph that parses, with one digest.
///
/// # Panics
/// When it is not.
pub fn json(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Graph::from_json(text) {
        Ok(graph) => {
            let again = Graph::from_json(&graph.public_json());
            assert!(matches!(again, Ok(again) if again.public_json() == graph.public_json()));
        }
        Err(error) => fit_for_a_terminal(&error),
    }
}

/// An imported network in JSON, without weights: what parses has shapes or an error.
pub fn source(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(source) = Source::from_json(text) {
        // Either answer is fine; a panic is not.
        let _ = Program { source, floats: Floats::new() }.shapes();
    }
}

fn fit_for_a_terminal(error: &impl Display) {
    let text = error.to_string();
    assert!(text.len() < 4096 && !text.contains(char::is_control), "{text:?}");
}

#[cfg(test)]
mod tests {
    use ring::mutate::replay;

    const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

    #[test]
    fn files_stand_their_corpus() {
        replay(&format!("{CORPUS}/graph_file"), 100_000, super::file);
    }

    #[test]
    fn graphs_stand_their_corpus() {
        replay(&format!("{CORPUS}/graph_json"), 100_000, super::json);
    }

    #[test]
    fn sources_stand_their_corpus() {
        replay(&format!("{CORPUS}/graph_source"), 100_000, super::source);
    }
}
