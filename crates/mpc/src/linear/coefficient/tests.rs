//! Every shape against a plain convolution.

mod constant;
mod folded;
mod packings;
mod pinned;

use std::sync::Arc;

use graph::{Conv, Linear, Rounding};
use he::rlwe::{Params, PublicKey, SecretKey, TABLE, UnfoldKey, noise};
use ring::word::{reduce, signed};
use ring::{Random, Seed};
use wire::testing::{Outcome, run_tampered};
use wire::{Meanwhile, Result};

use super::*;
use crate::linear::testing::{
    Tampered, pinned as pin, same_bytes, tampering_is_noticed_or_harmless, uniform_below,
};
use crate::share::Share;
use crate::testing::split;

const WEIGHT_BITS: u32 = 8;

pub(in crate::linear) fn conv(
    channels: [usize; 2],
    side: [usize; 2],
    kernel: usize,
    stride: usize,
    pad: usize,
) -> Conv {
    Conv {
        in_channels: channels[0],
        in_height: side[0],
        in_width: side[1],
        out_channels: channels[1],
        kernel: [kernel; 2],
        stride: [stride; 2],
        padding: [pad; 4],
        dilation: [1, 1],
        groups: 1,
    }
}

pub(in crate::linear) fn clear(conv: &Conv, x: &[i64], weight: &[i32], bias: &[i64]) -> Vec<i64> {
    let (height, width) = (conv.in_height as isize, conv.in_width as isize);
    let mut out = Vec::new();
    for (o, bias) in bias.iter().enumerate() {
        let first = o / (conv.out_channels / conv.groups) * conv.group_channels();
        for i in 0..conv.out_height() {
            for j in 0..conv.out_width() {
                let mut sum = *bias;
                for c in 0..conv.group_channels() {
                    for k in 0..conv.kernel[0] {
                        for l in 0..conv.kernel[1] {
                            let at = |axis: usize, out: usize, tap: usize| {
                                (out * conv.stride[axis] + tap * conv.dilation[axis]) as isize
                                    - conv.padding[axis] as isize
                            };
                            let (row, column) = (at(0, i, k), at(1, j, l));
                            if (0..height).contains(&row) && (0..width).contains(&column) {
                                let from = ((first + c) as isize * height + row) * width + column;
                                let w = ((o * conv.group_channels() + c) * conv.kernel[0] + k)
                                    * conv.kernel[1]
                                    + l;
                                sum += x[from as usize] * i64::from(weight[w]);
                            }
                        }
                    }
                }
                out.push(sum);
            }
        }
    }
    out
}

struct Case {
    linear: Linear,
    layer: Layer,
    weights: Arc<ServerWeights>,
    weight: Vec<i32>,
    bias: Vec<i64>,
    x: (Share, Share),
    addend: Option<(Share, Share)>,
    want: Vec<i64>,
    threads: usize,
}

/// Random 8-bit inputs and weights, all at their extremes with `extreme`, of so many
/// `images`.
fn batch(
    images: usize,
    conv: &Conv,
    rounding: Rounding,
    addend: Option<i64>,
    extreme: bool,
    rng: &mut Random,
) -> Case {
    let per_output = conv.group_channels() * conv.kernel[0] * conv.kernel[1];
    let mut value = |bits: u32| match extreme {
        true => 1 - (1i64 << (bits - 1)),
        false => signed(rng.uniform(1, bits)[0], bits),
    };
    let image = conv.in_channels * conv.in_height * conv.in_width;
    let x: Vec<i64> = (0..images * image)
        .map(|_| value(9).clamp(0, 255).max(if extreme { 255 } else { 0 }))
        .collect();
    let weight: Vec<i32> =
        (0..conv.out_channels * per_output).map(|_| value(WEIGHT_BITS) as i32).collect();
    let bias: Vec<i64> = (0..conv.out_channels).map(|_| value(12)).collect();
    let each = x.chunks_exact(image).flat_map(|x| clear(conv, x, &weight, &bias));
    let mut want: Vec<i64> = each.collect();
    let skip: Vec<i64> = want.iter().map(|_| value(8)).collect();
    if let Some(factor) = addend {
        want.iter_mut().zip(&skip).for_each(|(sum, skip)| *sum += factor * skip);
    }
    let accumulator_bits = 1 + 16 + per_output.next_power_of_two().ilog2() + 1;
    let shift = 9;
    let linear = Linear {
        conv: conv.clone(),
        accumulator_bits,
        weight_bits: WEIGHT_BITS,
        shift,
        rounding,
        addend,
        choice: None,
        square_bits: None,
    };
    let layer = Layer::new(&linear, accumulator_bits - shift, images).unwrap();
    let weights = ServerWeights::new(&layer, &weight, &bias, &mut (1 << 20)).unwrap();
    let weights = Arc::new(weights.keeping(&weight));
    let x = split(rng, &x, accumulator_bits);
    let addend = addend.map(|_| split(rng, &skip, accumulator_bits));
    Case { linear, layer, weights, weight, bias, x, addend, want, threads: 1 }
}

