//! Every packing of a shape against the plain convolution, without encryption.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::tests::clear;
use super::*;

/// The product of two polynomials modulo X^N + 1, added to `sum`.
fn add_product(sum: &mut [i64], left: &[u64], powers: &[usize], weights: &[i64]) {
    let degree = sum.len();
    for (power, weight) in powers.iter().zip(weights).filter(|(_, weight)| **weight != 0) {
        for (i, value) in left.iter().enumerate() {
            let term = *value as i64 * weight;
            match i + power < degree {
                true => sum[i + power] += term,
                false => sum[i + power - degree] -= term,
            }
        }
    }
}

fn convolve(packing: &Folding, degree: usize, x: &[u64], weight: &[i32]) -> Vec<i64> {
    let images = packing.batch();
    let (powers, blocks) = (packing.powers(), packing.input_blocks());
    assert_eq!(powers.iter().collect::<BTreeSet<_>>().len(), powers.len(), "{packing:?}");
    assert!(powers.iter().all(|power| *power < degree), "{packing:?}");
    let inputs = packing.encode_narrow(x, degree);
    let inputs: Vec<_> = inputs.into_iter().map(|input| packing.spread(input, degree)).collect();
    let sent = packing.encode_folded(x, degree);
    assert_eq!(sent.len(), packing.inputs());
    assert_eq!((0..sent.len()).map(|i| packing.polynomials_of(i)).sum::<usize>(), inputs.len());
    for (sent, inputs) in sent.iter().zip(inputs.chunks(1 << packing.levels())) {
        for (at, value) in sent.iter().enumerate() {
            let (u, first) =
                (at % (1 << packing.levels()), at >> packing.levels() << packing.levels());
            assert_eq!(*value, inputs.get(u).map_or(0, |input| input[first]));
        }
    }
    let mut out = vec![i64::MIN; images * packing.image_outputs()];
    let mut responses = 0;
    for place in packing.places() {
        let (mut sum, mut used) = (vec![0; degree], 0);
        for block in 0..blocks {
            let from = packing.weights(place.group, place.block, block);
            let weights: Vec<_> =
                from.iter().map(|from| from.map_or(0, |from| i64::from(weight[from]))).collect();
            used += from.iter().flatten().count();
            let input = &inputs[packing.tile_index(place) * blocks + block];
            add_product(&mut sum, input, &powers, &weights);
        }
        assert!(used <= packing.weights_per_response(), "{used} weights in {packing:?}");
        let useful = packing.outputs(place);
        assert_eq!(useful.len(), packing.useful(place), "{packing:?}");
        assert!(!useful.is_empty() && useful.is_sorted_by(|a, b| a.0 < b.0));
        useful.into_iter().for_each(|(from, to)| out[to] = sum[from]);
        responses += 1;
    }
    assert_eq!(responses, packing.responses());
    out
}

/// All candidates of `conv` at `degree` for `images` images; how many there are.
fn check(conv: &Conv, images: usize, degree: usize) -> usize {
    let inputs = conv.in_channels * conv.in_height * conv.in_width;
    let weights = conv.out_channels * conv.group_channels() * conv.kernel[0] * conv.kernel[1];
    let x: Vec<u64> = (0..(images * inputs) as u64).map(|i| 1 + i * i % 251).collect();
    let weight: Vec<i32> = (0..weights as i32).map(|i| i * 29 % 255 - 127).collect();
    let signed: Vec<i64> = x.iter().map(|x| *x as i64).collect();
    let bias = vec![0; conv.out_channels];
    let each = signed.chunks_exact(inputs).flat_map(|x| clear(conv, x, &weight, &bias));
    let want: Vec<i64> = each.collect();
    let mut count = 0;
    for levels in 0..=2 {
        for packing in Folding::candidates(conv, images, degree, levels) {
            assert_eq!(convolve(&packing, degree, &x, &weight), want, "{levels}: {packing:?}");
            count += usize::from(levels == 0);
        }
    }
    count
}

