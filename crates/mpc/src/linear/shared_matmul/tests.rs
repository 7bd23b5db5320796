//! Every shape against plain integers.

use graph::Rounding;
use he::rlwe::{MOST_LEVELS, Params, SecretKey, TABLE, UnfoldKey, noise};
use ring::word::{mask, reduce, signed};
use ring::{Random, Seed};
use wire::Error;
use wire::testing::{Outcome, run_tampered};

use super::term::pairs;
use super::*;
use crate::linear::testing::{Tampered, pinned, same_bytes, tampering_is_noticed_or_harmless};
use crate::testing::split;

/// What kind of layer.
#[derive(Clone, Copy, Debug)]
struct Kind {
    left: Left,
    rounding: Rounding,
    folded: bool,
}

const fn kind(left: Left, rounding: Rounding, folded: bool) -> Kind {
    Kind { left, rounding, folded }
}

const KINDS: [Kind; 8] = [
    kind(Left::Shared, Rounding::Stochastic, false),
    kind(Left::Shared, Rounding::Exact, false),
    kind(Left::Client, Rounding::Stochastic, false),
    kind(Left::Client, Rounding::Exact, false),
    kind(Left::Shared, Rounding::Stochastic, true),
    kind(Left::Shared, Rounding::Exact, true),
    kind(Left::Client, Rounding::Stochastic, true),
    kind(Left::Client, Rounding::Exact, true),
];

impl Kind {
    /// Exact folded products leave less room.
    fn shift(self) -> u32 {
        match (self.rounding, self.folded) {
            (Rounding::Exact, true) => SHIFT - 4,
            _ => SHIFT,
        }
    }

    fn plan(self, shape: Shape, shift: u32, out: u32) -> Result<Layer> {
        let make = if self.folded { Layer::folded } else { Layer::new };
        make(shape, self.left, shift, out, self.rounding)
    }
}

struct Case {
    layer: Layer,
    a: (Share, Share),
    b: (Share, Share),
    want: Vec<i64>,
    threads: usize,
}

/// How a case's values are drawn.
#[derive(Clone, Copy, PartialEq)]
enum Values {
    Random,
    /// All at their largest magnitude.
    Extreme,
    /// The server's shares too.
    ExtremeShares,
}

const SHIFT: u32 = 9;
const OUT: u32 = 12;

/// Products of values whose sums fit OUT + shift bits.
fn case(shape: Shape, kind: Kind, values: Values, rng: &mut Random) -> Case {
    let shift = kind.shift();
    let (batch, plain) = (shape.batch, OUT + shift);
    let layer = kind.plan(shape, shift, OUT).unwrap_or_else(|e| panic!("{kind:?}: {e}"));
    assert_eq!(layer.levels() > 0, kind.folded);
    let bits = (plain - 1 - shape.inner.next_power_of_two().ilog2()) / 2;
    let mut draw = |count: usize| -> Vec<i64> {
        let words = rng.uniform(count, bits).into_iter();
        words
            .map(|word| match values {
                Values::Random => signed(word, bits),
                _ => 1 - (1 << (bits - 1)),
            })
            .collect()
    };
    let (x, y) = (draw(batch * shape.left()), draw(batch * shape.right()));
    let want = multiply(shape, &x, &y);
    let mut share = |values_of: &[i64], known: bool| {
        if known {
            let zeros = vec![0; values_of.len()];
            let words = values_of.iter().map(|v| *v as u64).collect();
            return (Share::new(words, plain), Share::new(zeros, plain));
        }
        let (client, server) = split(rng, values_of, plain + 3);
        if values != Values::ExtremeShares {
            return (client, server);
        }
        let least = 1u64 << (plain - 1);
        let words = values_of.iter().map(|v| (*v as u64).wrapping_sub(least)).collect();
        (Share::new(words, plain), Share::new(vec![least; values_of.len()], plain))
    };
    let (a, b) = (share(&x, kind.left == Left::Client), share(&y, false));
    Case { layer, a, b, want, threads: 1 }
}

fn multiply(shape: Shape, x: &[i64], y: &[i64]) -> Vec<i64> {
    let mut all = Vec::new();
    for (x, y) in x.chunks(shape.left()).zip(y.chunks(shape.right())) {
        all.extend(pairs(shape.rows, shape.columns).map(|(i, j)| {
            let terms = (0..shape.inner).map(|l| x[i * shape.inner + l] * y[l * shape.columns + j]);
            terms.sum::<i64>()
        }));
    }
    all
}

type Run = (Outcome<Result<Share>>, Outcome<Result<Share>>);

