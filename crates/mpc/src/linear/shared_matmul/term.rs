//! Where the entries of two matrices sit in polynomials.
//!
//! A block of `r*k` entries of the left matrix and one of `k*c` of the right, with
//! `r*k*c <= N`, are multiplied as
//!
//! `L = sum of a[i][l] * X^(c*(i*k + k-1-l))`, `R = sum of b[l][j] * X^(c*l + j)`.
//!
//! The product of `a[i][l]` and `b[m][j]` lands at `c*(i*k + k-1 + m-l) + j`, which is the
//! place `c*(i*k + k-1) + j` of the output `(i, j)` for l = m only. What reaches beyond N
//! comes back below `c*(k-1)`, where no output is.

use ring::word::mask;
use zeroize::Zeroizing;

/// A matrix in the row-major order of its own or of its transpose.
#[derive(Clone, Copy, Debug)]
struct Order {
    row: usize,
    column: usize,
}

impl Order {
    fn at(self, row: usize, column: usize) -> usize {
        row * self.row + column * self.column
    }
}

/// Rows, columns of the left matrix, and columns of the right one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) rows: usize,
    pub(super) inner: usize,
    pub(super) columns: usize,
}

impl Sizes {
    /// The sizes of the product of the transposes.
    pub(super) const fn transposed(self) -> Self {
        Self { rows: self.columns, inner: self.inner, columns: self.rows }
    }
}

/// A product of two matrices, cut into blocks.
#[derive(Clone, Debug)]
pub(super) struct Term {
    sizes: Sizes,
    block: Sizes,
    left: Order,
    right: Order,
    output: Order,
    transposed: bool,
}

/// Coefficient and entry of a matrix.
type Place = (usize, usize);

impl Term {
    /// `a * b` with `a` on the left, in blocks of at most the matrices' sizes, or of more
    /// columns.
    pub(super) fn new(sizes: Sizes, block: Sizes) -> Self {
        let order = |row| Order { row, column: 1 };
        let (left, right) = (order(sizes.inner), order(sizes.columns));
        Self { sizes, block, left, right, output: order(sizes.columns), transposed: false }
    }

    /// The product as the transpose of `b^T * a^T`, with `b^T` on the left. `block` is a block
    /// of the transposed product.
    pub(super) fn transposed(sizes: Sizes, block: Sizes) -> Self {
        let order = |column| Order { row: 1, column };
        let (left, right) = (order(sizes.columns), order(sizes.inner));
        let sizes = sizes.transposed();
        Self { sizes, block, left, right, output: left, transposed: true }
    }

    /// The left and the right factor among `a` and `b`.
    pub(super) fn factors<T>(&self, a: T, b: T) -> (T, T) {
        if self.transposed { (b, a) } else { (a, b) }
    }

    /// Numbers of blocks.
    pub(super) fn grid(&self) -> Sizes {
        Sizes {
            rows: self.sizes.rows.div_ceil(self.block.rows),
            inner: self.sizes.inner.div_ceil(self.block.inner),
            columns: self.sizes.columns.div_ceil(self.block.columns),
        }
    }

    /// Sizes of a whole block.
    pub(super) fn block(&self) -> Sizes {
        self.block
    }

    /// The blocks of the left matrix mod 2^bits, row by row of blocks.
    pub(super) fn left(&self, a: &[u64], bits: u32, degree: usize) -> Vec<Zeroizing<Vec<u64>>> {
        let grid = self.grid();
        let blocks = pairs(grid.rows, grid.inner);
        blocks.map(|(i, l)| spread(a, bits, degree, self.left_places(i, l))).collect()
    }

    /// Coefficients of the right matrix's blocks that are not zero by their place alone, as a
    /// power of two.
    pub(super) fn filled(&self) -> usize {
        (self.block.inner * self.block.columns).next_power_of_two()
    }

    /// The blocks of the right matrix mod 2^bits, row by row of blocks.
    pub(super) fn right(&self, b: &[u64], bits: u32, degree: usize) -> Vec<Zeroizing<Vec<u64>>> {
        let grid = self.grid();
        let blocks = pairs(grid.inner, grid.columns);
        blocks.map(|(l, j)| spread(b, bits, degree, self.right_places(l, j))).collect()
    }

    /// Coefficients, ascending, and entries of the result's block in row `i` and
    /// column `j` of blocks.
    pub(super) fn outputs(&self, i: usize, j: usize) -> impl Iterator<Item = Place> + Clone {
        let Self { sizes, block, output, .. } = *self;
        let (rows, columns) = (block.rows, block.columns);
        let (first, left) = (i * rows, j * columns);
        let entries = pairs(rows.min(sizes.rows - first), columns.min(sizes.columns - left));
        entries.map(move |(row, column)| {
            let coefficient = columns * (row * block.inner + block.inner - 1) + column;
            (coefficient, output.at(first + row, left + column))
        })
    }