/// The client's keys, those for unfolding where the layer is folded.
fn keys(layer: &Layer, seed: u64) -> (SecretKey, PublicKey, Option<UnfoldKey>) {
    let degree = layer.params().degree();
    let most = TABLE.iter().find(|(known, _)| *known == degree).unwrap().1;
    let (mut rng, params) = (Random::seeded(seed), Params::new(degree, most).unwrap());
    let key = SecretKey::generate(params, &mut rng).unwrap();
    let public = key.public_key(&Seed([9; 16]), &mut rng).unwrap();
    let unfold = (layer.levels() > 0).then(|| {
        let bodies = key.unfold_bodies(layer.levels(), &Seed([8; 16]), &mut rng).unwrap();
        UnfoldKey::new(params, layer.levels(), &Seed([8; 16]), &bodies).unwrap()
    });
    (key, public, unfold)
}

type Both = (Outcome<Result<Share>>, Outcome<Result<Share>>);

fn run(case: &Case, tamper: Tampered) -> Both {
    let (key, public, unfold) = keys(&case.layer, 77);
    let keys = ServerKeys { public: &public, unfold: unfold.as_ref() };
    let addend = case.addend.as_ref();
    run_tampered(
        tamper,
        |ch| {
            let mut rng = Random::seeded(78);
            client(
                ch,
                &case.layer,
                &key,
                &case.x.0,
                addend.map(|a| &a.0),
                &mut Worker { rng: &mut rng, threads: case.threads },
            )
        },
        |ch| {
            let mut rng = Random::seeded(79);
            let addend = addend.map(|a| &a.1);
            server(
                ch,
                &case.layer,
                keys,
                &case.weights,
                &case.x.1,
                addend,
                &mut Worker { rng: &mut rng, threads: case.threads },
            )
        },
    )
}

/// Both phases of a run that was prepared, and what they cost.
fn run_preprocessed(case: &Case) -> Both {
    run_multiplied(case, 0)
}

/// The same, where the server has multiplied so many parts before it answers.
fn run_multiplied(case: &Case, parts: usize) -> Both {
    let (key, public, unfold) = keys(&case.layer, 177);
    let keys = SharedKeys { public: Arc::new(public), unfold: unfold.map(Arc::new) };
    let addend = case.addend.as_ref();
    run_tampered(
        None,
        |ch| {
            let mut rng = Random::seeded(178);
            let worker = &mut Worker { rng: &mut rng, threads: case.threads };
            let asked = ClientAsked::ask(ch, &case.layer, &key, worker)?;
            let preprocessed = asked.finish(ch, &case.layer, &key, worker)?;
            preprocessed.run(ch, &case.layer, &case.x.0, addend.map(|a| &a.0))
        },
        |ch| {
            let mut rng = Random::seeded(179);
            let (layer, weights) = (&case.layer, &case.weights);
            let worker = &mut Worker { rng: &mut rng, threads: case.threads };
            let asked = ServerAsked::read(ch, layer, keys.clone(), Arc::clone(weights), worker)?;
            let work = (0..parts).take_while(|_| asked.products.work()).count();
            assert!(work == parts || !asked.products.work());
            asked.finish(ch)?.run(ch, layer, weights, &case.x.1, addend.map(|a| &a.1))
        },
    )
}

#[test]
fn products_made_in_waits_are_those_made_at_once() {
    let mut rng = Random::seeded(14);
    for shape in [conv([3, 5], [17, 17], 3, 2, 1), conv([40, 12], [14, 14], 1, 1, 0)] {
        let case = batch(2, &shape, Rounding::Stochastic, None, false, &mut rng);
        let (ours, theirs) = run_multiplied(&case, 0);
        for parts in [1, 7, usize::MAX] {
            let (client, server) = run_multiplied(&case, parts);
            assert_eq!(
                (client.transcript, server.transcript),
                (ours.transcript.clone(), theirs.transcript.clone())
            );
        }
        check_result(&case, ours.value.unwrap(), theirs.value.unwrap());
    }
}

fn check(case: &Case) {
    let (ours, theirs) = run(case, None);
    assert_eq!(ours.cost, case.layer.cost());
    check_result(case, ours.value.unwrap(), theirs.value.unwrap());
    let (ours, theirs) = run_preprocessed(case);
    assert_eq!(ours.cost, case.layer.cost().then(case.layer.prepared_cost()));
    check_result(case, ours.value.unwrap(), theirs.value.unwrap());
}

