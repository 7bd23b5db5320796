//! The JSON of each operator, letter by letter: both parties hash it.

use tacit_graph::functions::curve::Numbers;
use tacit_graph::functions::fold::Argument;
use tacit_graph::functions::newton::Newton;
use tacit_graph::functions::smu::Smooth;
use tacit_graph::ops::{
    Concat, Extend, Fold, Gelu, LayerNorm, Lookup, MaxPool, Offset, Pad, Product, Relu,
    ReluSoftmax, Requantize, Reshape, Smu, Softmax, Sum, SumPool,
};
use tacit_graph::{
    Conv, Embedding, Linear, MatMul, Op, Rounding, View, WeightBits, Window, Winograd,
};

const CONV: &str = r#"{"in_channels":2,"in_height":1,"in_width":1,"out_channels":3,"kernel":[1,1],"stride":[1,1],"padding":[0,0,0,0],"dilation":[1,1],"groups":1}"#;
const WINDOW: &str =
    r#"{"channels":1,"height":4,"width":4,"kernel":[2,2],"stride":[2,2],"padding":[0,0,0,0]}"#;
const SMOOTH: &str = r#"{"bits":9,"scale":0.5,"slope":0.0,"smoothness":0.25,"fraction":2}"#;
const NEWTON: &str = r#"{"iterations":3,"ratio":2,"precision":10}"#;

