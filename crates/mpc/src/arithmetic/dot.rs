//! Inner products of shared vectors.
//!
//! | | |
//! |---|---|
//! | In | shares of `rows` pairs of vectors, row after row; correlations |
//! | Out | shares of each row's inner product mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | that of `rows * inner` products ([`Dot::cost`]) |
//! | Paper | Rathee et al., SiRNN (S&P 2021), section III-C; sums are local |
//!
//! Every element has a choice of its own, so nothing can be summed before it is sent.

use wire::{Channel, Cost, Error, Result};

use crate::arithmetic::multiply::{self, Factor, Multiply};
use crate::boolean::compare::Radix;
use crate::correlations::{Correlations, Demand};
use crate::protocol::Protocol;
use crate::share::Share;

/// The public plan of inner products.
#[derive(Clone, Debug)]
pub struct Dot {
    inner: usize,
    multiply: Multiply,
}

impl Dot {
    /// Plans `rows` products of vectors of `inner >= 1` elements, mod 2^out_bits (1 to 63).
    ///
    /// # Errors
    /// [`Error::Misuse`] for empty vectors and widths out of range.
    pub fn new(
        rows: usize,
        inner: usize,
        factors: [Factor; 2],
        out_bits: u32,
        radix: Radix,
    ) -> Result<Self> {
        let count = rows.checked_mul(inner).filter(|_| inner > 0);
        let count = count.ok_or_else(|| Error::misuse("inner products of this size"))?;
        Ok(Self { inner, multiply: Multiply::new(count, factors, out_bits, radix)? })
    }

    /// Returns the correlations that a run consumes.
    pub fn demand(&self) -> Demand {
        self.multiply.demand()
    }

    /// Returns what [`run`] costs.
    pub fn cost(&self) -> Cost {
        self.multiply.cost()
    }
}

/// Multiplies and adds up.
///
/// # Errors
/// As [`multiply::run`].
pub fn run(
    channel: &mut Channel,
    plan: &Dot,
    x: &Share,
    y: &Share,
    ots: Correlations,
) -> Result<Share> {
    let products = multiply::run(channel, &plan.multiply, x, y, ots)?;
    let rows = products.words().chunks_exact(plan.inner);
    let sum = |row: &[u64]| row.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
    Ok(Share::new(rows.map(sum).collect(), products.bits()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::boolean::wrap::Sign;
    use crate::testing::{both, split};
    use ring::Random;
    use ring::word::signed;

    #[test]
    fn rows_add_up_beyond_the_width_of_a_product() {
        let mut rng = Random::seeded(41);
        for (rows, inner, m, n, out_bits) in [(1, 1, 3, 3, 6), (7, 16, 8, 6, 18), (3, 5, 8, 8, 12)]
        {
            let count = rows * inner;
            let [x, y] = [m, n].map(|bits| -> Vec<i64> {
                rng.uniform(count, bits).iter().map(|word| signed(*word, bits)).collect()
            });
            let factors = [m, n].map(|bits| Factor { bits, sign: Sign::Unknown });
            let plan = Dot::new(rows, inner, factors, out_bits, Radix::Four).unwrap();
            let ((a, b), (c, d)) = (split(&mut rng, &x, m), split(&mut rng, &y, n));
            let (ours, theirs) = both(
                &mut rng,
                &plan.demand(),
                |ch, ots| run(ch, &plan, &a, &c, ots),
                |ch, ots| run(ch, &plan, &b, &d, ots),
            );
            assert_eq!(ours.cost, plan.cost());
            let got = Share::reconstruct(&ours.value.unwrap(), &theirs.value.unwrap());
            let products: Vec<i64> = x.iter().zip(&y).map(|(x, y)| x * y).collect();
            let want =
                products.chunks(inner).map(|row| signed(row.iter().sum::<i64>() as u64, out_bits));
            assert_eq!(got, want.collect::<Vec<_>>());
        }
    }

    #[test]
    fn empty_and_endless_vectors_are_refused() {
        let factors = [Factor { bits: 4, sign: Sign::Unknown }; 2];
        for (rows, inner) in [(3, 0), (usize::MAX, 2)] {
            assert!(Dot::new(rows, inner, factors, 8, Radix::Four).is_err());
        }
    }
}
