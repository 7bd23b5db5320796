//! The crates depend on each other only upward: a crate may use those above it in the table
//! here. The layers are documented in docs/architecture.md.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// (crate, crates it may use without the prefix `tacit-`), the lowest layer first.
const ALLOWED: [(&str, &str); 15] = [
    ("tacit-ring", ""),
    ("tacit-he", "ring"),
    ("tacit-wire", "ring"),
    ("tacit-pricing", ""),
    ("tacit-ot", "pricing ring wire"),
    ("tacit-gc", "ot ring wire"),
    ("tacit-graph", "pricing ring"),
    ("tacit-mpc", "gc graph he ot pricing ring wire"),
    ("tacit-runtime", "graph he mpc ot pricing ring wire"),
    ("tacit-lab", "gc graph he mpc ot pricing ring runtime wire"),
    ("tacit-service", "graph ring runtime wire"),
    ("tacit", "graph lab runtime service wire"),
    ("tacit-python", "tacit"),
    ("tacit-web", "graph he ot ring runtime wire"),
    // Part of no release.
    ("tacit-ctgrind", "gc graph he mpc ot ring wire"),
];

#[test]
fn dependencies_point_upward() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(!packages.is_empty());
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let layer = ALLOWED.iter().find(|(known, _)| *known == name);
        assert!(layer.is_some(), "{name} has no layer");
        let allowed = layer.map_or("", |(_, allowed)| *allowed).split_whitespace();
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let ours: BTreeSet<&str> = dependencies
            .filter(|d| !d["path"].is_null() && d["kind"].is_null())
            .map(|d| d["name"].as_str().unwrap())
            .map(|name| name.strip_prefix("tacit-").unwrap_or(name))
            .collect();
        let allowed: BTreeSet<&str> = allowed.collect();
        assert!(ours.is_subset(&allowed), "{name} uses {ours:?}, may use {allowed:?}");
    }
}
