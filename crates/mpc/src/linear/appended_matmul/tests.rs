//! Sessions of runs against plain integers.

use std::collections::VecDeque;

use he::rlwe::{Params, PublicKey, SecretKey, TABLE, noise};
use ring::word::{mask, signed};
use ring::{Random, Seed};
use wire::testing::run_pair;
use wire::{Channel, Cost, Error, Result};

use super::plan::KEPT_BITS;
use super::*;
use crate::linear::shared_matmul;
use crate::linear::testing::pinned;
use crate::linear::transport::Worker;
use crate::share::Share;
use crate::testing::split;

const SHIFT: u32 = 9;
const OUT: u32 = 12;
const BITS: u32 = OUT + SHIFT;
const RUNS: usize = 3;

/// What the parties hold of both factors in each run, and the results. Runs are prepared when so
/// many are left (`early`), the last ones without others behind them where `ends` says so.
struct Session {
    early: usize,
    ends: bool,
    layer: Layer,
    fixed: Vec<u64>,
    a: Vec<(Share, Share)>,
    b: Vec<(Share, Share)>,
    want: Vec<Vec<i64>>,
}

fn shape(axis: Axis, fixed: usize) -> Shape {
    match axis {
        Axis::Columns => Shape { batch: 2, rows: 3, inner: 4, columns: 5 + fixed, axis, fixed },
        Axis::Inner => Shape { batch: 2, rows: 3, inner: 5 + fixed, columns: 4, axis, fixed },
    }
}

fn values(rng: &mut Random, count: usize) -> Vec<i64> {
    rng.uniform(count, 8).into_iter().map(|word| signed(word, 8)).collect()
}

fn session(shape: Shape, count: usize, rng: &mut Random) -> Session {
    let layer = Layer::new(shape, SHIFT, OUT, RUNS).unwrap();
    let fixed = values(rng, shape.fixed * shape.entry());
    let mut window = vec![0; shape.window() * shape.entry()];
    let (mut a, mut b, mut want) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        window.drain(..shape.entry());
        window.extend(values(rng, shape.entry()));
        let words: Vec<u64> = fixed.iter().chain(&window).map(|value| *value as u64).collect();
        let right: Vec<i64> = draw::laid(&shape, &words).iter().map(|w| *w as i64).collect();
        let left = values(rng, shape.left());
        want.push(multiply(shape, &left, &right));
        a.push(split(rng, &left, BITS + 2));
        b.push(split(rng, &right, BITS));
    }
    let fixed = fixed.iter().map(|value| *value as u64 & mask(BITS)).collect();
    Session { early: 0, ends: false, layer, fixed, a, b, want }
}

impl Session {
    /// The layer as it is prepared behind so many runs.
    fn behind(&self, runs: usize) -> Layer {
        let left = self.a.len().saturating_sub(runs);
        match self.ends && left < RUNS {
            true => self.layer.for_runs(left).unwrap(),
            false => self.layer.clone(),
        }
    }
}

fn multiply(shape: Shape, x: &[i64], y: &[i64]) -> Vec<i64> {
    let mut all = Vec::new();
    let (left, right) = (shape.rows * shape.inner, shape.inner * shape.columns);
    for (x, y) in x.chunks(left).zip(y.chunks(right)) {
        for (i, j) in (0..shape.rows).flat_map(|i| (0..shape.columns).map(move |j| (i, j))) {
            let terms = (0..shape.inner).map(|l| x[i * shape.inner + l] * y[l * shape.columns + j]);
            all.push(terms.sum());
        }
    }
    all
}

fn keys(layer: &Layer) -> (SecretKey, PublicKey) {
    let degree = layer.products().params().degree();
    let most = TABLE.iter().find(|(known, _)| *known == degree).unwrap().1;
    let mut rng = Random::seeded(77);
    let key = SecretKey::generate(Params::new(degree, most).unwrap(), &mut rng).unwrap();
    let public = key.public_key(&Seed([9; 16]), &mut rng).unwrap();
    (key, public)
}

/// This party's share of both.
type Mine = fn(&(Share, Share)) -> &Share;

