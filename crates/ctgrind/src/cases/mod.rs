//! The cases, group by group.
#![allow(clippy::unwrap_used)]

mod appended;
mod comparison;
mod control;
mod garbled;
mod inputs;
mod lattice;
mod linear;
mod slots;
mod transfer;

use crate::case::Case;

/// All cases.
pub fn all() -> Vec<Case> {
    let groups = [
        control::CASES,
        lattice::CASES,
        slots::CASES,
        transfer::CASES,
        comparison::CASES,
        garbled::CASES,
        linear::CASES,
        appended::CASES,
    ];
    groups.concat()
}

/// Returns the cases whose group and name, with a space between them, contain `filter`.
pub fn matching(filter: &str) -> Vec<Case> {
    let name = |case: &Case| format!("{} {}", case.group, case.name);
    all().into_iter().filter(|case| name(case).contains(filter)).collect()
}