fn run(case: &Case, tamper: Tampered) -> Run {
    let degree = case.layer.params().degree();
    let most = TABLE.iter().find(|(known, _)| *known == degree).unwrap().1;
    let mut rng = Random::seeded(77);
    let key = SecretKey::generate(Params::new(degree, most).unwrap(), &mut rng).unwrap();
    let public = key.public_key(&Seed([9; 16]), &mut rng).unwrap();
    let bodies = key.unfold_bodies(MOST_LEVELS, &Seed([8; 16]), &mut rng).unwrap();
    let unfold = UnfoldKey::new(key.params(), MOST_LEVELS, &Seed([8; 16]), &bodies).unwrap();
    let keys = ServerKeys { public: &public, unfold: Some(&unfold) };
    let Case { layer, a, b, threads, .. } = case;
    run_tampered(
        tamper,
        |ch| {
            let mut rng = Random::seeded(78);
            let mut worker = Worker { rng: &mut rng, threads: *threads };
            client(ch, layer, &key, &a.0, &b.0, &mut worker)
        },
        |ch| {
            let mut rng = Random::seeded(79);
            let mut worker = Worker { rng: &mut rng, threads: *threads };
            server(ch, layer, keys, &a.1, &b.1, &mut worker)
        },
    )
}

fn check(case: &Case) {
    let (ours, theirs) = run(case, None);
    assert_eq!(ours.cost, case.layer.cost());
    assert_eq!(theirs.cost, case.layer.cost());
    let got = Share::reconstruct(&ours.value.unwrap(), &theirs.value.unwrap());
    assert_eq!(got.len(), case.want.len());
    let mut total = 0.0;
    for (got, want) in got.iter().zip(&case.want) {
        match case.layer.precision.rounding {
            Rounding::Exact => {
                let low = reduce(*got - 16 * want, case.layer.result_bits());
                assert!((1..16).contains(&low), "{got} for 16 * {want}");
            }
            Rounding::Stochastic => {
                let error = *got as f64 - *want as f64 / f64::from(1 << SHIFT);
                let bound = noise::stochastic_error(case.layer.params.degree());
                assert!(error.abs() < bound, "{got} for {want}");
                total += error;
            }
        }
    }
    if case.layer.precision.rounding == Rounding::Stochastic && got.len() > 1000 {
        let mean = total / got.len() as f64;
        assert!(mean.abs() < 4.0 * 0.6 / (got.len() as f64).sqrt() + 0.004, "mean error {mean}");
    }
}

fn shape(batch: usize, rows: usize, inner: usize, columns: usize) -> Shape {
    Shape { batch, rows, inner, columns }
}

#[test]
fn every_shape_multiplies_and_costs_what_is_said() {
    let mut rng = Random::seeded(1);
    let shapes = [
        shape(2, 33, 5, 7),
        shape(1, 1, 32, 48),
        shape(3, 1, 1, 1),
        shape(2, 32, 32, 32),
        shape(1, 40, 64, 40),
        shape(1, 3, 128, 70),
        shape(1, 130, 2, 131),
    ];
    for shape in shapes {
        for kind in KINDS {
            check(&case(shape, kind, Values::Random, &mut rng));
        }
    }
}

#[test]
fn extremes_stay_inside_the_bounds() {
    let mut rng = Random::seeded(2);
    for values in [Values::Extreme, Values::ExtremeShares] {
        for kind in KINDS {
            check(&case(shape(1, 20, 64, 24), kind, values, &mut rng));
        }
    }
}

#[test]
fn threads_change_no_byte() {
    let mut rng = Random::seeded(3);
    for kind in KINDS {
        let mut case = case(shape(2, 33, 17, 20), kind, Values::Random, &mut rng);
        let first = run(&case, None);
        for threads in [2, 5] {
            case.threads = threads;
            same_bytes(&first, run(&case, None));
        }
    }
}

