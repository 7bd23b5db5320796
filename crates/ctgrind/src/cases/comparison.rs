//! Protocols on shares, both ends: comparisons and what is made of them, tables, products, and the
//! opening of a result.

use graph::functions;
use graph::functions::curve::{Curve, Numbers};
use graph::functions::fold::Argument;
use graph::keys::key;
use graph::ops::{Paths, Walk};
use mpc::argmax::Argmax;
use mpc::compare::{self, Comparison, Radix};
use mpc::extend::{Extend, Sign};
use mpc::lookup::{self, Lookup};
use mpc::maximum::{Maximum, Tournament};
use mpc::multiply::known::Known;
use mpc::multiply::{Factor, Multiply};
use mpc::open;
use mpc::reduce::Reduce;
use mpc::relu::Relu;
use mpc::transformer::fold::Fold;
use mpc::transformer::gelu::Gelu;
use mpc::transformer::layernorm::LayerNorm;
use mpc::transformer::softmax::{Distance, Softmax};
use mpc::trees::{Shape, Trees};
use mpc::truncate::Truncate;
use mpc::{Protocol, Share};
use wire::Role;

use super::inputs::{correlations, share};
use crate::case::Case;
use crate::run::{End, Run};

pub(super) const CASES: &[Case] = &[
    Case::new("comparison", "millionaires, digits of 2 bits", |run| compared(run, Radix::Four)),
    Case::new("comparison", "millionaires, digits of 4 bits", |run| compared(run, Radix::Sixteen)),
    Case::new("comparison", "millionaires, chained digits", |run| compared(run, Radix::Chain)),
    Case::new("comparison", "millionaires, carries", |run| compared(run, Radix::Ripple)),
    Case::new("comparison", "ReLU that saturates, carries", |run| {
        both(run, &Relu::new(COUNT, 16, Some(8), 24, Radix::Ripple).unwrap(), &[16]);
    }),
    Case::new("comparison", "smooth function, carries", |run| {
        let entries = (0..128).map(|z| (z / 9) % 8).collect();
        let curve = Curve::of(&Numbers::Table(entries)).unwrap();
        let function = functions::Fold::new(7, Argument::Even, [true, true], 0, curve).unwrap();
        both(run, &Fold::new(COUNT, 12, &function, 12, Radix::Ripple).unwrap(), &[12]);
    }),
    Case::new("comparison", "ReLU that saturates, chained digits", |run| {
        both(run, &Relu::new(COUNT, 16, Some(8), 24, Radix::Chain).unwrap(), &[16]);
    }),
    Case::new("comparison", "ReLU after a layer on a mask", |run| {
        both(run, &Relu::on_mask(COUNT, 16, Some(8), 24).unwrap(), &[16]);
    }),
    Case::new("comparison", "ReLU", |run| {
        both(run, &Relu::new(COUNT, 16, None, 16, Radix::Four).unwrap(), &[16]);
    }),
    Case::new("comparison", "ReLU that saturates and extends", |run| {
        both(run, &Relu::new(COUNT, 16, Some(8), 24, Radix::Sixteen).unwrap(), &[16]);
    }),
    Case::new("comparison", "maximum of windows of 4", |run| {
        let windows: Vec<Vec<usize>> =
            (0..COUNT / 4).map(|i| (4 * i..4 * i + 4).collect()).collect();
        let tournament = Tournament::new(COUNT, &windows).unwrap();
        both(run, &Maximum::new(tournament, 12, None, Radix::Four).unwrap(), &[12]);
    }),
    Case::new("comparison", "argmax of 10", |run| {
        both(run, &Argmax::new(COUNT / 10, 10, 16, Radix::Four).unwrap(), &[16]);
    }),
    Case::new("comparison", "exact truncation", |run| {
        both(run, &Truncate::new(COUNT, 24, 12, 12, Radix::Four).unwrap(), &[24]);
    }),
    Case::new("comparison", "exact truncation, a message each way", |run| {
        both(run, &Reduce::new(COUNT, 24, 12, 12).unwrap(), &[24]);
    }),
    Case::new("comparison", "extension", |run| {
        both(run, &Extend::new(COUNT, 8, 16, Sign::Unknown, Radix::Four).unwrap(), &[8]);
    }),
    Case::new("comparison", "product of shares", |run| {
        let factors = [8, 8].map(|bits| Factor { bits, sign: Sign::Unknown });
        both(run, &Multiply::new(COUNT, factors, 16, Radix::Four).unwrap(), &[8, 8]);
    }),
    Case::new("comparison", "product with what the client knows", |run| {
        let shared = Factor { bits: 9, sign: Sign::Spare };
        both(run, &Known::new(COUNT, shared, 6, 16, Radix::Four).unwrap(), &[9, 6]);
        both(run, &Known::new(COUNT, shared, 12, 16, Radix::Four).unwrap(), &[9, 12]);
    }),
    Case::new("comparison", "look-up in a table of 256", looked_up),
    Case::new("comparison", "GELU with its table by a circuit", |run| {
        let function = functions::Gelu::new(6, 0.0625).unwrap();
        both(run, &Gelu::new(COUNT, 12, &function, 16, Radix::Four).unwrap(), &[12]);
    }),
    Case::new("comparison", "GELU whose parts go in turns", |run| {
        let function = functions::Gelu::new(6, 0.0625).unwrap();
        let plan = Gelu::new(COUNT, 12, &function, 16, Radix::Four).unwrap();
        both(run, &plan.in_turns(), &[12]);
    }),
    Case::new("comparison", "GELU after a layer on a mask", |run| {
        let function = functions::Gelu::new(6, 0.0625).unwrap();
        both(run, &Gelu::on_mask(COUNT, 12, &function, 16).unwrap(), &[12]);
    }),
    Case::new("comparison", "smooth function whose choices are made at once", |run| {
        let numbers = Numbers::Table((0..64).map(|z| (63 - z) / 4).collect());
        let curve = Curve::of(&numbers).unwrap();
        let function = functions::Fold::new(6, Argument::Even, [true, true], 0, curve).unwrap();
        let plan = Fold::new(COUNT, 12, &function, 12, Radix::Four).unwrap();
        both(run, &plan.clone().in_turns(), &[12]);
        both(run, &plan.shallow(), &[12]);
    }),
    Case::new("comparison", "layer norm, products of rows among its parts", |run| {
        let calibration = functions::Calibration { least: 2, unit: 16.0 };
        let function = functions::LayerNorm::new(COUNT / 10, 9, calibration, 10).unwrap();
        let plan = LayerNorm::new(10, &function, Radix::Chain).unwrap();
        both(run, &plan.in_turns().unwrap(), &[9]);
    }),
    Case::new("comparison", "GELU of lines with their ends by a circuit", |run| {
        let function = functions::Gelu::new(9, 0.0156).unwrap();
        both(run, &Gelu::new(COUNT, 14, &function, 16, Radix::Four).unwrap(), &[14]);
    }),
    Case::new("comparison", "softmax in few rounds", |run| {
        let function = functions::Softmax::new(12, 9, 0.125, 8).unwrap();
        let plan = Softmax::new(COUNT / 12, &function, Radix::Chain).unwrap();
        both(run, &plan.shallow(Radix::Chain, Distance::Far).unwrap(), &[9]);
    }),
    Case::new("comparison", "softmax in few rounds, to wide results", |run| {
        let function = functions::Softmax::new(12, 9, 0.125, 8).unwrap();
        let plan = Softmax::new(COUNT / 12, &function, Radix::Chain).unwrap();
        both(run, &plan.to_width(24).unwrap().shallow(Radix::Chain, Distance::Far).unwrap(), &[9]);
    }),
    Case::new("comparison", "complete trees", |run| grown(run, Paths::Complete(3), 1)),
    Case::new("comparison", "trees as tables", |run| grown(run, Paths::Table(3), 1)),
    Case::new("comparison", "trees of two comparisons a test", |run| {
        grown(run, Paths::Table(3), 2);
    }),
    Case::new("comparison", "rows of walks through trees", garbled),
    Case::new("comparison", "keys of numbers", |run| {
        let words = run.words(COUNT, 32);
        run.kernel("keys", || {
            words.iter().map(|word| key(f32::from_bits(*word as u32))).sum::<i64>()
        });
    }),
    Case::new("decode", "opening of a result", |run| {
        let end = |end: &mut End| {
            let x = share(end, COUNT, 20);
            end.kernel(|channel| open::to_client(channel, &x).unwrap());
        };
        run.ends(end, end);
    }),
];

