//! The registry of tags against the sources and the page that describe it.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use tacit_wire::Role;
use tacit_wire::tags::{self, ALL, Tag};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Path from the root and text of every file in `crates/*/src`, in order.
fn sources() -> Vec<(String, String)> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path().join("src");
        if folder.is_dir() {
            collect(&folder, &mut paths);
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/");
        (name, fs::read_to_string(path).unwrap())
    };
    paths.into_iter().map(read).collect()
}

/// Whether `line` gives a message type the tag.
fn defines(line: &str, tag: &Tag) -> bool {
    let constant = tag.constant;
    let alias = line.contains("type ") && line.contains(&format!("<{{ tags::{constant} }}>"));
    alias || (line.contains("const ") && line.ends_with(&format!("u8 = tags::{constant};")))
}

/// The files that define the body of a message; fuzzing repeats some and does not count.
fn definitions(tag: &Tag, sources: &[(String, String)]) -> Vec<String> {
    let own = ["crates/wire/src/admission.rs", "crates/wire/src/fleet.rs"];
    let counts = |name: &str| {
        own.contains(&name) || !name.contains("fuzzing") && !name.starts_with("crates/wire/")
    };
    let some = sources
        .iter()
        .filter(|(name, text)| counts(name) && text.lines().any(|line| defines(line, tag)));
    some.map(|(name, _)| name.clone()).collect()
}

#[test]
fn numbers_and_names_are_unique() {
    let numbers: HashSet<u8> = ALL.iter().map(|tag| tag.number).collect();
    let names: HashSet<&str> = ALL.iter().map(|tag| tag.name).collect();
    let constants: HashSet<&str> = ALL.iter().map(|tag| tag.constant).collect();
    assert_eq!([numbers.len(), names.len(), constants.len()], [ALL.len(); 3]);
    assert!(ALL.is_sorted_by_key(|tag| tag.number), "the rows are in the order of the numbers");
    assert!(ALL.iter().all(|tag| tags::name(tag.number) == tag.name));
}

#[test]
fn no_tag_is_written_as_a_number() {
    let bare = [
        "TAG: u8 = 0x",
        "Packed<0x",
        "Packed::<0x",
        "Lanes<0x",
        "Lanes::<0x",
        "Bytes<0x",
        "Points<0x",
    ];
    for (name, text) in sources() {
        for (line, number) in text.lines().zip(1..) {
            let found = bare.iter().find(|bare| line.contains(*bare));
            assert!(found.is_none(), "{name}:{number}: take the constant from wire::tags");
        }
    }
}

#[test]
fn every_message_is_defined_in_one_file() {
    let sources = sources();
    for tag in ALL.iter().filter(|tag| tag.number != tags::TESTS) {
        let files = definitions(tag, &sources);
        assert_eq!(files.len(), 1, "{}: {files:?}", tag.constant);
    }
}

#[test]
fn the_page_shows_the_registry() {
    let sources = sources();
    let source = |tag: &Tag| match tag.number {
        tags::TESTS => "crates/wire/src/fuzzing.rs".into(),
        _ => definitions(tag, &sources).join(", "),
    };
    let (wanted, path) = (tags::markdown(source), root().join("docs/reference/wire.md"));
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, &wanted).unwrap();
    }
    let same = fs::read_to_string(&path).is_ok_and(|page| page == wanted);
    assert!(
        same,
        "docs/reference/wire.md is out of date: \
         UPDATE=1 cargo test --release -p tacit-wire --test tags"
    );
}

/// The constant of a row of the table of messages: three columns, the first a constant.
fn row(line: &str) -> Option<&str> {
    let (constant, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
    let upper = constant.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    (upper && rest.matches(" | ").count() == 1).then_some(constant)
}

fn rows(page: &str) -> Vec<&str> {
    page.lines().filter_map(row).collect()
}

/// Whoever adds a message of the client says why it tells nothing of the input.
#[test]
fn the_proof_of_input_privacy_has_every_message_of_the_client() {
    let path = "docs/protocols/input-privacy.md";
    let page = fs::read_to_string(root().join(path)).unwrap();
    let rows = rows(&page);
    let sends = |tag: &&Tag| tag.direction.allows(Role::Client) && !tag.phases.is_empty();
    let wanted: Vec<&str> = ALL.iter().filter(sends).map(|tag| tag.constant).collect();
    for constant in &wanted {
        assert!(
            rows.contains(constant),
            "{path} has no row for {constant}, which a client may send: add \
             \"| `{constant}` | kind | why |\" to its table of messages, the kind being public, setup, \
             ciphertext, masked, garbled or not covered, and see whether the proof's steps and the table \
             of where a client stops hold for it"
        );
    }
    for constant in &rows {
        assert!(
            wanted.contains(constant),
            "{path} has a row for {constant}, which no client sends in a session: take it away"
        );
    }
    assert_eq!(rows.len(), wanted.len(), "{path} has a message twice");
}

/// Every row of the proof names one of the kinds that the page defines.
#[test]
fn every_message_of_the_client_is_of_a_known_kind() {
    let page = fs::read_to_string(root().join("docs/protocols/input-privacy.md")).unwrap();
    let kinds = ["public", "setup", "ciphertext", "masked", "garbled", "not covered"];
    for constant in rows(&page) {
        let start = format!("| `{constant}` | ");
        let line = page.lines().find(|line| line.starts_with(&start)).unwrap();
        let kind = line.strip_prefix(&start).and_then(|rest| rest.split(" | ").next()).unwrap();
        assert!(kinds.contains(&kind), "{constant} is of the kind {kind:?}, not of {kinds:?}");
    }
    for kind in kinds.iter().take(5) {
        assert!(page.contains(&format!("- **{kind}**: ")), "{kind} is not defined");
    }
}
