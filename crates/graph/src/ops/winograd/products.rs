//! Convolutions in the Winograd domain, in 64 bits, or several times faster where weights and
//! features have 16 bits and their sums 32.

use super::layer::Winograd;
use crate::ops::linear::narrow::{LANES, dot};
use crate::tensor::NodeWeights;
use zeroize::Zeroizing;

/// `A^T [U (.) (B^T x B)] A`, `[out_channels, out_height, out_width]`.
pub(super) fn convolve(layer: &Winograd, weights: &NodeWeights, x: &[i64]) -> Vec<i64> {
    let features = layer.features(x);
    let sums = narrow(layer, weights, &features);
    layer.outputs(&sums.unwrap_or_else(|| wide(layer, weights, &features)))
}

/// The sums of products, `[places, out_channels, columns]`.
fn wide(layer: &Winograd, weights: &NodeWeights, features: &[i64]) -> Vec<i64> {
    let (places, columns) = (layer.places(), layer.columns());
    let (inputs, outputs) = (layer.conv.in_channels, layer.conv.out_channels);
    let mut sums = vec![0i64; places * outputs * columns];
    let matrices =
        features.chunks_exact(inputs * columns).zip(sums.chunks_exact_mut(outputs * columns));
    for (place, (features, sums)) in matrices.enumerate() {
        for (output, sums) in sums.chunks_exact_mut(columns).enumerate() {
            for (input, features) in features.chunks_exact(columns).enumerate() {
                let weight = i64::from(weights.weight[(output * inputs + input) * places + place]);
                let terms = sums.iter_mut().zip(features);
                terms.for_each(|(sum, v)| *sum = sum.wrapping_add(weight.wrapping_mul(*v)));
            }
        }
    }
    sums
}

/// The products in narrow words; nothing when something has more bits than it may.
fn narrow(layer: &Winograd, weights: &NodeWeights, features: &[i64]) -> Option<Vec<i64>> {
    let (places, columns) = (layer.places(), layer.columns());
    let (inputs, outputs) = (layer.conv.in_channels, layer.conv.out_channels);
    let most = features.iter().map(|v| v.unsigned_abs()).max()?;
    let heaviest = weights.weight.iter().map(|w| w.unsigned_abs()).max()?;
    let (most, heaviest) = (i16::try_from(most).ok()?, i16::try_from(heaviest).ok()?);
    let sum = i64::from(most) * i64::from(heaviest) * inputs as i64;
    i32::try_from(sum).ok()?;
    let patch = inputs.next_multiple_of(LANES);
    let mut kernels = Zeroizing::new(vec![0i16; outputs * patch]);
    let mut tiles = vec![0i16; columns * patch];
    let mut sums = vec![0i64; places * outputs * columns];
    let parts = features.chunks_exact(inputs * columns);
    for (place, (part, sums)) in parts.zip(sums.chunks_exact_mut(outputs * columns)).enumerate() {
        for (row, kernel) in kernels.chunks_exact_mut(patch).enumerate() {
            let taps = weights.weight[row * inputs * places + place..].iter().step_by(places);
            kernel[..inputs].iter_mut().zip(taps).for_each(|(to, w)| *to = *w as i16);
        }
        for (input, part) in part.chunks_exact(columns).enumerate() {
            let to = tiles[input..].iter_mut().step_by(patch);
            to.zip(part).for_each(|(to, v)| *to = *v as i16);
        }
        for (kernel, sums) in kernels.chunks_exact(patch).zip(sums.chunks_exact_mut(columns)) {
            let tiles = tiles.chunks_exact(patch);
            sums.iter_mut().zip(tiles).for_each(|(sum, tile)| *sum = dot(kernel, tile).into());
        }
    }
    Some(sums)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::ops::accumulator::Rounding;
    use crate::ops::choice::WeightBits;
    use crate::ops::geometry::Conv;
    use crate::ops::linear::wide;
    use crate::ops::winograd::layer::transformed_kernel;
    use proptest::prelude::*;

    fn layer(conv: &Conv, tile: usize) -> Winograd {
        Winograd {
            conv: conv.clone(),
            tile,
            product_bits: 40,
            headroom: false,
            stage_bits: None,
            accumulator_bits: 40,
            choice: WeightBits::twos_complement(8),
            shift: 0,
            rounding: Rounding::Exact,
            addend: None,
        }
    }

    /// Undoes every division of `G` on both sides.
    const WHOLE: i32 = 576;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn equals_the_convolution(
            four: bool,
            [in_channels, in_height, in_width, out_channels] in
                [1usize..4, 1usize..9, 1usize..9, 1usize..4],
            padding in [0usize..3, 0usize..3, 0usize..3, 0usize..3],
            seed: u64,
        ) {
            let conv = Conv {
                in_channels, in_height, in_width, out_channels, kernel: [3, 3], stride: [1, 1],
                padding, dilation: [1, 1], groups: 1,
            };
            prop_assume!(conv.out_height() > 0 && conv.out_width() > 0);
            let random = |i: usize| {
                ((seed ^ ((i as u64) << 7)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as i32 - 128
            };
            let layer = layer(&conv, if four { 4 } else { 2 });
            let taps = out_channels * in_channels * 9;
            let weight: Vec<i32> = (0..taps).map(random).collect();
            let pixels = in_channels * in_height * in_width;
            let x: Vec<i64> = (taps..taps + pixels).map(|i| random(i).into()).collect();
            let kernels = weight.chunks(9).map(|kernel| {
                kernel.iter().map(|w| f64::from(w * WHOLE)).collect::<Vec<f64>>()
            });
            let transformed = kernels.flat_map(|kernel| transformed_kernel(layer.tile, &kernel));
            let domain: Vec<i32> = transformed.map(|u| u.round() as i32).collect();
            let of = |weight| NodeWeights { weight, bias: vec![0; out_channels] };
            let want = wide::convolve(&conv, &of(weight), &x).into_iter();
            let want: Vec<i64> = want.map(|y| y * i64::from(WHOLE)).collect();
            let domain = of(domain);
            prop_assert_eq!(convolve(&layer, &domain, &x), want);
            let x: Vec<i64> = x.into_iter().map(|v| v / 4).collect();
            let domain = of(domain.weight.iter().map(|w| w % 128).collect());
            let features = layer.features(&x);
            let sums = narrow(&layer, &domain, &features);
            prop_assert_eq!(sums, Some(wide(&layer, &domain, &features)));
        }
    }
}