const COUNT: usize = 120;

/// Runs both ends of a protocol on shares of the given widths.
fn both(run: &mut Run, plan: &impl Protocol, bits: &[u32]) {
    let end = |end: &mut End| {
        let ots = correlations(end, &plan.demand());
        let shares: Vec<Share> = bits.iter().map(|bits| share(end, COUNT, *bits)).collect();
        end.kernel(|channel| plan.run(channel, &shares, ots).unwrap());
    };
    run.ends(end, end);
}

fn compared(run: &mut Run, radix: Radix) {
    let plan = Comparison::carry(31, radix);
    let end = |end: &mut End| {
        let ots = correlations(end, &plan.demand(COUNT));
        let words = end.run.words(COUNT, 31);
        end.kernel(|channel| {
            let operands = plan.operand(channel.role(), &words);
            compare::run(channel, &plan, &operands, ots).unwrap()
        });
    };
    run.ends(end, end);
}

/// The leaves are the server's secret, and so are its shares of outcomes.
fn grown(run: &mut Run, paths: Paths, comparisons: usize) {
    let shape = Shape { paths, values: 1, comparisons, bits: 16, out_bits: 16 };
    let count = COUNT / 10;
    let plan = Trees::new(count, shape, Radix::Four).unwrap();
    let end = |end: &mut End| {
        let ots = correlations(end, &plan.demand());
        let rows = [share(end, count * shape.inputs(), 16)];
        end.kernel(|channel| plan.run(channel, &rows, ots).unwrap());
    };
    run.ends(end, end);
}

