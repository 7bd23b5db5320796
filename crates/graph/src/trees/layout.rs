//! The layout of paths that takes the least time, chosen from sizes that a client learns.

use super::grown::Grown;
use crate::error::{Error, Result};
use crate::ops::trees::{MAX_DEPTH, MAX_TABLE};
use crate::ops::walk::MAX_STEPS;
use crate::ops::{Paths, Walk};

/// Bytes of a comparison of 38 bits, with its correlations and the product that selects.
const TEST: usize = 50;
/// Bytes of a leaf of a complete tree beside its values: a gate and an OT.
const LEAF: usize = 4;
/// Bytes of a slot beside its test and its increments: two keys and places, and an OT.
const SLOT: usize = 40;
/// Bytes that take as long as a level of gates does, at 400 Mbit/s and 20 ms.
const LEVEL: usize = 1 << 20;
/// Bytes of other layouts that are taken rather than a byte of walks: many inputs share their
/// product, and compare trees in stages.
const SHARED: usize = 2;

/// Layouts that a suite has protocols for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layouts {
    /// All of them.
    All,
    /// Tables and complete trees, whose leaf is found from the outcomes of all tests of a tree.
    Shallow,
}

/// Returns the layout of less time, for leaves whose values have so many bits together.
///
/// # Errors
/// [`Error::Unsupported`] for trees that are deeper than every layout holds.
pub(super) fn cheapest(
    name: &str,
    value_bits: usize,
    grown: &[Grown<'_>],
    layouts: Layouts,
) -> Result<Paths> {
    let depth = grown.iter().map(Grown::depth).max().unwrap_or(0).max(1);
    let tests = grown.iter().map(|tree| tree.tests().len()).max().unwrap_or(0).max(1);
    let all = grown.iter().map(|tree| tree.tests().len()).sum();
    let complete = (depth <= MAX_DEPTH as usize).then_some(Paths::Complete(depth as u32));
    let table = (tests <= MAX_TABLE as usize).then_some(Paths::Table(tests as u32));
    let walk = (depth <= MAX_STEPS as usize && layouts == Layouts::All)
        .then(|| Paths::Walk(Walk::padded(grown.len(), all, depth as u32)));
    let test = TEST * grown.iter().map(Grown::comparisons).max().unwrap_or(1);
    let bytes = |paths: Paths| bytes(paths, [grown.len(), value_bits.div_ceil(8)], test);
    let levels = |paths: Paths| if let Paths::Complete(depth) = paths { depth as usize } else { 0 };
    let shallow = [table, complete].into_iter().flatten();
    let shallow = shallow.min_by_key(|paths| bytes(*paths) + levels(*paths) * LEVEL);
    let lean = |paths: &Paths| walk.is_none_or(|walk| bytes(*paths) <= SHARED * bytes(walk));
    shallow.filter(lean).or(walk).ok_or_else(|| {
        let (most, advice) = match layouts {
            Layouts::All => (MAX_STEPS, "train it with max_depth=128 or less"),
            Layouts::Shallow => (
                MAX_DEPTH,
                "train it with max_depth=8 or less, or compile it without --secure-against client",
            ),
        };
        let why = format!("has trees of depth {depth}, at most {most} are run");
        Error::unsupported(name, why, advice)
    })
}

/// Bytes of a run on one row whose tests take so many each.
fn bytes(paths: Paths, [trees, value]: [usize; 2], test: usize) -> usize {
    match paths {
        Paths::Table(_) => trees * (paths.tests() * test + paths.leaves() * value),
        Paths::Complete(_) => trees * (paths.tests() * test + paths.leaves() * (LEAF + value)),
        Paths::Walk(walk) => walk.slots * (test + SLOT + value),
    }
}
