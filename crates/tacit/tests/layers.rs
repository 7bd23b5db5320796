//! The crates depend on each other only upward, as ARCHITECTURE draws them.

#![allow(clippy::unwrap_used, missing_docs)]

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// (crate, crates it may use).
const ALLOWED: [(&str, &[&str]); 10] = [
    ("tacit-ring", &[]),
    ("tacit-wire", &["tacit-ring"]),
    ("tacit-he", &["tacit-ring"]),
    ("tacit-ot", &["tacit-ring", "tacit-wire"]),
    ("tacit-gc", &["tacit-ot", "tacit-ring", "tacit-wire"]),
    ("tacit-graph", &["tacit-ring"]),
    ("tacit-mpc", &["tacit-gc", "tacit-graph", "tacit-he", "tacit-ot", "tacit-ring", "tacit-wire"]),
    (
        "tacit-runtime",
        &["tacit-graph", "tacit-he", "tacit-mpc", "tacit-ot", "tacit-ring", "tacit-wire"],
    ),
    ("tacit", &["tacit-graph", "tacit-runtime", "tacit-wire"]),
    ("tacit-python", &["tacit"]),
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
    assert_eq!(packages.len(), ALLOWED.len());
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let (_, allowed) = ALLOWED.iter().find(|(known, _)| *known == name).unwrap();
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let ours: BTreeSet<&str> = dependencies
            .filter(|d| !d["path"].is_null() && d["kind"].is_null())
            .map(|d| d["name"].as_str().unwrap())
            .collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        assert!(ours.is_subset(&allowed), "{name} uses {ours:?}, may use {allowed:?}");
    }
}
