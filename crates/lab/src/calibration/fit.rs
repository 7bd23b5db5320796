//! Rates out of measurements: least squares of relative errors, no rate below zero.

use pricing::Rates;
use pricing::Work;
use pricing::unit::COUNT;

/// Work and the seconds that it took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Everything in it, messages too.
    pub(crate) work: Work,
    /// Seconds.
    pub(crate) seconds: f64,
}

/// Passes of coordinate descent; it converges much sooner.
const PASSES: usize = 2000;
/// How much a rate is drawn to what it was before, against one sample.
const PRIOR: f64 = 0.3;
/// Fits with what looks disturbed counting less and less.
const REWEIGHTINGS: usize = 4;
/// Relative error beyond which a sample looks disturbed.
const DISTURBED: f64 = 0.2;

/// The rates that come closest to all samples: the sum over samples of the squared relative
/// error is least, and of rates that samples say little about, those near `before` are taken.
pub(crate) fn fitted(samples: &[Sample], before: &Rates) -> Rates {
    let prior = scaled(samples, before);
    let rows: Vec<[f64; COUNT]> = samples.iter().filter(|s| s.seconds > 0.0).map(row).collect();
    let shares: Vec<[f64; COUNT]> = rows.iter().map(|row| weighed(row, &prior)).collect();
    let mut weights = vec![1.0; shares.len()];
    let mut factors = [1.0; COUNT];
    for _ in 0..REWEIGHTINGS {
        factors = descended(&shares, &weights);
        for (weight, row) in weights.iter_mut().zip(&shares) {
            // What was slower than the rest says was disturbed, more likely than not.
            let left = 1.0 - weighed(row, &factors).iter().sum::<f64>();
            *weight = if left > 0.0 { 1.0 / (1.0 + (left / DISTURBED).powi(2)) } else { 1.0 };
        }
    }
    Rates::new(weighed(&factors, &prior)).unwrap_or_else(|_| Rates::reference())
}

fn weighed(one: &[f64; COUNT], other: &[f64; COUNT]) -> [f64; COUNT] {
    let mut products = *one;
    products.iter_mut().zip(other).for_each(|(product, factor)| *product *= factor);
    products
}

/// The factors, none below zero, whose products with `shares` add up to 1 most nearly.
fn descended(shares: &[[f64; COUNT]], weights: &[f64]) -> [f64; COUNT] {
    let mut factors = [1.0; COUNT];
    let mut left: Vec<f64> = shares.iter().map(|row| 1.0 - row.iter().sum::<f64>()).collect();
    for _ in 0..PASSES {
        for (k, factor) in factors.iter_mut().enumerate() {
            let (mut up, mut down) = (PRIOR * PRIOR * (1.0 - *factor), PRIOR * PRIOR);
            for ((row, weight), left) in shares.iter().zip(weights).zip(&left) {
                let share = row.get(k).copied().unwrap_or_default();
                up += weight * share * left;
                down += weight * share * share;
            }
            let step = (*factor + up / down).max(0.0) - *factor;
            *factor += step;
            for (row, left) in shares.iter().zip(&mut left) {
                *left -= step * row.get(k).copied().unwrap_or_default();
            }
        }
    }
    factors
}

/// Units by second: a row of relative errors.
fn row(sample: &Sample) -> [f64; COUNT] {
    sample.work.all().map(|units| units / sample.seconds)
}

/// `before`, all rates times the median ratio of measured to expected: a slower machine is
/// slower at what was not measured, too.
fn scaled(samples: &[Sample], before: &Rates) -> [f64; COUNT] {
    let ratio = |sample: &Sample| sample.seconds / before.seconds(&sample.work);
    let mut ratios: Vec<f64> =
        samples.iter().map(ratio).filter(|ratio| ratio.is_finite()).collect();
    ratios.sort_by(f64::total_cmp);
    let middle = ratios.get(ratios.len() / 2).copied().unwrap_or(1.0);
    let named: std::collections::BTreeMap<String, f64> = (*before).into();
    pricing::Unit::ALL.map(|kernel| middle * named.get(kernel.name()).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pricing::Unit;

    #[test]
    fn rates_are_found_again() {
        let truth = |work: &Work| {
            3e-9 * work.units(Unit::Entry)
                + 2e-8 * work.units(Unit::Ferret18)
                + 0.02 * work.units(Unit::Session)
        };
        let sample = |session: f64, entries: f64, silent: f64| {
            let work = Work::of(Unit::Session, session)
                .and(Unit::Entry, entries)
                .and(Unit::Ferret18, silent);
            Sample { work, seconds: truth(&work) }
        };
        let samples = [
            sample(1.0, 0.0, 0.0),
            sample(0.0, 1e7, 1e5),
            sample(0.0, 1e5, 1e7),
            sample(0.0, 1e6, 1e6),
        ];
        let rates = fitted(&samples.repeat(20), &Rates::reference());
        for sample in samples {
            let found = rates.seconds(&sample.work);
            assert!((found / sample.seconds - 1.0).abs() < 0.05, "{found} {sample:?}");
        }
        // What was not seen follows the machine.
        assert!(rates.seconds(&Work::of(Unit::Garbled, 1.0)) > 0.0);
    }
}