#[test]
fn the_clients_share_is_uniform() {
    let mut rng = Random::seeded(4);
    for kind in [KINDS[0], KINDS[4]] {
        let case = case(shape(2, 32, 32, 32), kind, Values::Extreme, &mut rng);
        let (ours, _) = run(&case, None);
        let share = ours.value.unwrap();
        let mut bins = [0f64; 16];
        for word in share.words() {
            bins[(word >> (share.bits() - 4)) as usize] += 1.0;
        }
        let expected = share.len() as f64 / 16.0;
        let statistic: f64 = bins.iter().map(|n| (n - expected).powi(2) / expected).sum();
        assert!(statistic < 50.0, "chi-square {statistic} of 15 degrees of freedom");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let huge = usize::MAX;
    for shape in [
        shape(huge, huge, huge, huge),
        shape(1, huge, 1, 1),
        shape(1 << 30, 1, 1, 1),
        shape(1 << 12, 1 << 10, 1 << 10, 1 << 10),
        shape(0, 1, 1, 1),
        shape(1, 0, 4, 4),
        shape(1, 4, 0, 4),
        shape(1, 4, 4, 0),
    ] {
        for kind in KINDS {
            assert!(matches!(kind.plan(shape, 8, 8), Err(Error::Misuse { .. })), "{shape:?}");
        }
    }
    for (shift, out) in [(0, 0), (8, 0), (20, 13), (u32::MAX, 8), (16, 14)] {
        for kind in [KINDS[1], KINDS[5]] {
            assert!(kind.plan(shape(1, 8, 8, 8), shift, out).is_err(), "{shift} {out}");
        }
    }
    let mut rng = Random::seeded(5);
    let mut case = case(shape(1, 4, 4, 4), KINDS[0], Values::Random, &mut rng);
    case.a.0 = Share::new(vec![0; 15], 30);
    assert!(matches!(check_only(&case), Err(Error::Misuse { .. })));
    case.a.0 = Share::new(vec![0; 16], 20);
    assert!(matches!(check_only(&case), Err(Error::Misuse { .. })));
}

fn check_only(case: &Case) -> Result<()> {
    super::check(&case.layer, &case.a.0, &case.b.0)
}

#[test]
fn a_folded_layer_wants_its_keys() {
    let mut rng = Random::seeded(10);
    let case = case(shape(1, 4, 4, 4), KINDS[4], Values::Random, &mut rng);
    let key = SecretKey::generate(case.layer.params(), &mut rng).unwrap();
    let public = key.public_key(&Seed([9; 16]), &mut rng).unwrap();
    assert!(case.layer.check_keys(&ServerKeys::from(&public)).is_err());
    for (levels, fits) in [(case.layer.levels() - 1, false), (case.layer.levels(), true)] {
        let bodies = key.unfold_bodies(levels, &Seed([8; 16]), &mut rng).unwrap();
        let unfold = UnfoldKey::new(key.params(), levels, &Seed([8; 16]), &bodies).unwrap();
        let keys = ServerKeys { public: &public, unfold: Some(&unfold) };
        assert_eq!(case.layer.check_keys(&keys).is_ok(), fits);
    }
}

#[test]
fn attention_takes_the_bytes_of_its_page() {
    let plans = [
        (shape(12, 128, 64, 128), [14_764_107, 8_773_677], [1_254_154, 3_244_052]),
        (shape(12, 128, 128, 64), [14_764_107, 8_515_629], [2_409_999, 2_703_375]),
        (shape(12, 32, 32, 32), [1_205_770, 1_064_458], [313_541, 337_925]),
    ];
    for (shape, plain, folded) in plans {
        for (kind, want) in [(KINDS[0], plain), (KINDS[4], folded)] {
            let cost = kind.plan(shape, 11, 13).unwrap().cost();
            assert_eq!([cost.client_to_server, cost.server_to_client], want, "{shape:?}");
        }
    }
}

#[test]
fn tampered_frames_are_noticed_or_harmless() {
    let mut rng = Random::seeded(6);
    for kind in [KINDS[1], KINDS[5]] {
        let case = case(shape(1, 6, 6, 6), kind, Values::Random, &mut rng);
        tampering_is_noticed_or_harmless(|tamper| run(&case, tamper));
    }
}

#[test]
fn products_in_the_clear_wrap_around() {
    let shape = shape(2, 3, 4, 5);
    let mut rng = Random::seeded(7);
    let (a, b) = (rng.uniform(2 * shape.left(), 64), rng.uniform(2 * shape.right(), 64));
    let wide = |words: &[u64]| words.iter().map(|w| i64::from(*w as u16)).collect::<Vec<_>>();
    let got = clear::products(shape, &a, &b);
    let want = multiply(shape, &wide(&a), &wide(&b));
    assert!(got.iter().zip(want).all(|(got, want)| got & mask(16) == want as u64 & mask(16)));
}

#[test]
fn transcripts_are_pinned() {
    let mut rng = Random::seeded(8);
    let names = ["shared", "shared exact", "shared left", "shared left exact"];
    let names = names.map(String::from).into_iter();
    let folded = names.clone().map(|name| format!("{name} folded"));
    for (name, kind) in names.chain(folded).zip(KINDS) {
        let case = case(shape(2, 6, 5, 7), kind, Values::Random, &mut rng);
        pinned(&name, &run(&case, None));
    }
}

/// Time of each side and bytes at the shapes of attention, for people:
/// `cargo test --release -p tacit-mpc shared::tests::attention -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
#[allow(clippy::print_stdout)]
fn attention() {
    let mut rng = Random::seeded(9);
    let shapes = [(128, 64, 128), (128, 128, 64), (32, 32, 32)];
    for ((rows, inner, columns), kind) in
        shapes.into_iter().flat_map(|shape| [(shape, KINDS[0]), (shape, KINDS[4])])
    {
        let shape = shape(12, rows, inner, columns);
        let layer = kind.plan(shape, 11, 13).unwrap();
        let share = |count: usize, rng: &mut Random| Share::new(rng.uniform(count, 24), 24);
        let a = (share(12 * shape.left(), &mut rng), share(12 * shape.left(), &mut rng));
        let b = (share(12 * shape.right(), &mut rng), share(12 * shape.right(), &mut rng));
        let case = Case { layer, a, b, want: Vec::new(), threads: 1 };
        let start = std::time::Instant::now();
        let (ours, _) = run(&case, None);
        let Case { layer, .. } = case;
        println!("{shape:?}: {}, {:?}, {:?}", layer.describe(), ours.cost, start.elapsed());
    }
}
