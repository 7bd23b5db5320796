//! Weights of few bits out of floats.
//!
//! Each output channel has a scale of its own, the one of least error among many. Errors
//! of weights in the Winograd domain count by how much of an image their place shows.

use crate::ops::choice::WeightBits;
use crate::ops::winograd::feature_rows;

/// Correlation of neighbouring pixels that errors in the Winograd domain are weighed by.
const CORRELATION: f64 = 0.5;
/// Scales that are tried for each channel, from the one that reaches its largest weight down
/// to this part of it.
const TRIED: u32 = 33;
const SMALLEST: f64 = 0.2;
/// Distance of the largest weight from the mean, in deviations, from which on a layer has
/// outliers (UFO, section V-B).
const OUTLIER: f64 = 6.0;

/// Integer weights with a scale for each channel.
#[derive(Clone, Debug)]
pub(super) struct FewBits {
    pub(super) choice: WeightBits,
    pub(super) weight: Vec<i32>,
    /// Real value of one unit, by channel; positive.
    pub(super) scale: Vec<f64>,
    /// Sum of the weighed squares of what rounding changed.
    pub(super) error: f64,
}

/// What is rounded.
pub(super) struct Rows<'a> {
    /// One row per output channel.
    pub(super) weight: &'a [f64],
    pub(super) channels: usize,
    /// By how much errors count, by place; repeats.
    pub(super) places: &'a [f64],
}

/// Rounds to `bits` bits: two's complement, or other importances if these are allowed and
/// the error is less; a heavier topmost bit only where the layer has outliers.
pub(super) fn round(rows: &Rows<'_>, bits: u32, reweighting: bool) -> FewBits {
    let plain = rounded(rows, WeightBits::twos_complement(bits));
    if !reweighting {
        return plain;
    }
    let outliers = largest_deviation(rows.weight) >= OUTLIER;
    let heavy = outliers.then(|| WeightBits::reweighted(bits));
    let others = WeightBits::dense(bits).into_iter().chain(heavy);
    let all = [plain].into_iter().chain(others.map(|choice| rounded(rows, choice)));
    let better = |a: FewBits, b: FewBits| if b.error < a.error { b } else { a };
    all.reduce(better).unwrap_or_else(|| rounded(rows, WeightBits::twos_complement(bits)))
}

/// The z-score of the weight that is farthest from their mean; 0 when all are alike.
pub(super) fn largest_deviation(weights: &[f64]) -> f64 {
    let count = weights.len().max(1) as f64;
    let mean = weights.iter().sum::<f64>() / count;
    let deviation = (weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / count).sqrt();
    let farthest = weights.iter().map(|w| (w - mean).abs()).fold(0.0, f64::max);
    if deviation > 0.0 { farthest / deviation } else { 0.0 }
}

fn rounded(rows: &Rows<'_>, choice: WeightBits) -> FewBits {
    let mut levels: Vec<i64> = choice.weights();
    levels.sort_unstable();
    levels.dedup();
    let each = (rows.weight.len() / rows.channels.max(1)).max(1);
    let mut few = FewBits { choice, weight: vec![], scale: vec![], error: 0.0 };
    for row in rows.weight.chunks_exact(each) {
        let (scale, error) = best_scale(row, &levels, rows.places);
        few.weight.extend(row.iter().map(|w| nearest(&levels, w / scale) as i32));
        few.scale.push(scale);
        few.error += error;
    }
    // Channels of zeros take any scale: that of the others, if these have one.
    let used = rows.weight.chunks_exact(each).map(|row| row.iter().any(|w| *w != 0.0));
    let used: Vec<bool> = used.collect();
    let some = few.scale.iter().zip(&used).find(|(_, used)| **used).map(|(scale, _)| *scale);
    for (scale, used) in few.scale.iter_mut().zip(used) {
        if !used {
            *scale = some.unwrap_or(*scale);
        }
    }
    few
}

/// The scale of least error, and that error.
fn best_scale(row: &[f64], levels: &[i64], places: &[f64]) -> (f64, f64) {
    let peak = row.iter().map(|w| w.abs()).fold(0.0, f64::max);
    // Of both signs the smaller reach, so that the first scale clips nothing.
    let ends = [levels.first(), levels.last()].map(|end| end.map_or(1, |end| end.abs()));
    let reach = ends.into_iter().filter(|end| *end > 0).min().unwrap_or(1) as f64;
    if peak == 0.0 {
        return (1.0, 0.0);
    }
    let factor = |i: u32| SMALLEST.powf(f64::from(i) / f64::from(TRIED - 1));
    let tried = (0..TRIED).map(|i| {
        let scale = peak / reach * factor(i);
        (scale, error(row, scale, levels, places))
    });
    let better = |a: (f64, f64), b: (f64, f64)| if b.1 < a.1 { b } else { a };
    tried.reduce(better).unwrap_or((1.0, 0.0))
}

