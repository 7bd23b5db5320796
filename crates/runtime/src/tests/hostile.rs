//! Plans that a client must refuse, and in good time.

use super::*;

#[test]
fn a_hostile_plan_is_refused() {
    let mut rng = Random::seeded(6);
    let model = network(&mut rng, Rounding::Exact);
    let offer = Plan::new(model.graph, Settings::default()).unwrap().offer();
    assert!(Plan::from_offer(&offer).is_ok());
    for (from, to) in [
        ("\"auto\"", "\"magic\""),
        ("\"reveal\":\"output\"", "\"reveal\":\"input\""),
        ("\"in_channels\":2", "\"in_channels\":1000000000000"),
        ("\"accumulator_bits\":2", "\"accumulator_bits\":6"),
        ("\"shift\":", "\"shift\":-"),
        ("\"settings\"", "\"other\""),
    ] {
        let changed = offer.replacen(from, to, 1);
        assert_ne!(changed, offer, "{from}");
        assert!(Plan::from_offer(&changed).is_err(), "{from} -> {to}");
    }
}

/// A graph of one node from `shape` to `output`, as a server would offer it.
fn one_node(
    op: &str,
    shape: &str,
    output: &str,
    bits: [u32; 2],
    signed: bool,
    reveal: &str,
) -> String {
    let tensor = |name: &str, shape: &str, bits: u32, signed: bool| {
        format!(
            r#"{{"name":"{name}","shape":{shape},"format":{{"bits":{bits},"scale":1.0,"signed":{signed}}}}}"#
        )
    };
    let (x, y) = (tensor("x", shape, bits[0], true), tensor("y", output, bits[1], signed));
    format!(
        r#"{{"settings":{{"reveal":"{reveal}"}},"graph":{{"version":1,"name":"n","suite":"auto","activation_bits":8,"input_range":[-127,127],"tensors":[{x},{y}],"nodes":[{{"name":"node","op":{op},"inputs":[0],"output":1}}],"input":0,"output":1,"labels":[]}}}}"#
    )
}

fn convolution(
    channels: usize,
    side: usize,
    kernel: usize,
    dilation: usize,
    groups: usize,
) -> String {
    let pad = (kernel - 1) * dilation;
    format!(
        r#"{{"linear":{{"conv":{{"in_channels":{channels},"in_height":{side},"in_width":{side},"out_channels":{channels},"kernel":[{kernel},{kernel}],"stride":[1,1],"padding":[{pad},{pad},0,0],"dilation":[{dilation},{dilation}],"groups":{groups}}},"weight_bits":8,"accumulator_bits":20,"shift":8,"rounding":"exact","addend":null}}}}"#
    )
}

/// A square convolution as a server would offer it for `suite`; without a kernel to speak of
/// and on one pixel it is a matrix product.
pub(super) fn layer_offer(suite: &str, channels: usize, side: usize, kernel: usize) -> String {
    let (op, shape) =
        (convolution(channels, side, kernel, 1, 1), format!("[{channels},{side},{side}]"));
    one_node(&op, &shape, &shape, [20, 12], true, "output").replacen(
        "\"auto\"",
        &format!("\"{suite}\""),
        1,
    )
}

/// Plans that are consistent but far too large are refused, and soon.
#[test]
fn a_plan_cannot_make_a_client_work_or_allocate_without_bound() {
    let pool = |side: usize, kernel: usize| {
        format!(
            r#"{{"max-pool":{{"channels":1,"height":{side},"width":{side},"kernel":[{kernel},{kernel}],"stride":[1,1],"padding":[0,0,0,0]}}}}"#
        )
    };
    let conv = |channels: usize, side: usize, kernel, dilation, groups| {
        let shape = format!("[{channels},{side},{side}]");
        let op = convolution(channels, side, kernel, dilation, groups);
        one_node(&op, &shape, &shape, [20, 12], true, "output")
    };
    let pooled = |side, kernel, out: usize| {
        let shape = |side: usize| format!("[1,{side},{side}]");
        one_node(&pool(side, kernel), &shape(side), &shape(out), [12, 12], true, "output")
    };
    Plan::from_offer(&pooled(8, 2, 7)).unwrap();
    Plan::from_offer(&conv(4, 8, 3, 1, 1)).unwrap();
    let label = one_node("\"reshape\"", "[67108864]", "[67108864]", [12, 12], true, "label");
    let hostile = [
        ("windows over everything", pooled(8192, 4096, 4097)),
        ("taps further apart than any memory", conv(1, 2, 1 << 13, 1 << 26, 1)),
        ("areas that wrap around", conv(1, 1, 2, 1 << 26, 1)),
        ("more ciphertexts than fit", conv(1 << 26, 1, 1, 1, 1 << 26)),
        ("a tournament of everything", label),
    ];
    for (what, offer) in hostile {
        let start = std::time::Instant::now();
        let refused = Plan::from_offer(&offer).unwrap_err();
        assert!(matches!(refused, Error::Peer { .. } | Error::Unsupported { .. }), "{what}");
        assert!(start.elapsed().as_secs() < 5, "{what}: {:?}", start.elapsed());
    }
}

