//! Products with a matrix that grows, both ends: masks of several runs, their products, and the runs.

use he::rlwe::{Params, PublicKey, SecretKey, TABLE};
use mpc::Share;
use mpc::linear::appended_matmul::{Axis, Drawn, Layer, Memory, Prepared, Shape};
use mpc::linear::coefficient::Worker;
use mpc::linear::shared_matmul;
use ring::Seed;
use wire::Channel;

use super::inputs::share;
use crate::case::Case;
use crate::run::{End, Run};

pub(super) const CASES: &[Case] = &[
    Case::new("decode", "product with a matrix that grows by rows", |run| {
        product(run, Axis::Inner);
    }),
    Case::new("decode", "product with a matrix that grows by columns", |run| {
        product(run, Axis::Columns);
    }),
];

const FIXED: usize = 2;
const RUNS: usize = 2;
/// More than are prepared together, so that masks of entries move on.
const INPUTS: usize = 3;
const SHIFT: u32 = 9;
const OUT: u32 = 12;
const BITS: u32 = OUT + SHIFT;

fn product(run: &mut Run, axis: Axis) {
    let (inner, columns) = if axis == Axis::Inner { (5, 4) } else { (4, 5) };
    let shape = Shape { batch: 2, rows: 3, inner, columns, axis, fixed: FIXED };
    let layer = &Layer::new(shape, SHIFT, OUT, RUNS).unwrap();
    let products = layer.products();
    let degree = products.params().degree();
    let most = TABLE.iter().find(|(known, _)| *known == degree).unwrap().1;
    let params = || Params::new(degree, most).unwrap();
    let constants = shape.batch * FIXED * inner.min(columns);
    let asks = |end: &mut End| {
        let key = SecretKey::generate(params(), &mut end.dealer).unwrap();
        session(end, (layer, shape), None, |channel, Drawn { a, b, .. }, worker| {
            shared_matmul::client(channel, products, &key, a, b, worker).unwrap()
        });
    };
    let answers = |end: &mut End| {
        let secret = SecretKey::generate(params(), &mut end.dealer).unwrap();
        let mut public =
            secret.public_key(&Seed([9; 16]), &mut end.dealer).unwrap().body().to_vec();
        // The client has sent it.
        end.run.publish(&mut public);
        let public = PublicKey::new(params(), &Seed([9; 16]), public).unwrap();
        let fixed = end.run.words(constants, BITS);
        session(end, (layer, shape), Some(&fixed), |channel, Drawn { a, b, .. }, worker| {
            shared_matmul::server(channel, products, &public, a, b, worker).unwrap()
        });
    };
    run.ends(asks, answers);
}

/// All runs of one end. `multiply` makes its share of the products of masks.
fn session(
    end: &mut End,
    (layer, shape): (&Layer, Shape),
    fixed: Option<&[u64]>,
    multiply: impl Fn(&mut Channel, &Drawn, &mut Worker<'_>) -> Share,
) {
    let (left, right) = (shape.rows * shape.inner, shape.inner * shape.columns);
    let mut factors = || [left, right].map(|count| share(end, shape.batch * count, BITS));
    let inputs: [[Share; 2]; INPUTS] = std::array::from_fn(|_| factors());
    let mut rng = end.run.random();
    end.kernel(|channel| {
        let mut memory = Memory::default();
        let all = inputs.chunks(RUNS).flat_map(|inputs| {
            let drawn = memory.draw(layer, fixed, &mut rng).unwrap();
            let share = multiply(channel, &drawn, &mut Worker { rng: &mut rng, threads: 1 });
            let runs = drawn.split(layer, &share).into_iter().zip(inputs);
            let run = |(run, [a, b]): (Prepared, &[Share; 2])| {
                run.run(channel, layer, &mut memory, a, b).unwrap()
            };
            runs.map(run).collect::<Vec<_>>()
        });
        all.collect::<Vec<_>>()
    });
}