/// All runs of a session of one party. `prepare` makes the products of the masks.
fn party(
    channel: &mut Channel,
    (session, mine): (&Session, Mine),
    fixed: Option<&[u64]>,
    prepare: impl Fn(&mut Channel, &Layer, &Drawn, &mut Worker<'_>) -> Result<Share>,
) -> Result<Vec<Share>> {
    let mut memory = Memory::default();
    let mut rng = Random::seeded(if fixed.is_some() { 79 } else { 78 });
    let (mut results, mut prepared) = (Vec::new(), VecDeque::new());
    for (a, b) in session.a.iter().zip(&session.b) {
        while prepared.len() <= session.early {
            let layer = session.behind(results.len() + prepared.len());
            let drawn = memory.draw(&layer, fixed, &mut rng)?;
            let worker = &mut Worker { rng: &mut rng, threads: 1 };
            let products = prepare(channel, &layer, &drawn, worker)?;
            prepared.extend(drawn.split(&layer, &products));
        }
        let next: Prepared = prepared.pop_front().unwrap();
        results.push(next.run(channel, &session.layer, &mut memory, mine(a), mine(b))?);
    }
    Ok(results)
}

type Run = (wire::testing::Outcome<Result<Vec<Share>>>, wire::testing::Outcome<Result<Vec<Share>>>);

fn run(session: &Session) -> Run {
    let (key, public) = keys(&session.layer);
    run_pair(
        |channel| {
            party(channel, (session, |pair| &pair.0), None, |channel, layer, drawn, worker| {
                let products = layer.products();
                shared_matmul::client(channel, products, &key, &drawn.a, &drawn.b, worker)
            })
        },
        |channel| {
            let fixed = Some(session.fixed.as_slice());
            party(channel, (session, |pair| &pair.1), fixed, |channel, layer, drawn, worker| {
                let products = layer.products();
                shared_matmul::server(channel, products, &public, &drawn.a, &drawn.b, worker)
            })
        },
    )
}

#[test]
fn sessions_multiply_and_cost_what_is_said() {
    let mut rng = Random::seeded(1);
    let (mut total, mut count) = (0.0, 0.0);
    for axis in [Axis::Inner, Axis::Columns] {
        for fixed in [0, 2] {
            for (length, ends) in [(1, false), (3, false), (11, false), (1, true), (5, true)] {
                let session = session(shape(axis, fixed), length, &mut rng);
                let session = Session { ends, ..session };
                let (ours, theirs) = run(&session);
                let mut cost = Cost::NONE;
                for at in 0..length {
                    if at % RUNS == 0 {
                        cost = cost.then(session.behind(at).products().cost());
                    }
                    cost = cost.then(session.layer.cost());
                }
                assert_eq!([ours.cost, theirs.cost], [cost; 2]);
                let (ours, theirs) = (ours.value.unwrap(), theirs.value.unwrap());
                for ((ours, theirs), want) in ours.iter().zip(&theirs).zip(&session.want) {
                    let got = Share::reconstruct(ours, theirs);
                    assert_eq!(got.len(), want.len());
                    for (got, want) in got.iter().zip(want) {
                        let error = *got as f64 - *want as f64 / f64::from(1 << SHIFT);
                        let degree = session.layer.products().params().degree();
                        assert!(error.abs() < noise::stochastic_error(degree), "{got} {want}");
                        total += error;
                        count += 1.0;
                    }
                }
            }
        }
    }
    let mean: f64 = total / count;
    assert!(mean.abs() < 4.0 * 0.5 / count.sqrt() + 0.004, "mean error {mean} of {count}");
}

#[test]
fn runs_may_be_prepared_while_others_are_left() {
    let mut rng = Random::seeded(5);
    for early in [1, 2, 4] {
        let session = Session { early, ..session(shape(Axis::Columns, 2), 11, &mut rng) };
        let (ours, theirs) = run(&session);
        let (ours, theirs) = (ours.value.unwrap(), theirs.value.unwrap());
        let bound = noise::stochastic_error(session.layer.products().params().degree());
        for ((ours, theirs), want) in ours.iter().zip(&theirs).zip(&session.want) {
            for (got, want) in Share::reconstruct(ours, theirs).iter().zip(want) {
                let error = *got as f64 - *want as f64 / f64::from(1 << SHIFT);
                assert!(error.abs() < bound, "{got} {want}");
            }
        }
    }
}

#[test]
fn fewer_runs_take_less_under_the_same_keys() {
    let shape =
        Shape { batch: 3, rows: 3, inner: 64, columns: 153, axis: Axis::Columns, fixed: 24 };
    let layer = Layer::new(shape, 8, 18, 32).unwrap();
    let mut least = u64::MAX;
    for runs in [31, 16, 8, 4, 2, 1] {
        let fewer = layer.for_runs(runs).unwrap();
        let (all, some) = (layer.products().params(), fewer.products().params());
        assert_eq!(all.degree(), some.degree());
        assert!(some.modulus_bits() <= all.modulus_bits());
        assert_eq!([fewer.runs(), fewer.outputs()], [runs, layer.outputs()]);
        assert_eq!([fewer.plain_bits, fewer.out_bits], [layer.plain_bits, layer.out_bits]);
        assert_eq!(fewer.cost(), layer.cost());
        assert!(fewer.products().failure() <= layer.failure(), "{runs} runs");
        let bytes = fewer.products().cost().bytes();
        assert!(bytes < least, "{runs} runs take {bytes} bytes");
        least = bytes;
    }
    assert!(least * 8 < layer.products().cost().bytes());
    // Sums over entries are in blocks of other sizes for few runs, with more noise.
    let summed = Shape { inner: 153, columns: 64, axis: Axis::Inner, ..shape };
    let layer = Layer::new(summed, 9, 13, 32).unwrap();
    assert!(layer.for_runs(16).unwrap().products().failure() > layer.products().failure());
    assert!(layer.products().failure() < layer.failure() && layer.failure() < 1e-90);
}

#[test]
fn bounds_of_errors_leave_room_for_all_roundings() {
    for (degree, _) in TABLE {
        let bound = noise::stochastic_error(degree);
        let kept = f64::from(1 << KEPT_BITS);
        assert!(1.0 + (bound + 1.0) / kept < bound, "{degree}");
    }
}

#[test]
fn what_both_learn_is_masked_anew_by_each_party() {
    let mut rng = Random::seeded(2);
    let session = session(shape(Axis::Columns, 1), 6, &mut rng);
    let draw = |seed| {
        let (mut memory, mut rng) = (Memory::default(), Random::seeded(seed));
        let first = memory.draw(&session.layer, None, &mut rng).unwrap();
        let kept = memory.masks.to_vec();
        let second = memory.draw(&session.layer, None, &mut rng).unwrap();
        (first, second, kept, memory.masks.to_vec())
    };
    let (first, second, kept, after) = draw(3);
    // Masks of left factors are new, those of entries move with their entries.
    assert_ne!(first.a.words(), second.a.words());
    let each = session.layer.shape.entry();
    let past = (session.layer.shape.window() - 1) * each;
    assert_eq!(kept[kept.len() - past..], after[each..each + past]);
    assert_ne!(kept[kept.len() - each..], after[after.len() - each..]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let good = shape(Axis::Inner, 2);
    let huge = usize::MAX;
    for (shape, shift, out, runs) in [
        (good, SHIFT, OUT, 0),
        (good, SHIFT, OUT, huge),
        (good, 2, OUT, RUNS),
        (good, SHIFT, u32::MAX, RUNS),
        (good, 30, OUT, RUNS),
        (Shape { fixed: good.inner, ..good }, SHIFT, OUT, RUNS),
        (Shape { fixed: huge, ..good }, SHIFT, OUT, RUNS),
        (Shape { rows: huge, ..good }, SHIFT, OUT, RUNS),
        (Shape { rows: 0, ..good }, SHIFT, OUT, RUNS),
        (Shape { inner: huge, ..good }, SHIFT, OUT, RUNS),
    ] {
        assert!(matches!(Layer::new(shape, shift, out, runs), Err(Error::Misuse { .. })));
    }
    let layer = Layer::new(good, SHIFT, OUT, RUNS).unwrap();
    for runs in [0, huge] {
        assert!(matches!(layer.for_runs(runs), Err(Error::Misuse { .. })));
    }
    let fixed = Some([0; 3].as_slice());
    let drawn = Memory::default().draw(&layer, fixed, &mut Random::seeded(4));
    assert!(matches!(drawn, Err(Error::Internal(_))));
}

#[test]
fn transcripts_are_pinned() {
    let mut rng = Random::seeded(8);
    let session = session(shape(Axis::Inner, 2), 4, &mut rng);
    pinned("appended inner", &run(&session));
}