/// Batches that multiply what one input has beyond any bound.
#[test]
fn a_batch_cannot_make_a_client_work_or_allocate_without_bound() {
    let offer = |batch: &str, op: &str, shape: &str, out: &str, reveal: &str| {
        let offer = one_node(op, shape, out, [20, 12], true, reveal);
        offer.replacen("\"settings\":{", &format!("\"settings\":{{\"batch\":{batch},"), 1)
    };
    let small = convolution(4, 8, 3, 1, 1);
    let of = |batch: &str| offer(batch, &small, "[4,8,8]", "[4,8,8]", "output");
    Plan::from_offer(&of("64")).unwrap();
    let (large, flat) = ("[8,1024,1024]", "[1048576]");
    let pool = r#"{"max-pool":{"channels":4,"height":512,"width":512,"kernel":[2,2],"stride":[1,1],"padding":[0,0,0,0]}}"#;
    let pooled = offer("64", pool, "[4,512,512]", "[4,511,511]", "output").replace("20,", "12,");
    let hostile = [
        ("none", of("0")),
        ("too many", of("65")),
        ("far too many", of("4294967295")),
        ("more than a number", of("4294967296")),
        ("values", offer("64", "\"reshape\"", large, large, "output").replace("20,", "12,")),
        ("windows", pooled),
        ("rows", offer("2", "\"reshape\"", flat, flat, "label").replace("20,", "12,")),
    ];
    for (what, offer) in hostile {
        let start = std::time::Instant::now();
        let refused = Plan::from_offer(&offer).unwrap_err();
        assert!(matches!(refused, Error::Peer { .. } | Error::Unsupported { .. }), "{what}");
        assert!(start.elapsed().as_secs() < 5, "{what}: {:?}", start.elapsed());
    }
}

/// `count` convolutions in a row that differ from each other, as a server would offer them.
fn chain(count: usize, op: impl Fn(usize) -> (String, String)) -> String {
    let mut tensors = Vec::new();
    let mut nodes = Vec::new();
    for i in 0..=count {
        let shape = op(i).1;
        tensors.push(format!(
            r#"{{"name":"t{i}","shape":{shape},"format":{{"bits":20,"scale":1.0,"signed":true}}}}"#
        ));
        if i < count {
            let out = i + 1;
            let op = op(i).0;
            nodes.push(format!(r#"{{"name":"n{i}","op":{op},"inputs":[{i}],"output":{out}}}"#));
        }
    }
    let (tensors, nodes) = (tensors.join(","), nodes.join(","));
    format!(
        r#"{{"settings":{{"reveal":"output"}},"graph":{{"version":1,"name":"n","suite":"auto","activation_bits":8,"input_range":[-127,127],"tensors":[{tensors}],"nodes":[{nodes}],"input":0,"output":{count},"labels":[]}}}}"#
    )
}

/// Thousands of layers, each of which takes a search of its own.
#[test]
fn a_long_plan_cannot_make_a_client_work_without_bound() {
    let conv = |channels: usize, side: usize, kernel: usize, groups: usize| {
        let op =
            convolution(channels, side, kernel, 1, groups).replace("\"shift\":8", "\"shift\":0");
        (op, format!("[{channels},{side},{side}]"))
    };
    let grouped = |i: usize| (conv(64, 16, 1 + i % 15, [2, 8, 64][i % 3]).0, "[64,16,16]".into());
    let search = |i: usize| (conv(64, 16, 1 + i % 15, 1).0, "[64,16,16]".into());
    let relu = |_: usize| (r#"{"relu":{"saturate":8,"low":-128}}"#.to_string(), "[10]".to_string());
    let batch = |offer: String| offer.replacen("\"reveal\"", "\"batch\":60,\"reveal\"", 1);
    for (what, accepted, offer) in [
        ("honest", true, chain(200, |_| conv(16, 16, 3, 1))),
        ("as many searches as there may be", true, chain(4096, search)),
        ("searches over groups", true, chain(4096, grouped)),
        ("too many nodes", false, chain(4097, search)),
        ("wide layers", false, chain(1000, |_| conv(1 << 18, 1, 1, 1 << 18))),
        ("matrices", true, chain(4096, |_| conv(512, 1, 1, 1))),
        ("batches of too many nodes", false, batch(chain(4096, search))),
        ("batches of functions", true, batch(chain(4096, relu))),
        ("batches", true, batch(chain(540, |i| conv(64, 4, 1 + i % 3, 1)))),
        ("batches of groups", true, batch(chain(540, |i| conv(64, 4, 3, [2, 8, 64][i % 3])))),
        ("batches of matrices", true, batch(chain(540, |_| conv(512, 1, 1, 1)))),
    ] {
        let start = std::time::Instant::now();
        let planned = Plan::from_offer(&offer).map(|plan| plan.cost(1).bytes());
        assert_eq!(planned.is_ok(), accepted, "{what}: {planned:?}");
        // Generous: it is a matter of minutes without the limits.
        assert!(start.elapsed().as_secs() < 30, "{what}: {:?}", start.elapsed());
    }
}