/// Keys, masks, labels and the server's shares of outcomes are secret. Edges are not: the server
/// follows those of its own trees, in an order that is uniform. The client follows its walks.
fn garbled(run: &mut Run) {
    let walk = Walk { trees: 2, slots: 40, depth: 20 };
    let paths = Paths::Walk(walk);
    let shape = Shape { paths, values: 2, comparisons: 1, bits: 16, out_bits: 16 };
    let plan = Trees::new(1, shape, Radix::Four).unwrap();
    // Two chains, of even and of odd slots.
    let next = (2..42).chain(2..42).collect::<Vec<u64>>();
    let end = |end: &mut End| {
        let ots = correlations(end, &plan.demand());
        let increments = end.run.words(4 * walk.slots, 16);
        let fresh = end.run.words(shape.fresh(), 8);
        let keeps = u64::from(end.channel.role() == Role::Server);
        let words = next.iter().copied().chain(increments).chain([0, 1]).chain(fresh);
        let own = words.map(|word| keeps * word);
        let all = end.run.words(walk.slots, 16).into_iter().chain(own).collect();
        let rows = [Share::new(all, 16)];
        end.kernel(|channel| plan.run(channel, &rows, ots).unwrap());
    };
    run.server_end(end, end);
}

/// The table is the server's secret.
fn looked_up(run: &mut Run) {
    let plan = Lookup::new(COUNT, 8, 12).unwrap();
    let end = |end: &mut End| {
        let ots = correlations(end, &plan.demand());
        let x = share(end, COUNT, 8);
        let holds = end.channel.role() == plan.holder();
        let table = if holds { end.run.words(256, 12) } else { Vec::new() };
        end.kernel(|channel| lookup::run(channel, &plan, &x, &table, ots).unwrap());
    };
    run.ends(end, end);
}
