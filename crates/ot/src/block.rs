//! 128-bit blocks: `GF(2^128)` times powers of X, and bit-matrix transposition.

/// X^128 = X^7 + X^2 + X + 1.
const REDUCTION: u128 = 0x87;

/// Returns the words of a block, low word first.
#[inline]
pub const fn to_words(block: u128) -> [u64; 2] {
    [block as u64, (block >> 64) as u64]
}

/// Returns the block of two words, the low one first.
#[inline]
pub const fn of_words([low, high]: [u64; 2]) -> u128 {
    low as u128 | (high as u128) << 64
}

/// Returns all ones for a secret bit that is 1, zero for 0. Compilers do not learn that there are
/// only these two: in a loop with a mask of one bit they would take the loop twice, and branch on
/// the bit.
#[inline]
pub fn mask_of_secret(bit: u128) -> u128 {
    std::hint::black_box(bit).wrapping_neg()
}

/// Returns `x * X` in GF(2)\[X\]/(X^128 + X^7 + X^2 + X + 1), bit i of a block being the
/// coefficient of X^i.
#[inline]
pub const fn times_x(x: u128) -> u128 {
    (x << 1) ^ ((x >> 127).wrapping_neg() & REDUCTION)
}

/// Returns `sum_i X^i * blocks[i]`, zero for no blocks.
#[inline]
pub fn combine(blocks: &[u128]) -> u128 {
    blocks.iter().rev().fold(0, |sum, block| times_x(sum) ^ block)
}

/// All `2^m` combinations `sum_i X^i * j_i * delta` of the bits of `j`, written to
/// `out[j]`; `out` holds 2^m blocks.
pub fn multiples(delta: u128, out: &mut [u128]) {
    let mut power = delta;
    let mut done = 1;
    out[..1].fill(0);
    while done < out.len() {
        let (low, high) = out.split_at_mut(done);
        for (to, from) in high.iter_mut().zip(low.iter()) {
            *to = from ^ power;
        }
        power = times_x(power);
        done *= 2;
    }
}

/// Transposes a 128 x 128 bit matrix: bit `j` of `rows[i]` moves to bit `i` of
/// `rows[j]`. Word-parallel butterflies, as in Hacker's Delight, section 7-3.
pub fn transpose(rows: &mut [u128; 128]) {
    stage::<64>(rows, 0x0000_0000_0000_0000_ffff_ffff_ffff_ffff);
    stage::<32>(rows, 0x0000_0000_ffff_ffff_0000_0000_ffff_ffff);
    stage::<16>(rows, 0x0000_ffff_0000_ffff_0000_ffff_0000_ffff);
    stage::<8>(rows, 0x00ff_00ff_00ff_00ff_00ff_00ff_00ff_00ff);
    stage::<4>(rows, 0x0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f);
    stage::<2>(rows, 0x3333_3333_3333_3333_3333_3333_3333_3333);
    stage::<1>(rows, 0x5555_5555_5555_5555_5555_5555_5555_5555);
}

/// Swaps the off-diagonal `HALF x HALF` quarters of every `2*HALF` square.
#[inline]
fn stage<const HALF: usize>(rows: &mut [u128; 128], low: u128) {
    for square in rows.chunks_exact_mut(2 * HALF) {
        let (top, bottom) = square.split_at_mut(HALF);
        for (a, b) in top.iter_mut().zip(bottom) {
            let swap = ((*a >> HALF) ^ *b) & low;
            *a ^= swap << HALF;
            *b ^= swap;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use ring::Random;

    /// Schoolbook multiplication, one bit of `b` at a time.
    fn product(a: u128, b: u128) -> u128 {
        (0..128).rev().fold(0, |sum, i| times_x(sum) ^ (a & ((b >> i) & 1).wrapping_neg()))
    }

    #[test]
    fn combinations_agree_with_field_products() {
        let mut rng = Random::seeded(1);
        let blocks: Vec<u128> = (0..8).map(|_| rng.block()).collect();
        let wanted = blocks.iter().enumerate().fold(0, |s, (i, b)| s ^ product(*b, 1 << i));
        assert_eq!(combine(&blocks), wanted);
        let delta = rng.block();
        let mut all = [0; 256];
        multiples(delta, &mut all);
        for (j, multiple) in all.iter().enumerate() {
            assert_eq!(*multiple, product(delta, j as u128));
        }
    }

    #[test]
    fn reduction_wraps_the_top_bit() {
        assert_eq!(times_x(1 << 127), REDUCTION);
        assert_eq!(times_x(3), 6);
    }

    #[test]
    fn transpose_moves_every_bit() {
        let mut rng = Random::seeded(2);
        let mut rows = [0; 128];
        rows.fill_with(|| rng.block());
        let before = rows;
        transpose(&mut rows);
        for (i, row) in before.iter().enumerate() {
            for (j, column) in rows.iter().enumerate() {
                assert_eq!((row >> j) & 1, (column >> i) & 1);
            }
        }
    }
}
