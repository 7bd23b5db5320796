//! Decision trees.

use graph::ops::{Paths, Pool, Walk};
use ring::word::{mask, signed};

use super::{COUNT, Protocol};
use crate::boolean::compare::Radix;
use crate::protocol::Protocol as _;
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
        walks(),
        staged("trees, complete in stages", Paths::Complete(2), 1),
        staged("trees, stages of two comparisons a test", Paths::Complete(2), 2),
    ]
}

/// Two trees in a pool of eight slots, of which one pads it. The values are those of the tests; what
/// is the server's is fixed.
#[allow(clippy::unwrap_used)]
fn walks() -> Protocol {
    // Slot 5 leads to 2 and then to 6, slot 0 to 4 or 3 and then to 7; slot 1 pads the pool.
    const LEFT: [u64; 8] = [4, 8, 6, 7, 7, 2, 8, 9];
    const RIGHT: [u64; 8] = [3, 8, 6, 7, 7, 2, 8, 9];
    let sizes = Walk { trees: 2, slots: 8, depth: 3 };
    let paths = Paths::Walk(sizes);
    let shape = Shape { paths, values: 1, comparisons: 1, bits: BITS, out_bits: OUT_BITS };
    let plan = Trees::new(1, shape, Radix::Four).unwrap();
    let price = (plan.demand(), plan.cost());
    let increments = (0..16).map(|at| 3 * at + 1);
    let words: Vec<u64> = LEFT.into_iter().chain(RIGHT).chain(increments).chain([5, 0]).collect();
    let fresh = 0..shape.fresh() as u64;
    let own: Vec<u64> = words.iter().copied().chain(fresh).collect();
    let run = move |channel: &mut wire::Channel, x: &Share, ots| {
        let keeps = u64::from(channel.role() == wire::Role::Server);
        let tests = x.words().iter().take(8).copied();
        let all = tests.chain(own.iter().map(|word| keeps * word)).collect();
        plan.run(channel, &[Share::new(all, BITS)], ots)
    };
    let words: Vec<i64> = words.iter().map(|word| *word as i64).collect();
    let ideal = move |client: &Share, server: &Share| {
        let pool = Pool::new(&sizes, 1, &words).unwrap();
        let values = Share::reconstruct(client, server);
        let leaf = |tree| pool.leaf(&sizes, [tree, 1], |slot| values[slot] >= 0)[0] as u64;
        vec![leaf(0), leaf(1)]
    };
    Protocol::new("trees, walks", BITS, price, run, Box::new(ideal))
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