fn error(row: &[f64], scale: f64, levels: &[i64], places: &[f64]) -> f64 {
    let errors = row
        .iter()
        .zip(places.iter().cycle())
        .map(|(w, place)| place * (w - scale * nearest(levels, w / scale) as f64).powi(2));
    errors.sum()
}

/// The level next to a value, the lower one of two; levels are in order.
fn nearest(levels: &[i64], value: f64) -> i64 {
    let above = levels.partition_point(|level| (*level as f64) < value);
    let high = levels.get(above).or(levels.last()).copied().unwrap_or(0);
    let low = levels.get(above.saturating_sub(1)).copied().unwrap_or(high);
    if (high as f64 - value).abs() < (value - low as f64).abs() { high } else { low }
}

/// How much an error counts at each place of the Winograd domain: the variance of its
/// feature, for pixels whose correlation falls with their distance.
pub(super) fn place_weights(tile: usize) -> Vec<f64> {
    let variance = |row: &[i64]| {
        let pairs = row.iter().enumerate().flat_map(|(i, a)| {
            row.iter()
                .enumerate()
                .map(move |(j, b)| (a * b) as f64 * CORRELATION.powi(i.abs_diff(j) as i32))
        });
        pairs.sum::<f64>()
    };
    let rows: Vec<f64> = feature_rows(tile).iter().map(|row| variance(row)).collect();
    rows.iter().flat_map(|a| rows.iter().map(move |b| a * b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(weight: &[f64], channels: usize) -> Rows<'_> {
        Rows { weight, channels, places: &[1.0] }
    }

    #[test]
    fn weights_are_near_and_scales_are_the_channels_own() {
        let weight: Vec<f64> = (0..64).map(|i| f64::from(i * i % 61) / 30.0 - 1.0).collect();
        let scaled: Vec<f64> = weight.iter().map(|w| w * 100.0).collect();
        let both = [weight, scaled].concat();
        for bits in [2, 4, 8] {
            let few = round(&rows(&both, 2), bits, true);
            assert!((few.scale[1] / few.scale[0] - 100.0).abs() < 1e-6);
            let last = few.weight.iter().zip(few.scale.iter().flat_map(|s| vec![s; 64]));
            let furthest = last.zip(&both).map(|((q, s), w)| (f64::from(*q) * s - w).abs() / s);
            // The one weight that is clipped hardest may be further than half a step.
            assert!(furthest.fold(0.0, f64::max) < f64::from(1 << (bits - 1)));
            assert!(few.choice.choose(&few.weight).is_ok());
        }
    }

    /// Many small weights of one sign and a few large ones of the other: a doubled top bit
    /// reaches the large ones without coarser steps. Without outliers nothing changes.
    #[test]
    fn importances_follow_outliers_only() {
        let small = (0..400).map(|i| f64::from(i % 8));
        let weight: Vec<f64> = small.chain([-16.0, -15.0, -16.0]).collect();
        assert!(largest_deviation(&weight) > OUTLIER);
        let few = round(&rows(&weight, 1), 4, true);
        assert_eq!(few.choice, WeightBits::reweighted(4));
        assert!(few.error < round(&rows(&weight, 1), 4, false).error);
        let even: Vec<f64> = (0..400).map(|i| f64::from(i % 16) - 8.0).collect();
        assert_eq!(round(&rows(&even, 1), 4, true).choice, WeightBits::twos_complement(4));
    }

    /// Most weights near zero, on both sides.
    #[test]
    fn importances_are_near_each_other_where_weights_are() {
        let one = |i: i32| f64::from(i).powi(3) / 1000.0;
        let weight: Vec<f64> = (-10..=10).map(one).collect();
        for bits in 2..=4 {
            let few = round(&rows(&weight, 1), bits, true);
            assert_eq!(Some(few.choice), WeightBits::dense(bits));
            let plain = round(&rows(&weight, 1), bits, false);
            assert!(few.error < plain.error);
        }
    }

    #[test]
    fn zeros_have_a_scale() {
        let few = round(&rows(&[0.0; 8], 2), 3, true);
        assert_eq!((few.weight, few.scale, few.error), (vec![0; 8], vec![1.0; 2], 0.0));
    }
}
