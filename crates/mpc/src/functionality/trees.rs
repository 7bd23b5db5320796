//! Decision trees.

use graph::ops::Paths;
use ring::word::{mask, signed};

use super::{COUNT, Protocol};
use crate::boolean::compare::Radix;
use crate::protocol::Protocol as _;
use crate::share::Share;
use crate::trees::{Shape, Trees};

const BITS: u32 = 12;
const OUT_BITS: u32 = 9;

#[allow(clippy::unwrap_used)]
pub(super) fn protocols() -> Vec<Protocol> {
    vec![
        trees("trees, complete", Paths::Complete(2), 1),
        trees("trees, a single test", Paths::Complete(1), 1),
        trees("trees, tables", Paths::Table(2), 1),
        trees("trees, tests of two comparisons", Paths::Complete(2), 2),
    ]
}

/// As many trees as the values have room for; their leaves are the server's words.
#[allow(clippy::unwrap_used)]
fn trees(name: &'static str, paths: Paths, comparisons: usize) -> Protocol {
    let shape = Shape { paths, values: 1, comparisons, bits: BITS, out_bits: OUT_BITS };
    let (each, count) = (shape.inputs(), COUNT / shape.inputs());
    let plan = Trees::new(count, shape, Radix::Four).unwrap();
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
