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
        trees("trees, complete", Paths::Complete(2)),
        trees("trees, a single test", Paths::Complete(1)),
        trees("trees, tables", Paths::Table(2)),
        staged("trees, complete in stages", Paths::Complete(2)),
    ]
}

/// As many trees as the values have room for, whose tests are compared at once.
#[allow(clippy::unwrap_used)]
fn trees(name: &'static str, paths: Paths) -> Protocol {
    let (shape, count) = sized(paths);
    of(name, shape, Trees::new(count, shape, Radix::Four).unwrap())
}

/// As many trees, whose tests are compared in stages.
#[allow(clippy::unwrap_used)]
fn staged(name: &'static str, paths: Paths) -> Protocol {
    let (shape, count) = sized(paths);
    of(name, shape, Staged::new(count, shape, Radix::Four).unwrap())
}

fn sized(paths: Paths) -> (Shape, usize) {
    let shape = Shape { paths, values: 1, bits: BITS, out_bits: OUT_BITS };
    (shape, COUNT / shape.inputs())
}

/// Trees whose leaves are the server's words.
fn of(name: &'static str, shape: Shape, plan: impl crate::Protocol) -> Protocol {
    let (paths, each) = (shape.paths, shape.inputs());
    let count = COUNT / each;
    let price = (plan.demand(), plan.cost());
    let run = move |channel: &mut wire::Channel, x: &Share, ots| {
        plan.run(channel, &[x.gather(0..count * each)], ots)
    };
    let ideal = move |client: &Share, server: &Share| {
        let rows = client.words().chunks(each).zip(server.words().chunks(each)).take(count);
        let reached = rows.map(|(client, server)| {
            let y = |test: usize| signed((client[test] + server[test]) & mask(BITS), BITS);
            server[paths.tests() + paths.leaf(|test| y(test) >= 0)]
        });
        reached.collect()
    };
    Protocol::new(name, BITS, price, run, Box::new(ideal))
}
