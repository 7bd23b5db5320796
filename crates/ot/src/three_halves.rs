//! AND gates of a half more than one label: three half labels and three bits.
//!
//! | | |
//! |---|---|
//! | In | the zero labels of both operands and Delta; the evaluator's labels of both |
//! | Out | the zero labels of the product and the gate's table; the evaluator's label of the product |
//! | Security | the hash as `gates.rs` has it, for a half of its bits, under three keys a gate (below) |
//! | Cost | 195 bits a gate; six hashes for the garbler, three for the evaluator |
//! | Paper | Rosulek, Roy, "Three halves make a whole? Beating the half-gates lower bound for garbled circuits", CRYPTO 2021 |
//!
//! A label is cut in two, `A = (A_L, A_R)`, its low and its high 64 bits. The evaluator of colours i and j hashes
//! `A`, `B` and `A xor B` to 64 bits each and computes (`+` is exclusive or, x and y are the gate's control bits)
//!
//! ```text
//! E_L = H(A) + H(A+B) + i*G_0 + (i+j)*G_2 + y*A_L + (x+y)*A_R + (x+i)*B_L   + y*B_R
//! E_R = H(B) + H(A+B) + j*G_1 + (i+j)*G_2 + x*A_L + (y+j)*A_R + (x+y+j)*B_L + x*B_R
//! ```
//!
//! With a and b the bits that colour 0 of the operands stands for, `x = x_0 + i*(a+b) + j*b` and
//! `y = y_0 + i*a + j*(a+b)`. These are the coefficients for which eight equations (two halves, four pairs of
//! colours) have a solution in the five unknown halves `C_L, C_R, G_0, G_1, G_2`: sums of the hashes' coefficients
//! and of the others must vanish together. `(x_0, y_0)` is uniform, so that x and y by themselves tell nothing of
//! a and b ("dicing"). They are computed as the halves are, from a 65th bit h of each hash and three bits of table:
//!
//! ```text
//! x   = h(A) + h(A+B) + i*z_0 + (i+j)*z_2        z_0 = h(A_0) + h(A_1) + a
//! x+y = h(B) + h(A+B) + j*z_1 + (i+j)*z_2        z_1 = h(B_0) + h(B_1) + a + b,  z_2 = h(AB_0) + h(AB_1) + b
//! ```
//!
//! The paper draws `(x_0, y_0)` and sends five bits; here they are what the hashes of the labels of colour 0 give,
//! `x_0 = h(A_0) + h(AB_0)` and `x_0 + y_0 = h(B_0) + h(AB_0)`, as half-gates take the product's label from hashes.
//!
//! *Why a table tells nothing.* Each of `G_0, z_0` contains the hash of the label of A that the evaluator does not
//! have, `G_1, z_1` that of B, `G_2, z_2` that of A+B, and no other part of the table does. The rest of each is linear
//! in labels that it has and in Delta, with coefficients that depend on its own colours, on a and b, and on x and y. So a
//! table is uniform to an evaluator if hashes of `X xor Delta` are, with a linear function of Delta added to
//! their 64 bits that may depend on their 65th bit.
//!
//! *The hash.* In the ideal-cipher model an output of a label that was not asked for is uniform, whatever its 65th bit is, so
//! that what is added to the other 64 may depend on it. What could be found by asking the inverse are values
//! `(64 bits, 65th bit)` of the form `trunc(E(s)) = t + trunc(s) + c*Delta_L + d*Delta_R` with
//! `s = sigma(X) + sigma(Delta)`. If `trunc(sigma(Delta)) + c*Delta_L + d*Delta_R` had less than full rank in
//! Delta, guesses of the 63 bits that are cut off would do with less than all of Delta. The words that are kept of
//! four are the first and the last: for words `d_3 .. d_0` of Delta they contribute `d_2` and `d_3 + d_1`, and with
//! either half of Delta, both or none added, this and the 65th bit have rank 65. So an inverse query finds
//! Delta with probability 2^-128, as one of the hash of half-gates does.

use zeroize::Zeroizing;

use crate::gates::{GateHash, Labels, hash_input};

/// Half labels of a gate of one instance.
pub const HALVES: usize = 3;

