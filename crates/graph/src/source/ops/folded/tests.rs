//! Errors over all arguments, and which form is chosen.

use super::*;

const COUNT: usize = 10_000;

fn smooth(function: Function) -> Smooth {
    Smooth { function, alpha: 1.0, beta: 0.0 }
}

/// The scales that suit a function at so many bits, and its integer function.
fn chosen(smooth: Smooth, bits: u32, side: f64, count: usize) -> ([f64; 2], Fold) {
    let results = [-side, side].map(|x| smooth.at(x));
    let lowest = (-100..0).map(|x| smooth.at(f64::from(x) / 100.0 * side)).fold(0.0, f64::min);
    let levels = if lowest < 0.0 { levels(bits) / 2.0 } else { levels(bits) };
    let to = results[1].max(-results[0]) / levels;
    let (scales, reach) = match smooth.form().unwrap() {
        Form::Bump(_) => ([to; 2], smooth.reach((-side, side), to)),
        Form::Odd => {
            let reach = smooth.function.flat_beyond(1.0 / levels).unwrap_or(side).min(side);
            ([2.0 * reach / f64::from((1u32 << bits) - 1), to], reach)
        }
        Form::Whole => ([2.0 * side / f64::from((1u32 << bits) - 1), to], side),
    };
    let magnitude = Smooth::magnitude(reach, scales[0]).unwrap();
    (scales, smooth.folded((magnitude, side), scales, count).unwrap())
}

#[test]
fn errors_are_within_the_bound_at_all_arguments() {
    let functions = [
        (Function::Silu, 10.0),
        (Function::HardSwish, 10.0),
        (Function::Mish, 10.0),
        (Function::Softplus, 10.0),
        (Function::Elu, 10.0),
        (Function::Sigmoid, 10.0),
        (Function::Tanh, 5.0),
        (Function::Erf, 4.0),
        (Function::Softsign, 12.0),
        (Function::Gelu, 10.0),
        (Function::Exp, 3.0),
        (Function::Sin, 4.0),
        (Function::Cos, 4.0),
    ];
    for (function, side) in functions {
        for bits in [6, 8, 10, 12] {
            let ([from, to], fold) = chosen(smooth(function), bits, side, COUNT);
            let edge = 1i64 << fold.magnitude;
            let last = (edge - 1) as f64;
            let error = |x: i64| {
                // Results saturate above, where calibration saw nothing.
                let clamped = (x as f64).min(last).max(if fold.relu { -1e9 } else { -last - 1.0 });
                (fold.clear(x) as f64 - smooth(function).tamed(clamped * from, side) / to).abs()
            };
            let worst = (-3 * edge..3 * edge).map(error).fold(0.0, f64::max);
            let form = match &fold.curve {
                Curve::Whole(entries) => format!("table of {}", entries.len()),
                Curve::Lines(lines) => {
                    format!("{} pieces of {} bits", 1 << lines.pieces, lines.drop)
                }
            };
            assert!(worst <= BOUNDS[2], "{function:?} {bits}: {worst} of {form}");
        }
    }
}

#[test]
fn bumps_near_zero_are_seen_however_wide_the_range_is() {
    for function in [Function::Gelu, Function::HardSwish, Function::Mish, Function::Softplus] {
        for side in [1.0, 4.0, 12.1, 30.0, 120.0] {
            for bits in [8, 10, 12] {
                let ([from, to], fold) = chosen(smooth(function), bits, side, COUNT);
                let edge = 1i64 << fold.magnitude;
                let at = |x: i64| smooth(function).at(x as f64 * from) / to;
                let errors = (-edge..edge).map(|x| (fold.clear(x) as f64 - at(x)).abs());
                let worst = errors.fold(0.0, f64::max);
                let bound = BOUNDS[if bits < 12 { 2 } else { 3 }];
                assert!(worst <= bound, "{function:?} {bits} {side}: {worst}");
            }
        }
    }
}

#[test]
fn short_arguments_take_a_table_and_long_ones_lines() {
    let curve = |bits, count| chosen(smooth(Function::Sigmoid), bits, 10.0, count).1.curve;
    assert!(matches!(curve(8, 500), Curve::Whole(_)));
    assert!(matches!(curve(8, 1_000_000), Curve::Whole(_)));
    assert!(matches!(curve(12, 1_000_000), Curve::Lines(_)));
    let worth = |count| {
        let (_, fold) = chosen(smooth(Function::Sigmoid), 8, 10.0, count);
        Smooth::is_worth(&fold, [8, 10], false, count)
    };
    assert!(!worth(10) && worth(512) && worth(1_000_000));
}

#[test]
fn narrow_ranges_need_less_than_the_whole_bend() {
    let silu = smooth(Function::Silu);
    assert!((5.0..8.0).contains(&silu.reach((-50.0, 1.0), 0.04)));
    assert!((silu.reach((-0.5, 0.5), 0.004) - 0.5).abs() < 1e-9);
    assert!((silu.reach((-50.0, 20.0), 0.1) - 20.0).abs() < 1e-9);
    assert_eq!(Smooth::magnitude(1.0, 1e-9), None);
    assert_eq!(Smooth::magnitude(1.0, 1e9), Some(2));
}

#[test]
fn an_exponential_goes_on_as_its_tangent() {
    let exp = smooth(Function::Exp);
    assert_eq!([exp.tamed(-7.0, 0.0), exp.tamed(0.0, 0.0)], [(-7f64).exp(), 1.0]);
    assert_eq!(exp.tamed(2.0, 0.0), 3.0);
    let fold = exp.folded((9, 0.5), [10.0 / 512.0, 1.0 / 256.0], COUNT).unwrap();
    assert!((fold.clear(-100) - ((-1.953f64).exp() * 256.0).round() as i64).abs() <= 1);
    // Waves that pieces do not follow stay with a table.
    assert!(smooth(Function::Sin).folded((11, 900.0), [0.45, 1.0 / 2048.0], COUNT).is_none());
}

#[test]
fn other_functions_do_not_fold() {
    let smooth = |function, alpha| Smooth { function, alpha, beta: 0.0 };
    for function in [Function::Sqrt, Function::Log, Function::Round, Function::LeakyRelu] {
        assert!(smooth(function, 1.0).form().is_none());
    }
    assert!(smooth(Function::Silu, -1.0).form().is_none());
    assert!(smooth(Function::Elu, 0.0).form().is_none());
}