fn operators() -> Vec<(Op, String)> {
    let conv = || Conv::fully_connected(2, 3);
    let window = || Window {
        channels: 1,
        height: 4,
        width: 4,
        kernel: [2, 2],
        stride: [2, 2],
        padding: [0; 4],
    };
    let smooth = Smooth { bits: 9, scale: 0.5, slope: 0.0, smoothness: 0.25, fraction: 2 };
    let newton = Newton { iterations: 3, ratio: 2, precision: 10 };
    let linear = |addend, choice| {
        let (rounding, conv) = (Rounding::Exact, conv());
        let [accumulator_bits, weight_bits, shift] = [20, 8, 4];
        Op::from(Linear {
            conv,
            accumulator_bits,
            weight_bits,
            shift,
            rounding,
            addend,
            choice,
            square_bits: None,
        })
    };
    let winograd = |headroom, stage_bits| {
        Op::from(Winograd {
            conv: conv(),
            tile: 2,
            product_bits: 16,
            headroom,
            stage_bits,
            accumulator_bits: 20,
            choice: WeightBits { importance: vec![2], offset: -1 },
            shift: 4,
            rounding: Rounding::Stochastic,
            addend: Some(-3),
        })
    };
    let layer_norm =
        |newton| Op::from(LayerNorm { bits: 12, least: 4, unit: 64.0, newton, rms: false });
    let matmul = MatMul { accumulator_bits: 20, shift: 4, rounding: Rounding::Stochastic };
    let embedding = Embedding { rows: 7, weight_bits: 9, shift: 4, rounding: Rounding::Exact };
    let plain = r#""accumulator_bits":20,"weight_bits":8,"shift":4,"rounding":"exact""#;
    let tiles = r#""accumulator_bits":20,"choice":{"importance":[2],"offset":-1},"shift":4,"rounding":"stochastic","addend":-3"#;
    vec![
        (linear(None, None), format!(r#"{{"linear":{{"conv":{CONV},{plain},"addend":null}}}}"#)),
        (
            linear(Some(5), Some(WeightBits::twos_complement(2))),
            format!(
                r#"{{"linear":{{"conv":{CONV},{plain},"addend":5,"choice":{{"importance":[1,-2]}}}}}}"#
            ),
        ),
        (
            winograd(false, None),
            format!(r#"{{"winograd":{{"conv":{CONV},"tile":2,"product_bits":16,{tiles}}}}}"#),
        ),
        (
            winograd(true, Some(18)),
            format!(
                r#"{{"winograd":{{"conv":{CONV},"tile":2,"product_bits":16,"spare":true,"stage_bits":18,{tiles}}}}}"#
            ),
        ),
        (Op::from(Requantize { drop: 2 }), r#"{"requantize":{"drop":2}}"#.into()),
        (Op::from(Relu { saturate: 8, low: 0 }), r#"{"relu":{"saturate":8}}"#.into()),
        (Op::from(Relu { saturate: 8, low: -9 }), r#"{"relu":{"saturate":8,"low":-9}}"#.into()),
        (Op::from(MaxPool(window())), format!(r#"{{"max-pool":{WINDOW}}}"#)),
        (Op::from(SumPool(window())), format!(r#"{{"sum-pool":{WINDOW}}}"#)),
        (
            Op::from(Sum { multipliers: [64, -5], accumulator_bits: 20, shift: 4 }),
            r#"{"sum":{"multipliers":[64,-5],"accumulator_bits":20,"shift":4}}"#.into(),
        ),
        (Op::from(Offset), r#""offset""#.into()),
        (Op::from(Reshape), r#""reshape""#.into()),
        (Op::from(Extend), r#""extend""#.into()),
        (Op::from(Concat), r#""concat""#.into()),
        (
            Op::from(View { start: 3, strides: vec![2, 1] }),
            r#"{"view":{"start":3,"strides":[2,1]}}"#.into(),
        ),
        (Op::from(Pad { before: vec![0, 1, 1] }), r#"{"pad":{"before":[0,1,1]}}"#.into()),
        (Op::from(Product { factor_bits: [8, 9] }), r#"{"product":{"factor_bits":[8,9]}}"#.into()),
        (
            Op::from(Lookup { low: -1, values: vec![4, -4] }),
            r#"{"lookup":{"low":-1,"values":[4,-4]}}"#.into(),
        ),
        (
            Op::from(embedding),
            r#"{"embedding":{"rows":7,"weight_bits":9,"shift":4,"rounding":"exact"}}"#.into(),
        ),
        (
            Op::from(matmul),
            r#"{"mat-mul":{"accumulator_bits":20,"shift":4,"rounding":"stochastic"}}"#.into(),
        ),
        (
            Op::from(Softmax { bits: 12, scale: 0.1, top: None }),
            r#"{"softmax":{"bits":12,"scale":0.1}}"#.into(),
        ),
        (
            Op::from(Gelu { magnitude: 5, scale: 0.1 }),
            r#"{"gelu":{"magnitude":5,"scale":0.1}}"#.into(),
        ),
        (
            Op::from(Fold {
                magnitude: 2,
                argument: Argument::Odd { span: 11 },
                relu: false,
                below: false,
                base: -3,
                curve: Numbers::Table(vec![5, 3, 1, 0]),
            }),
            r#"{"fold":{"magnitude":2,"argument":{"odd":{"span":11}},"relu":false,"below":false,"base":-3,"curve":{"table":[5,3,1,0]}}}"#.into(),
        ),
        (
            Op::from(Fold {
                magnitude: 3,
                argument: Argument::Even,
                relu: true,
                below: true,
                base: 0,
                curve: Numbers::Lines { drop: 2, fraction: 1, starts: vec![9, 5], slopes: vec![-1, 0] },
            }),
            r#"{"fold":{"magnitude":3,"argument":"even","relu":true,"below":true,"base":0,"curve":{"lines":{"drop":2,"fraction":1,"starts":[9,5],"slopes":[-1,0]}}}}"#.into(),
        ),
        (layer_norm(None), r#"{"layer-norm":{"bits":12,"least":4,"unit":64.0}}"#.into()),
        (
            layer_norm(Some(newton)),
            format!(r#"{{"layer-norm":{{"bits":12,"least":4,"unit":64.0,"newton":{NEWTON}}}}}"#),
        ),
        (
            Op::from(Smu { smooth, newton }),
            format!(r#"{{"smu":{{"smooth":{SMOOTH},"newton":{NEWTON}}}}}"#),
        ),
        (
            Op::from(ReluSoftmax { smooth, epsilon: 0.1, newton, division: newton }),
            format!(
                r#"{{"relu-softmax":{{"smooth":{SMOOTH},"epsilon":0.1,"newton":{NEWTON},"division":{NEWTON}}}}}"#
            ),
        ),
    ]
}

#[test]
fn every_operator_is_written_and_read_letter_by_letter() {
    for (op, json) in operators() {
        assert_eq!(serde_json::to_string(&op).unwrap(), json);
        assert_eq!(serde_json::from_str::<Op>(&json).unwrap(), op);
        assert!(json.contains(&format!("\"{}\"", op.kind())), "{json}");
        assert_eq!(Op::from(op.boxed()), op);
    }
}

#[test]
fn unknown_missing_and_wrong_fields_are_named() {
    let refused = |json: &str| serde_json::from_str::<Op>(json).unwrap_err().to_string();
    let cases = [
        (r#"{"relu":{"saturate":8,"high":1}}"#, "unknown field `high`"),
        (r#"{"relu":{"low":1}}"#, "missing field `saturate`"),
        (r#"{"relu":{"saturate":"8"}}"#, "invalid type: string \"8\", expected u32"),
        (r#"{"relu":{"saturate":8},"low":1}"#, "two operators in one node"),
        (r#""relu""#, "invalid type: null, expected struct Relu"),
        (r#"{"reshape":{"shape":[1]}}"#, "invalid type: map, expected unit struct Reshape"),
        (r#"{"winograd":{"tile":2}}"#, "missing field `conv`"),
        ("3", "expected"),
    ];
    for (json, want) in cases {
        let why = refused(json);
        assert!(why.contains(want), "{json}: {why}");
    }
}