/// The table of a gate of `L` instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table<const L: usize> {
    /// `G_0`, and above it `G_1`, of each instance.
    pub pairs: [u128; L],
    /// `G_2` of each instance.
    pub thirds: [u64; L],
    /// `z_0`, `z_1` and `z_2`, bit `i` of each being that of instance `i`.
    pub bits: [u8; HALVES],
}

/// Keys that are taken for a gate: three, and one that is left out so that eight hold two gates.
const KEYS: usize = 4;

impl<const L: usize> Table<L> {
    /// A table of zeros, to be written.
    pub const ZERO: Self = Self { pairs: [0; L], thirds: [0; L], bits: [0; HALVES] };
}

/// From the zero labels of `a` and `b` those of `a and b`, and the table, of 1 or 8 instances. Takes four keys.
#[inline]
pub fn garble<const L: usize>(
    hash: &mut GateHash,
    delta: u128,
    [left, right]: [&Labels<L>; 2],
    table: &mut Table<L>,
) -> Labels<L> {
    let (first, mut out) = (hash.next(KEYS), [0; L]);
    if hash.garble_three(first, delta, [left, right], table, &mut out) {
        return out;
    }
    let shift = hash_input(delta, 0);
    // The labels of colour 0: of A, of B and of their sum.
    let mut zeros = Zeroizing::new([[0; L]; HALVES]);
    let blocks = hash.blocks(2 * HALVES * L);
    for lane in 0..L {
        let [a, b] = [left[lane], right[lane]].map(|label| label ^ (colour(label) & delta));
        for (at, label) in [a, b, a ^ b].into_iter().enumerate() {
            let input = hash_input(label, lane as u64);
            zeros[at][lane] = label;
            blocks[2 * L * at + lane] = input;
            blocks[2 * L * at + L + lane] = input ^ shift;
        }
    }
    let blocks = hash.hash_blocks(first, (2 * L).ilog2(), 2 * HALVES * L);
    let delta_halves = halves(delta);
    table.bits = [0; HALVES];
    for lane in 0..L {
        let hashes: [[u128; 2]; HALVES] = std::array::from_fn(|at| {
            [0, L].map(|other| blocks[2 * L * at + other + lane].rotate_left(32))
        });
        let permuted = [left[lane], right[lane]].map(|label| colour(label) as u64);
        let gate = Gate { permuted, delta: delta_halves };
        let (c, [g, z]) = gate.garble([zeros[0][lane], zeros[1][lane]], &hashes);
        out[lane] = c;
        table.pairs[lane] = u128::from(g[0]) | u128::from(g[1]) << 64;
        table.thirds[lane] = g[2];
        for (bits, z) in table.bits.iter_mut().zip(z) {
            *bits |= (z as u8 & 1) << lane;
        }
    }
    out
}

/// From labels of `a` and `b` and the table the labels of `a and b`, of 1 or 8 instances. Takes four keys.
#[inline]
pub fn evaluate<const L: usize>(
    hash: &mut GateHash,
    [left, right]: [&Labels<L>; 2],
    table: &Table<L>,
) -> Labels<L> {
    let (first, mut out) = (hash.next(KEYS), [0; L]);
    if hash.evaluate_three(first, [left, right], table, &mut out) {
        return out;
    }
    let blocks = hash.blocks(HALVES * L);
    for lane in 0..L {
        let (a, b) = (left[lane], right[lane]);
        for (at, label) in [a, b, a ^ b].into_iter().enumerate() {
            blocks[L * at + lane] = hash_input(label, lane as u64);
        }
    }
    let blocks = hash.hash_blocks(first, L.ilog2(), HALVES * L);
    for lane in 0..L {
        let [of_a, of_b, of_sum] = [0, 1, 2].map(|at| blocks[L * at + lane].rotate_left(32));
        let (i, j) = (colour(left[lane]) as u64, colour(right[lane]) as u64);
        let ([g_0, g_1], g_2) = (halves(table.pairs[lane]), table.thirds[lane]);
        let [z_0, z_1, z_2] = table.bits.map(|all| mask(u64::from(all) >> lane));
        let x = control(of_a ^ of_sum) ^ (i & z_0) ^ ((i ^ j) & z_2);
        let y = x ^ control(of_b ^ of_sum) ^ (j & z_1) ^ ((i ^ j) & z_2);
        let known = Known { x, y, i, j };
        let [l, r] = known.sum(left[lane], right[lane]);
        let both = of_sum as u64 ^ ((i ^ j) & g_2);
        let l = l ^ of_a as u64 ^ both ^ (i & g_0);
        let r = r ^ of_b as u64 ^ both ^ (j & g_1);
        out[lane] = u128::from(l) | u128::from(r) << 64;
    }
    out
}

