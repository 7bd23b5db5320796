//! All cases under valgrind. The Makefile installs valgrind where it is missing.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::Path;

use ctgrind::cases;
use ctgrind::valgrind::{Finding, measure};

/// Measures all cases at a level: controls are found, and nothing else is that is not explained.
fn check(level: &str) {
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{level}.log"));
    let report = measure(Path::new(env!("CARGO_BIN_EXE_ctgrind")), level, "", &log).unwrap();
    assert_eq!(report.findings.len(), cases::all().len(), "{level}");
    let failed: Vec<&Finding> = report.findings.iter().filter(|found| !found.passes()).collect();
    assert!(failed.is_empty(), "at level {level}: {failed:#?}, see {}", log.display());
    assert_eq!(report.findings.iter().filter(|found| found.errors > 0).count(), 3, "controls");
}

#[test]
fn portable_code_takes_no_branch_on_secrets() {
    check("portable");
}

#[test]
fn avx2_code_takes_no_branch_on_secrets() {
    check("avx2");
}