    fn left_places(&self, i: usize, l: usize) -> impl Iterator<Item = Place> {
        let Self { sizes, block, left, .. } = *self;
        let (first, inside) = (i * block.rows, l * block.inner);
        let rows = block.rows.min(sizes.rows - first);
        pairs(rows, block.inner.min(sizes.inner - inside)).map(move |(row, at)| {
            let coefficient = block.columns * (row * block.inner + block.inner - 1 - at);
            (coefficient, left.at(first + row, inside + at))
        })
    }

    fn right_places(&self, l: usize, j: usize) -> impl Iterator<Item = Place> {
        let Self { sizes, block, right, .. } = *self;
        let (inside, first) = (l * block.inner, j * block.columns);
        let inner = block.inner.min(sizes.inner - inside);
        pairs(inner, block.columns.min(sizes.columns - first)).map(move |(at, column)| {
            (block.columns * at + column, right.at(inside + at, first + column))
        })
    }
}

/// Left blocks in one polynomial, to be unfolded: block u times X^u.
pub(super) fn fold(blocks: &[Zeroizing<Vec<u64>>]) -> Zeroizing<Vec<u64>> {
    let mut folded =
        Zeroizing::new(blocks.first().map_or_else(Vec::new, |block| vec![0; block.len()]));
    for (u, block) in blocks.iter().enumerate() {
        folded.iter_mut().skip(u).zip(block.iter()).for_each(|(to, from)| *to |= from);
    }
    folded
}

/// All pairs below `rows` and `columns`, row by row.
pub(super) fn pairs(rows: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
    (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
}

fn spread(
    words: &[u64],
    bits: u32,
    degree: usize,
    places: impl Iterator<Item = Place>,
) -> Zeroizing<Vec<u64>> {
    let mut polynomial = Zeroizing::new(vec![0; degree]);
    for (coefficient, entry) in places {
        if let (Some(to), Some(word)) = (polynomial.get_mut(coefficient), words.get(entry)) {
            *to = word & mask(bits);
        }
    }
    polynomial
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of all blocks, in the order of the entries.
    fn product(term: &Term, a: &[u64], b: &[u64], entries: usize) -> Vec<Option<u64>> {
        const DEGREE: usize = 64;
        let (a, b) = term.factors(a, b);
        let (left, right) = (term.left(a, 8, DEGREE), term.right(b, 8, DEGREE));
        let (grid, mut got) = (term.grid(), vec![None; entries]);
        for (i, j) in pairs(grid.rows, grid.columns) {
            let mut sum = vec![0u64; DEGREE];
            for l in 0..grid.inner {
                let (x, y) = (&left[i * grid.inner + l], &right[l * grid.columns + j]);
                for (s, t) in pairs(DEGREE, DEGREE) {
                    let sign = if s + t < DEGREE { 1 } else { u64::MAX };
                    let term = (x[s] * y[t]).wrapping_mul(sign);
                    sum[(s + t) % DEGREE] = sum[(s + t) % DEGREE].wrapping_add(term);
                }
            }
            let places: Vec<_> = term.outputs(i, j).collect();
            assert!(places.windows(2).all(|pair| pair[0].0 < pair[1].0));
            places.iter().for_each(|(at, to)| got[*to] = Some(sum[*at]));
        }
        got
    }

    #[test]
    fn outputs_are_where_products_meet() {
        let sizes = Sizes { rows: 5, inner: 7, columns: 6 };
        let a: Vec<u64> = (0..35).map(|i| i * 37 % 101).collect();
        let b: Vec<u64> = (0..42).map(|i| i * 53 % 97).collect();
        let want = pairs(5, 6).map(|(i, j)| (0..7).map(|l| a[i * 7 + l] * b[l * 6 + j]).sum());
        let want: Vec<Option<u64>> = want.map(Some).collect();
        for (rows, inner, columns) in [(2, 8, 4), (5, 2, 6), (3, 7, 3), (1, 1, 8), (5, 4, 3)] {
            let block = Sizes { rows, inner, columns };
            assert_eq!(product(&Term::new(sizes, block), &a, &b, 30), want, "{block:?}");
            assert_eq!(product(&Term::transposed(sizes, block), &a, &b, 30), want, "{block:?}");
        }
    }

    #[test]
    fn folded_blocks_lie_side_by_side() {
        let block = Sizes { rows: 2, inner: 3, columns: 4 };
        let term = Term::new(Sizes { rows: 4, inner: 6, columns: 4 }, block);
        let a: Vec<u64> = (1..=24).collect();
        let blocks = term.left(&a, 8, 24);
        let folded = fold(&blocks);
        let mut sorted = folded.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, a);
        for (u, block) in blocks.iter().enumerate() {
            let part = folded.iter().skip(u).step_by(4);
            assert!(part.eq(block.iter().step_by(4)));
        }
    }
}