/// Control bits and colours, as masks of all ones or zeros.
#[derive(Clone, Copy)]
struct Known {
    x: u64,
    y: u64,
    i: u64,
    j: u64,
}

impl Known {
    /// What both halves of a result have of the operands' labels.
    #[inline]
    fn sum(self, a: u128, b: u128) -> [u64; 2] {
        let Self { x, y, i, j } = self;
        let ([al, ar], [bl, br]) = (halves(a), halves(b));
        [
            (y & (al ^ br)) ^ ((x ^ y) & ar) ^ ((x ^ i) & bl),
            (x & (al ^ br)) ^ ((y ^ j) & ar) ^ ((x ^ y ^ j) & bl),
        ]
    }
}

/// What the garbler knows of a gate of one instance: what colours 0 stand for, as masks, and both halves of Delta.
#[derive(Clone, Copy)]
struct Gate {
    permuted: [u64; 2],
    delta: [u64; 2],
}

impl Gate {
    /// The zero label of the product, the half labels, and the bits as masks, from labels of colour 0 and the
    /// hashes of both colours of A, of B and of their sum.
    #[inline]
    fn garble(
        self,
        [a_0, b_0]: [u128; 2],
        hashes: &[[u128; 2]; HALVES],
    ) -> (u128, [[u64; HALVES]; 2]) {
        let Self { permuted: [a, b], delta: [dl, dr] } = self;
        let [of_a, of_b, of_sum] = hashes;
        let ([al, ar], [bl, br]) = (halves(a_0), halves(b_0));
        let both = hashes.map(|[zero, one]| zero ^ one);
        let z = [control(both[0]) ^ a, control(both[1]) ^ a ^ b, control(both[2]) ^ b];
        let x = control(of_a[0] ^ of_sum[0]);
        let y = control(of_a[0] ^ of_b[0]);
        // The differences of the equations for two pairs of colours each: (0,0) and (1,1), (0,0) and (0,1).
        let mixed = al ^ br;
        let g_0 = (b & mixed) ^ ((a ^ b) & ar) ^ (!a & bl) ^ ((x ^ y) & dl) ^ ((x ^ a) & dr);
        let g_1 = (a & mixed) ^ (!b & ar) ^ (!(a ^ b) & bl) ^ (!(y ^ b) & dl) ^ ((x ^ y) & dr);
        let g_2 = ((a ^ b) & mixed) ^ (a & ar) ^ (b & bl);
        let g_2 = g_2 ^ ((x ^ a ^ b) & dl) ^ ((y ^ a ^ b) & dr);
        let g = [g_0 ^ both[0] as u64, g_1 ^ both[1] as u64, g_2 ^ both[2] as u64];
        let [l, r] = Known { x, y, i: 0, j: 0 }.sum(a_0, b_0);
        let l = l ^ (of_a[0] ^ of_sum[0]) as u64 ^ (a & b & dl);
        let r = r ^ (of_b[0] ^ of_sum[0]) as u64 ^ (a & b & dr);
        (u128::from(l) | u128::from(r) << 64, [g, z])
    }
}

/// The halves of a label, low and high.
#[inline]
const fn halves(label: u128) -> [u64; 2] {
    [label as u64, (label >> 64) as u64]
}

/// All ones for colour 1, else zero.
#[inline]
const fn colour(label: u128) -> u128 {
    (label & 1).wrapping_neg()
}

/// All ones if the lowest bit is 1, else zero.
#[inline]
const fn mask(bit: u64) -> u64 {
    (bit & 1).wrapping_neg()
}

