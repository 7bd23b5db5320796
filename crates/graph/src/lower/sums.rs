//! By how much the multipliers of a weighted sum are larger than its ratios.

/// Multipliers of a sum have at least this magnitude where possible, at 8 bits of activations and
/// fewer: rounding a multiplier moves the largest results by two units at most. Each bit beyond
/// doubles it, and the ceiling.
const SUM_FLOOR: f64 = 64.0;
const SUM_CEILING: f64 = 16384.0;
const SUM_BITS: u32 = 8;
const SUM_SHIFT_LIMIT: u32 = 30;

/// The smallest shift that gives both multipliers their floor, unless one of
/// them reaches its ceiling first. Integers need none.
pub(super) fn sum_shift(ratios: [f64; 2], activation_bits: u32) -> u32 {
    let finer = f64::from(activation_bits.saturating_sub(SUM_BITS)).exp2();
    let (floor, ceiling) = (SUM_FLOOR * finer, SUM_CEILING * finer);
    if ratios.iter().all(|ratio| ratio.fract() == 0.0 && ratio.abs() < floor) {
        return 0;
    }
    let enough = |shift: &u32| {
        let scaled = ratios.map(|ratio| ratio.abs() * f64::from(*shift).exp2());
        let used = scaled.into_iter().filter(|factor| *factor > 0.0);
        let (least, most) = used.fold((f64::MAX, 0.0), |(a, b), f| (f.min(a), f.max(b)));
        least >= floor || most >= ceiling
    };
    (0..SUM_SHIFT_LIMIT).find(enough).unwrap_or(SUM_SHIFT_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multipliers_of_sums_are_as_fine_as_activations() {
        // The ratio that a multiplier of six bits misses by most.
        let ratio = 64.5 / 64.0;
        for bits in [4, 8, 10, 12] {
            let factor = f64::from(sum_shift([ratio, 0.0], bits)).exp2();
            let missed = ((ratio * factor).round() / factor / ratio - 1.0).abs();
            assert!(missed * f64::from(bits).exp2() <= 2.0, "{bits} bits: {missed}");
        }
        assert_eq!(sum_shift([3.0, 1.0], 12), 0);
    }
}
