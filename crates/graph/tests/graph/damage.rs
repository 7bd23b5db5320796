//! Damaged `.tacit` files: every flipped bit, cut and appended byte is found, by the digest of the
//! whole file.

use crate::files::{bytes_of, load_bytes, tiny};
use crate::lowering::some_models;
use sha2::{Digest, Sha256};
use std::ops::Range;
use tacit_graph::file::Entries;
use tacit_graph::fuzzing::sealed;
use tacit_graph::{Error, inspect, load, load_committed, save, save_with};
use tempfile::tempdir;

/// The words of the error with which a file is refused.
fn refused(bytes: &[u8]) -> String {
    match load_bytes(bytes) {
        Err(Error::Corrupt(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// Whether an error names the file, says that it is damaged, how that was seen and what to do.
fn tells(why: &str) -> bool {
    ["model.tacit: damaged: its digest should be ", " and is ", "compile the model again"]
        .iter()
        .all(|part| why.contains(part))
}

/// The parts of a file, by name.
fn regions(bytes: &[u8]) -> Vec<(&'static str, Range<usize>)> {
    let data = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let at = |text: &str| bytes.windows(text.len()).position(|w| w == text.as_bytes()).unwrap();
    let (digits, format) = (at("digest\":\"") + 9, at("\"format\""));
    let (graph, made, tensors) = (at("\"graph\""), at("\"made_by\""), at("\"}") + 2);
    let biases = data + bytes[data..].len() / 4;
    vec![
        ("length", 0..8),
        ("beginning", 8..digits),
        ("digits", digits..digits + 64),
        ("format", format..graph),
        ("graph", graph..made),
        ("entries", made..tensors),
        ("tensors and padding", tensors..data),
        ("first quarter of the numbers", data..biases),
        ("other numbers", biases..bytes.len()),
    ]
}

#[test]
fn every_flipped_bit_is_refused_by_the_digest() {
    let bytes = bytes_of(&tiny());
    let regions = regions(&bytes);
    let mut flips = vec![0; regions.len()];
    for (at, bit) in (0..bytes.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << bit;
        let why = refused(&flipped);
        assert!(tells(&why), "byte {at}, bit {bit}: {why}");
        assert!(!why.contains(char::is_control), "byte {at}, bit {bit}: {why:?}");
        for ((_, region), flips) in regions.iter().zip(&mut flips) {
            *flips += usize::from(region.contains(&at));
        }
    }
    assert!(8 * bytes.len() > 2_000);
    for ((name, region), flips) in regions.iter().zip(flips) {
        assert!(flips > 0 && flips == 8 * region.len(), "{name}: {flips} flips");
    }
}

#[test]
fn changed_bytes_all_over_larger_files_are_refused() {
    for model in some_models(4) {
        let bytes = bytes_of(&model);
        let step = (bytes.len() / 2_000).max(1);
        for at in (0..bytes.len()).step_by(step) {
            for change in [0x20, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                let why = refused(&changed);
                assert!(tells(&why), "byte {at}: {why}");
            }
        }
    }
}

#[test]
fn both_digests_are_told() {
    let bytes = bytes_of(&tiny());
    let digits = |bytes: &[u8]| String::from_utf8(bytes[35..99].to_vec()).unwrap();
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    let why = refused(&changed);
    let found = digits(&sealed(changed));
    let expected = format!("should be {}... and is {}...;", &digits(&bytes)[..12], &found[..12]);
    assert!(why.contains(&expected), "{why}");
}

#[test]
fn every_truncation_and_extension_is_corrupt() {
    let bytes = bytes_of(&tiny());
    for length in 0..bytes.len() {
        let why = refused(&bytes[..length]);
        assert!(why.contains("model.tacit: damaged"), "{length}: {why}");
        assert_eq!(tells(&why), length >= 99, "{length}: {why}");
    }
    for more in [vec![0], vec![b' '; 8], vec![0; 100_000], bytes.clone()] {
        let why = refused(&[&bytes[..], &more].concat());
        assert!(tells(&why), "{why}");
    }
    // A file that was cut by someone who knows the format.
    let why = refused(&sealed(bytes[..bytes.len() - 4].to_vec()));
    assert!(why.contains("its length is not what its header says"), "{why}");
}

#[test]
fn parts_that_change_places_are_noticed() {
    let bytes = bytes_of(&tiny());
    let end = bytes.len();
    let mut turned = bytes.clone();
    turned[end - 8..].rotate_left(4);
    assert_ne!(turned, bytes);
    assert!(tells(&refused(&turned)));
    let mut zeros = bytes;
    zeros[8..].fill(0);
    assert!(refused(&zeros).contains("not a Tacit model"));
}

#[test]
fn files_without_a_digest_are_to_be_compiled_again() {
    let bytes = bytes_of(&tiny());
    let data = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = std::str::from_utf8(&bytes[8..data]).unwrap();
    let without = |version: &str| {
        let digest = format!("\"digest\":\"{}\",", &header[27..91]);
        let header = header.replace(&digest, "").replace("\"version\":\"2\"", version);
        let length = (header.len() as u64).to_le_bytes();
        refused(&[&length, header.as_bytes(), &bytes[data..]].concat())
    };
    let old = without("\"version\":\"1\"");
    assert!(old.contains("file version 1") && old.contains("compile the model again"), "{old}");
    assert!(without("\"version\":\"2\"").contains("has no digest in its place"));
}

#[test]
fn a_file_has_a_commitment_of_its_own() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("model.tacit");
    let salt = |digits: String| [("salt".to_string(), digits)].into();
    let written = |entries: &Entries| {
        save_with(&tiny(), entries, &path).unwrap();
        let (model, commitment) = load_committed(&path).unwrap();
        assert_eq!((model, inspect(&path).unwrap().commitment), (tiny(), commitment));
        commitment.unwrap()
    };
    let [first, second] = [written(&Entries::new()), written(&Entries::new())];
    assert_ne!(first, second, "the salt is the same twice");
    let [first, second] = [written(&salt("0a".repeat(32))), written(&salt("0a".repeat(32)))];
    assert_eq!(first, second, "nothing but the salt is drawn");
    let digest = inspect(&path).unwrap().digest;
    let text = format!("tacit model v1{}{digest}", "0a".repeat(32));
    assert_eq!(first, <[u8; 32]>::from(Sha256::digest(text)), "documented in another way");
    for bad in ["", "0A", &"0A".repeat(32), &"0g".repeat(32)] {
        let refused = save_with(&tiny(), &salt(bad.into()), &path);
        assert!(matches!(refused, Err(Error::Misuse(_))), "{bad}");
    }
    let edited = |from: &str, to: &str| {
        let mut bytes = bytes_of(&tiny());
        let at = bytes.windows(from.len()).position(|w| w == from.as_bytes()).unwrap();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        std::fs::write(&path, sealed(bytes)).unwrap();
        load_committed(&path)
    };
    assert_eq!(edited("\"salt\"", "\"note\"").unwrap().1, None, "of a file without a salt");
    let refused = edited("5a5a5a", "5A5a5a").unwrap_err().to_string();
    assert!(refused.contains("has a salt that is none"), "{refused}");
}

#[test]
fn entries_are_kept_covered_and_not_those_of_the_file() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("model.tacit");
    let entries = [("aaa", "1"), ("source", "ü \"net\".onnx")];
    let entries = entries.map(|(name, text)| (name.to_string(), text.to_string())).into();
    save_with(&tiny(), &entries, &path).unwrap();
    assert_eq!(load(&path).unwrap(), tiny());
    let about = inspect(&path).unwrap();
    assert!(about.holds() && about.entries == entries && about.graph == tiny().graph);
    assert_eq!((about.version.as_str(), about.parameters), ("2", 8));
    assert_eq!(about.bytes, std::fs::metadata(&path).unwrap().len());
    assert_eq!(about.made_by, concat!("tacit ", env!("CARGO_PKG_VERSION")));
    for own in ["digest", "format", "graph", "made_by", "version"] {
        let entries = [(own.to_string(), String::new())].into();
        assert!(matches!(save_with(&tiny(), &entries, &path), Err(Error::Misuse(_))), "{own}");
    }
}

#[test]
fn damaged_files_are_inspected_as_far_as_they_can_be_read() {
    let directory = tempdir().unwrap();
    let path = directory.path().join("model.tacit");
    save(&tiny(), &path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let mut seen = [0; 2];
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        match inspect(&path) {
            Ok(about) => {
                assert!(!about.holds(), "byte {at}");
                seen[0] += 1;
            }
            Err(error) => {
                assert!(tells(&error.to_string()), "byte {at}: {error}");
                seen[1] += 1;
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}