/// The 65th bit of a hash, as a mask.
#[inline]
const fn control(hash: u128) -> u64 {
    mask((hash >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;
    use ring::simd::Level;

    /// All four pairs of bits under all four pairs of colours, with every level of instructions.
    #[test]
    fn gates_multiply_whatever_bits_and_colours() {
        multiplies::<8>();
        multiplies::<1>();
    }

    fn multiplies<const L: usize>() {
        let mut rng = Random::seeded(2);
        for turn in 0..64u32 {
            let (salt, delta) = (rng.block(), rng.block() | 1);
            let mut labels = [[0; L]; 2];
            for (half, labels) in labels.iter_mut().enumerate() {
                for (lane, label) in labels.iter_mut().enumerate() {
                    let colour = (turn as usize + lane) >> half & 1;
                    *label = rng.block() & !1 | colour as u128;
                }
            }
            let bit = |half: u32, lane: usize| u128::from((turn / 4 + lane as u32) >> half & 1);
            let mut seen = Vec::new();
            for level in Level::available() {
                let (mut garbler, mut evaluator) =
                    (GateHash::new(salt, level), GateHash::new(salt, level));
                // Later gates have other keys.
                for _ in 0..turn % 3 {
                    garbler.next(1);
                    evaluator.next(1);
                }
                let mut table = Table::ZERO;
                let out = garble(&mut garbler, delta, labels.each_ref(), &mut table);
                let input = |half: usize| -> Labels<L> {
                    std::array::from_fn(|lane| {
                        labels[half][lane] ^ (bit(half as u32, lane) * delta)
                    })
                };
                let got = evaluate(&mut evaluator, [&input(0), &input(1)], &table);
                let wanted = (0..L).map(|lane| out[lane] ^ (bit(0, lane) * bit(1, lane) * delta));
                assert!(got.into_iter().eq(wanted), "{level:?}");
                seen.push((out, table));
            }
            assert!(seen.iter().all(|one| *one == seen[0]));
        }
    }

    /// Each half label has one hash of each colour of its own in it, and each bit the 65th bit of one, so that
    /// uniform hashes of inactive labels make uniform tables.
    #[test]
    fn each_part_of_a_table_is_masked_by_its_own_hash() {
        let mut rng = Random::seeded(3);
        for case in 0..16usize {
            let bit = |at: u32| (case >> at & 1) as u64;
            let gate =
                Gate { permuted: [mask(bit(0)), mask(bit(1))], delta: halves(rng.block() | 1) };
            let labels = [rng.block() & !1, rng.block() & !1];
            let hashes: [[u128; 2]; HALVES] =
                std::array::from_fn(|_| std::array::from_fn(|_| rng.block()));
            let inactive = [bit(2), bit(3), bit(2) ^ bit(3)].map(|colour| 1 - colour as usize);
            let (_, [g, z]) = gate.garble(labels, &hashes);
            for part in 0..HALVES {
                let mut other = hashes;
                let change = rng.word() | 1;
                other[part][inactive[part]] ^= u128::from(change);
                let (_, [moved, bits]) = gate.garble(labels, &other);
                for at in 0..HALVES {
                    let wanted = if at == part { change } else { 0 };
                    assert_eq!(g[at] ^ moved[at], wanted, "{case} {part} {at}");
                }
                assert_eq!(z, bits);
                other[part][inactive[part]] ^= 1 << 64;
                let (_, [_, bits]) = gate.garble(labels, &other);
                for at in 0..HALVES {
                    assert_eq!(z[at] ^ bits[at], mask(u64::from(at == part)), "{case} {part}");
                }
            }
        }
    }

    /// What the kept bits of sigma and a linear function of Delta's halves contribute has full rank, so that no
    /// guess of what is cut off finds Delta.
    #[test]
    fn kept_bits_of_the_hash_determine_all_of_their_width() {
        for (low, high) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let rows = (0..128).map(|at| {
                let delta = 1u128 << at;
                let kept = hash_input(delta, 0).rotate_left(32) & (u128::MAX >> 63);
                let [l, r] = halves(delta);
                kept ^ u128::from(l * low) ^ u128::from(r * high)
            });
            assert_eq!(rank(rows.collect()), 65, "{low} {high}");
        }
    }

    fn rank(mut rows: Vec<u128>) -> usize {
        let mut rank = 0;
        for bit in 0..128 {
            let Some(at) = (rank..rows.len()).find(|at| rows[*at] >> bit & 1 == 1) else {
                continue;
            };
            rows.swap(rank, at);
            let pivot = rows[rank];
            rows.iter_mut().skip(rank + 1).filter(|row| **row >> bit & 1 == 1).for_each(|row| {
                *row ^= pivot;
            });
            rank += 1;
        }
        rank
    }
}