fn check_result(case: &Case, ours: Share, theirs: Share) {
    let got = Share::reconstruct(&ours, &theirs);
    let shift = case.layer.plain_bits - case.layer.out_bits;
    let mut total = 0.0;
    for (got, want) in got.iter().zip(&case.want) {
        match case.layer.rounding {
            Rounding::Exact => {
                let low = reduce(*got - 16 * want, case.layer.result_bits());
                assert!((1..16).contains(&low), "{got} for 16 * {want}");
            }
            Rounding::Stochastic => {
                let error = *got as f64 - *want as f64 / f64::from(1 << shift);
                let coarse = if case.addend.is_some() { 2f64.powi(-8) } else { 0.0 };
                let bound = noise::stochastic_error(case.layer.params.degree()) + coarse;
                assert!(error.abs() < bound, "{got} for {want}");
                total += error;
            }
        }
    }
    if case.layer.rounding == Rounding::Stochastic && got.len() > 1000 {
        let mean = total / got.len() as f64;
        assert!(mean.abs() < 4.0 * 0.6 / (got.len() as f64).sqrt(), "mean error {mean}");
    }
}

pub(in crate::linear) fn shapes() -> Vec<Conv> {
    let grouped = Conv { groups: 2, ..conv([4, 6], [9, 7], 3, 1, 1) };
    let depthwise = Conv { groups: 5, ..conv([5, 5], [8, 8], 3, 2, 1) };
    let dilated = Conv { dilation: [2, 3], ..conv([3, 2], [14, 15], 3, 1, 2) };
    let uneven = Conv { padding: [0, 1, 2, 0], stride: [2, 1], ..conv([2, 3], [11, 9], 3, 1, 0) };
    vec![
        conv([1, 16], [28, 28], 5, 1, 0),
        conv([16, 16], [12, 12], 5, 1, 0),
        conv([3, 4], [17, 13], 3, 1, 1),
        conv([3, 4], [17, 13], 3, 2, 1),
        conv([8, 3], [10, 10], 1, 1, 0),
        conv([8, 3], [10, 11], 1, 2, 0),
        conv([2, 2], [90, 70], 3, 1, 1),
        conv([1, 1], [5, 5], 5, 1, 0),
        Conv::fully_connected(256, 100),
        Conv::fully_connected(100, 10),
        Conv::fully_connected(5000, 3),
        grouped,
        depthwise,
        dilated,
        uneven,
    ]
}

#[test]
fn every_shape_convolves_and_costs_what_is_said() {
    let mut rng = Random::seeded(1);
    for conv in shapes() {
        for rounding in [Rounding::Exact, Rounding::Stochastic] {
            check(&batch(1, &conv, rounding, None, false, &mut rng));
        }
    }
}

#[test]
fn threads_change_no_byte() {
    let mut rng = Random::seeded(3);
    for conv in [conv([20, 9], [40, 40], 3, 1, 1), Conv::fully_connected(5000, 700)] {
        let mut case = batch(1, &conv, Rounding::Stochastic, None, false, &mut rng);
        let first = run(&case, None);
        for threads in [2, 5] {
            case.threads = threads;
            same_bytes(&first, run(&case, None));
        }
    }
}

#[test]
fn batches_convolve_image_by_image() {
    let mut rng = Random::seeded(11);
    for (i, conv) in shapes().iter().enumerate() {
        for images in [3, 4] {
            let (addend, rounding) = match i % 2 {
                0 => (Some(37), Rounding::Exact),
                _ => (None, Rounding::Stochastic),
            };
            check(&batch(images, conv, rounding, addend, false, &mut rng));
        }
    }
}

#[test]
fn addends_join_the_accumulator() {
    let mut rng = Random::seeded(2);
    for rounding in [Rounding::Exact, Rounding::Stochastic] {
        check(&batch(1, &conv([4, 4], [9, 9], 3, 1, 1), rounding, Some(37), false, &mut rng));
    }
}

#[test]
fn extremes_stay_inside_the_bounds() {
    let mut rng = Random::seeded(3);
    for rounding in [Rounding::Exact, Rounding::Stochastic] {
        check(&batch(1, &conv([16, 8], [10, 10], 3, 1, 1), rounding, None, true, &mut rng));
        check(&batch(1, &Conv::fully_connected(784, 50), rounding, None, true, &mut rng));
    }
}

#[test]
fn the_clients_share_is_uniform() {
    let mut rng = Random::seeded(4);
    let case =
        batch(1, &conv([1, 16], [28, 28], 5, 1, 0), Rounding::Stochastic, None, false, &mut rng);
    let (ours, _) = run(&case, None);
    let share = ours.value.unwrap();
    uniform_below(share.words(), 1 << share.bits());
}

#[test]
fn tampered_frames_are_noticed_or_harmless() {
    let mut rng = Random::seeded(5);
    let case = batch(1, &conv([2, 2], [6, 6], 3, 1, 0), Rounding::Exact, None, false, &mut rng);
    tampering_is_noticed_or_harmless(|tamper| run(&case, tamper));
}

#[test]
fn transcripts_are_pinned() {
    let mut rng = Random::seeded(6);
    let case = batch(1, &conv([2, 2], [6, 6], 3, 1, 0), Rounding::Exact, None, false, &mut rng);
    pin("coefficient", &run(&case, None));
    pin("coefficient ahead", &run_preprocessed(&case));
}
