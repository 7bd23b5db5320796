//! Decision trees.

use graph::ops::Paths;
use ring::word::{mask, signed};

use super::{COUNT, Protocol};
use crate::boolean::compare::Radix;
use crate::share::Share;
use crate::trees::{Shape, Staged, Trees};

const BITS: u32 = 12;
const OUT_BITS: u32 = 9;

#[allow(clippy::unwrap_used)]
pub(super) fn protocols() -> Vec<Protocol> {
    vec![
        trees("trees, complete", Paths::Complete(2), 1),
        trees("trees, a single test", Paths::Complete(1), 1),
        trees("trees, tables", Paths::Table(2), 1),
        trees("trees, tests of two comparisons", Paths::Complete(2), 2),
        staged("trees, complete in stages", Paths::Complete(2), 1),
        staged("trees, stages of two comparisons a test", Paths::Complete(2), 2),
    ]
}

/// As many trees as the values have room for, whose tests are compared at once.
#[allow(clippy::unwrap_used)]
fn trees(name: &'static str, paths: Paths, comparisons: usize) -> Protocol {
    let (shape, count) = sized(paths, comparisons);
    of(name, shape, Trees::new(count, shape, Radix::Four).unwrap())
}

/// As many trees, whose tests are compared in stages.
#[allow(clippy::unwrap_used)]
fn staged(name: &'static str, paths: Paths, comparisons: usize) -> Protocol {
    let (shape, count) = sized(paths, comparisons);
    of(name, shape, Staged::new(count, shape, Radix::Four).unwrap())
}

fn sized(paths: Paths, comparisons: usize) -> (Shape, usize) {
    let shape = Shape { paths, values: 1, comparisons, bits: BITS, out_bits: OUT_BITS };
    (shape, COUNT / shape.inputs())
}

/// Trees whose leaves are the server's words.
fn of(name: &'static str, shape: Shape, plan: impl crate::Protocol) -> Protocol {
    let (paths, comparisons, each) = (shape.paths, shape.comparisons, shape.inputs());
    let count = COUNT / each;
    let price = (plan.demand(), plan.cost());
    let run = move |channel: &mut wire::Channel, x: &Share, ots| {
        plan.run(channel, &[x.gather(0..count * each)], ots)
    };
    let ideal = move |client: &Share, server: &Share| {
        let rows = client.words().chunks(each).zip(server.words().chunks(each)).take(count);
        let reached = rows.map(|(client, server)| {
            let y = |test: usize| signed((client[test] + server[test]) & mask(BITS), BITS);
            let compared = |test: usize| test * comparisons..(test + 1) * comparisons;
            let right = |test: usize| compared(test).filter(|at| y(*at) >= 0).count() % 2 == 1;
            server[shape.tests() + paths.leaf(right)]
        });
        reached.collect()
    };
    Protocol::new(name, BITS, price, run, Box::new(ideal))
}