prop_compose! {
    fn shapes()(
        kernel in prop::array::uniform2(1..=5usize),
        stride in prop::array::uniform2(1..=3usize),
        padding in prop::array::uniform4(0..=2usize),
        dilation in prop::array::uniform2(1..=2usize),
        groups in 1..=6usize,
        each in prop::array::uniform2(1..=3usize),
        side in prop::array::uniform2(1..=13usize),
    ) -> Conv {
        Conv {
            in_channels: groups * each[0],
            in_height: side[0],
            in_width: side[1],
            out_channels: groups * each[1],
            kernel,
            stride,
            padding,
            dilation,
            groups,
        }
    }
}

fn is_convolution(conv: &Conv) -> bool {
    conv.out_height() > 0 && conv.out_width() > 0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_packing_of_a_shape_convolves(
        conv in shapes().prop_filter("outputs", is_convolution),
        log in 6..=8u32,
    ) {
        check(&conv, 1, 1 << log);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_packing_of_a_batch_convolves(
        conv in shapes().prop_filter("outputs", is_convolution),
        images in 2..=6usize,
        log in 6..=7u32,
    ) {
        check(&conv, images, 1 << log);
    }
}

#[test]
fn many_groups_convolve() {
    let depthwise = |channels, side, stride, padding| Conv {
        in_channels: channels,
        in_height: side,
        in_width: side,
        out_channels: channels,
        kernel: [3, 3],
        stride: [stride; 2],
        padding: [padding; 4],
        dilation: [1, 1],
        groups: channels,
    };
    assert!(check(&depthwise(37, 3, 1, 1), 1, 512) > 10);
    assert!(check(&depthwise(29, 4, 2, 1), 1, 512) > 10);
    assert!(check(&Conv { out_channels: 66, ..depthwise(33, 3, 1, 0) }, 1, 512) > 10);
    assert!(check(&Conv { groups: 12, ..depthwise(24, 5, 2, 1) }, 1, 512) > 10);
    assert!(check(&depthwise(19, 3, 1, 1), 5, 512) > 10);
    assert!(check(&Conv { groups: 6, ..depthwise(12, 5, 2, 1) }, 4, 512) > 10);
}

#[test]
fn images_lie_next_to_each_other() {
    let matrix = Conv::fully_connected(24, 10);
    assert!(check(&matrix, 7, 64) > 10 && check(&matrix, 64, 128) > 10);
    let points = Conv { in_height: 3, in_width: 5, ..Conv::fully_connected(6, 4) };
    assert!(check(&points, 5, 256) > 10);
    assert!(check(&Conv { stride: [2, 2], ..points }, 5, 256) > 10);
    let together = Packing::candidates(&matrix, 7, 64).map(|packing| packing.window.images);
    assert_eq!(together.collect::<BTreeSet<_>>(), BTreeSet::from([1, 2, 3, 4, 7]));
}

#[test]
fn padding_is_shared_and_strides_are_split() {
    let conv = Conv {
        in_channels: 2,
        in_height: 7,
        in_width: 7,
        out_channels: 2,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [1; 4],
        dilation: [1, 1],
        groups: 1,
    };
    let window = |conv: &Conv, polyphase| {
        let axes = Axis::both(conv, polyphase);
        Window::new(&axes, [conv.out_height(), conv.out_width()], 4096).unwrap()
    };
    let shared = window(&conv, false);
    assert_eq!((shared.row, shared.area, shared.span), (8, 64, 73));
    assert_eq!(Axis::both(&conv, false), Axis::both(&conv, true));

    let patches = Conv { kernel: [3, 3], stride: [4, 4], padding: [0; 4], ..conv };
    let axes = Axis::both(&patches, true);
    assert_eq!((planes(&patches, &axes), axes[0].taps), (2 * 9, 1));
    assert_eq!(window(&patches, true).area, 4);
}
