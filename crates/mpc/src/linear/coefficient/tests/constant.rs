//! Messages, rounds and work of a layer do not depend on its weights.

use super::*;

/// What a run shows: frames of both, their sizes, costs of both.
type Shown = (Vec<usize>, Vec<usize>, wire::Cost, wire::Cost);

/// What a run does: its multiplications, and the terms of each weight polynomial.
type Done = (usize, Vec<usize>);

fn observed(conv: &Conv, weight: &[i32]) -> (Shown, Done) {
    let mut rng = Random::seeded(11);
    let mut case = batch(1, conv, Rounding::Exact, None, false, &mut rng);
    let bias = vec![0; conv.out_channels];
    case.weights = Arc::new(ServerWeights::new(&case.layer, weight, &bias, &mut 0).unwrap());
    let (ours, theirs) = run(&case, None);
    assert!(ours.value.is_ok() && theirs.value.is_ok());
    let [sent, answered] =
        [&ours.frames, &theirs.frames].map(|frames| frames.iter().map(Vec::len).collect());
    let packing = &case.layer.packing;
    let terms = packing.blocks().map(|(g, o, i)| packing.weights(g, o, i).len()).collect();
    ((sent, answered, ours.cost, theirs.cost), (case.weights.work(), terms))
}

/// Zero, dense and sparse weights of a dense, a strided and a depthwise layer.
#[test]
fn weights_show_in_no_message_and_in_no_work() {
    let depthwise = Conv { groups: 12, ..conv([12, 12], [9, 9], 3, 1, 1) };
    for conv in [conv([8, 8], [10, 10], 3, 1, 1), conv([3, 5], [17, 17], 3, 2, 1), depthwise] {
        let taps = conv.group_channels() * conv.kernel[0] * conv.kernel[1];
        let count = conv.out_channels * taps;
        let mut rng = Random::seeded(12);
        let random: Vec<i32> = rng
            .uniform(count, WEIGHT_BITS)
            .iter()
            .map(|w| signed(*w, WEIGHT_BITS) as i32)
            .collect();
        let sparse = random.iter().enumerate().map(|(i, w)| if i % 7 == 0 { *w } else { 0 });
        let zero = observed(&conv, &vec![0; count]);
        let (_, (work, terms)) = &zero;
        assert!(*work >= terms.len());
        assert!(terms.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(zero, observed(&conv, &vec![127; count]));
        assert_eq!(zero, observed(&conv, &sparse.collect::<Vec<_>>()));
        assert_eq!(zero, observed(&conv, &random));
    }
}
