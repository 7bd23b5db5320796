//! Signed fixed point: reals as integer multiples of a scale.

/// A scale and the integers in use. Values beyond them saturate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fixed {
    /// Real value of one unit, positive and finite.
    pub scale: f64,
    /// Smallest and largest integer.
    pub range: [i64; 2],
}

impl Fixed {
    /// The nearest integer, halves away from zero, clipped to the range; `None` for
    /// NaN and infinities.
    pub fn encode(&self, value: f64) -> Option<i64> {
        let [low, high] = self.range;
        // A cast from f64 saturates.
        value.is_finite().then(|| ((value / self.scale).round() as i64).clamp(low, high))
    }

    /// The real value of an integer.
    pub fn decode(&self, integer: i64) -> f64 {
        integer as f64 * self.scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTE: Fixed = Fixed { scale: 0.25, range: [-128, 127] };

    proptest! {
        #[test]
        fn inside_the_range_the_error_is_half_a_unit(value in -32.0f64..31.75) {
            let integer = BYTE.encode(value);
            prop_assert!(integer.is_some_and(|i| (BYTE.decode(i) - value).abs() <= 0.125));
        }
    }

    #[test]
    fn beyond_the_range_values_saturate_and_nan_is_refused() {
        assert_eq!(
            [1e300, -1e300, 0.125, -0.125].map(|v| BYTE.encode(v)),
            [127, -128, 1, -1].map(Some)
        );
        assert_eq!([f64::NAN, f64::INFINITY].map(|v| BYTE.encode(v)), [None, None]);
    }
}
