//! Arithmetic on words of wires, with as few AND gates as are known for each operation.
//!
//! Constants and repeated wires cost nothing: adding a public number, or a public number
//! times a bit, has the gates of its carries only. Gates whose result nobody reads (the
//! last carry of a sum mod 2^n, say) are left out by [`Builder::finish`]. Words are
//! unsigned or in two's complement; operands of one operation are equally long.

use crate::circuit::{Builder, Wire, Word};

/// A value of a tournament and what follows it.
pub type Entry = (Word, Word);

impl Builder {
    /// Returns `width` bits of a public number.
    pub fn constant(value: i64, width: usize) -> Word {
        let bit = |at: usize| value >> at.min(63) & 1 == 1;
        (0..width).map(|at| Wire::constant(bit(at))).collect()
    }

    /// Returns the word with its top bit repeated up to `width` bits.
    pub fn extended(word: &[Wire], width: usize) -> Word {
        let top = word.last().copied().unwrap_or(Wire::ZERO);
        word.iter().copied().chain(std::iter::repeat(top)).take(width.max(word.len())).collect()
    }

    /// Returns `a + b + carry` and the carry out: one AND gate a bit.
    pub fn sum(&mut self, a: &[Wire], b: &[Wire], mut carry: Wire) -> (Word, Wire) {
        let mut sum = Word::with_capacity(a.len());
        for (a, b) in a.iter().zip(b) {
            let (bit, next) = self.full_adder(*a, *b, carry);
            sum.push(bit);
            carry = next;
        }
        (sum, carry)
    }

    /// Three bits added up: one AND gate.
    fn full_adder(&mut self, a: Wire, b: Wire, c: Wire) -> (Wire, Wire) {
        let (left, right) = (self.xor(a, c), self.xor(b, c));
        let both = self.and(left, right);
        (self.xor(left, b), self.xor(both, c))
    }

    /// Returns `a + b` mod 2^n: n - 1 AND gates.
    pub fn add(&mut self, a: &[Wire], b: &[Wire]) -> Word {
        self.sum(a, b, Wire::ZERO).0
    }

    /// Returns `a - b` mod 2^n.
    pub fn subtract(&mut self, a: &[Wire], b: &[Wire]) -> Word {
        let negated: Word = b.iter().map(|wire| wire.negated()).collect();
        self.sum(a, &negated, Wire::ONE).0
    }

    /// Returns `a + constant` mod 2^n: no gate below the constant's lowest one.
    pub fn add_constant(&mut self, a: &[Wire], constant: i64) -> Word {
        let constant = Self::constant(constant, a.len());
        self.add(a, &constant)
    }

    /// Returns `a + (if bit {if_one} else {if_zero})` mod 2^n. The constant's bits are 0, 1, the
    /// bit or its negation, so that choosing is free.
    pub fn add_either(&mut self, a: &[Wire], bit: Wire, if_one: i64, if_zero: i64) -> Word {
        let [one, zero] = [if_one, if_zero].map(|value| Self::constant(value, a.len()));
        let chosen = self.mux(bit, &one, &zero);
        self.add(a, &chosen)
    }

    /// Returns `a < b`, unsigned: n AND gates.
    pub fn less(&mut self, a: &[Wire], b: &[Wire]) -> Wire {
        let negated: Word = b.iter().map(|wire| wire.negated()).collect();
        self.sum(a, &negated, Wire::ONE).1.negated()
    }

    /// Returns `a < b` in two's complement: n AND gates.
    pub fn less_signed(&mut self, a: &[Wire], b: &[Wire]) -> Wire {
        let [a, b] = [a, b].map(|word| {
            let mut moved = word.to_vec();
            moved.iter_mut().rev().take(1).for_each(|top| *top = top.negated());
            moved
        });
        self.less(&a, &b)
    }

    /// Returns `a >= constant`, unsigned.
    pub fn at_least(&mut self, a: &[Wire], constant: u64) -> Wire {
        let constant = Self::constant(constant as i64, a.len());
        self.less(a, &constant).negated()
    }

    /// Returns `if_one` where `bit` is 1, else `if_zero`: an AND gate for each bit in which the two
    /// are not known to agree.
    pub fn mux(&mut self, bit: Wire, if_one: &[Wire], if_zero: &[Wire]) -> Word {
        let pairs = if_one.iter().zip(if_zero);
        pairs.map(|(one, zero)| self.select(bit, *one, *zero)).collect()
    }

    /// Returns every bit times `bit`.
    pub fn gated(&mut self, bit: Wire, word: &[Wire]) -> Word {
        word.iter().map(|wire| self.and(bit, *wire)).collect()
    }

    /// Returns whether any bit is 1.
    pub fn any(&mut self, bits: &[Wire]) -> Wire {
        bits.iter().fold(Wire::ZERO, |any, bit| self.or(any, *bit))
    }

    /// Returns the larger in two's complement; of equal ones `a`: 2n AND gates.
    pub fn max(&mut self, a: &[Wire], b: &[Wire]) -> Word {
        let less = self.less_signed(a, b);
        self.mux(less, b, a)
    }

    /// Returns the largest of all words in two's complement and what follows it, the first of equal
    /// ones; a tree. Nothing for no entries.
    pub fn largest(&mut self, mut entries: Vec<Entry>) -> Option<Entry> {
        while entries.len() > 1 {
            let mut winners = Vec::with_capacity(entries.len().div_ceil(2));
            for pair in entries.chunks(2) {
                winners.push(match pair {
                    [(a, first), (b, second)] => {
                        let less = self.less_signed(a, b);
                        (self.mux(less, b, a), self.mux(less, second, first))
                    }
                    rest => rest.first().cloned()?,
                });
            }
            entries = winners;
        }
        entries.pop()
    }

    /// Returns a signed word clamped to `0 ..= 2^bits - 1`: an AND gate for each bit that stays and
    /// each that goes, but the sign.
    pub fn clamp(&mut self, word: &[Wire], bits: usize) -> Word {
        let Some((low, inside, above)) = self.limits(word, bits) else { return Word::new() };
        let bit = |wire: &Wire| {
            let kept = self.and(*wire, inside);
            self.xor(kept, above)
        };
        low.iter().map(bit).collect()
    }

    /// Declares the next output: what [`Builder::clamp`] gives, without the gates of bits that stay. They are
    /// projected where the word is within its limits, which circuits with tagged outputs can do.
    pub fn output_clamped(&mut self, word: &[Wire], bits: usize) {
        let limits = self.limits(word, bits);
        let changing = |wires: &[Wire]| wires.iter().all(|wire| wire.known().is_none());
        match limits {
            Some((low, inside, above)) if changing(low) && changing(&[inside, above]) => {
                self.output_where(inside, low, (above, (1 << low.len()) - 1));
            }
            _ => {
                let clamped = self.clamp(word, bits);
                self.output(&clamped, false);
            }
        }
    }

    /// The bits that stay of a signed word, whether it is from 0 to `2^bits - 1`, and whether it is above.
    fn limits<'a>(&mut self, word: &'a [Wire], bits: usize) -> Option<(&'a [Wire], Wire, Wire)> {
        let (sign, rest) = word.split_last()?;
        let (low, high) = rest.split_at(bits.min(rest.len()));
        let positive = sign.negated();
        let any = self.any(high);
        let above = self.and(positive, any);
        Some((low, self.xor(positive, above), above))
    }

    /// Returns `a * b` without the partial products of bits `i, j` with `i + j < cut`, plus
    /// `constant`, all above bit `cut`: `floor((kept + constant * 2^cut) / 2^cut)` mod 2^bits. With
    /// `cut` 0 the product.
    pub fn multiply(
        &mut self,
        a: &[Wire],
        b: &[Wire],
        cut: usize,
        constant: u64,
        bits: usize,
    ) -> Word {
        let mut columns = vec![Word::new(); bits];
        for (at, column) in columns.iter_mut().enumerate().take(64) {
            if constant >> at & 1 == 1 {
                column.push(Wire::ONE);
            }
        }
        for (i, a) in a.iter().enumerate() {
            for (j, b) in b.iter().enumerate() {
                let column = (i + j).checked_sub(cut).and_then(|at| columns.get_mut(at));
                if let Some(column) = column {
                    column.push(self.and(*a, *b));
                }
            }
        }
        self.compressed(columns)
    }

    /// Returns the sum of bits by weight, mod 2^(number of columns): an AND gate for each bit that
    /// goes, and at most one more a column.
    pub fn compressed(&mut self, mut columns: Vec<Word>) -> Word {
        let mut sum = Word::with_capacity(columns.len());
        for at in 0..columns.len() {
            let mut column = std::mem::take(&mut columns[at]);
            column.retain(|wire| *wire != Wire::ZERO);
            let mut carries = Word::new();
            while column.len() > 1 {
                let rest = column.split_off(column.len().saturating_sub(3));
                let [a, b] = [rest[0], rest[1]];
                let c = rest.get(2).copied().unwrap_or(Wire::ZERO);
                let (bit, carry) = self.full_adder(a, b, c);
                column.insert(0, bit);
                carries.push(carry);
            }
            sum.push(column.pop().unwrap_or(Wire::ZERO));
            if let Some(next) = columns.get_mut(at + 1) {
                next.extend(carries);
            }
        }
        sum
    }

    /// Returns one wire for each value of `word`, of which one is 1: 2^n - n - 1 AND gates.
    pub fn one_hot(&mut self, word: &[Wire]) -> Word {
        let (low, high) = match word {
            [] => return vec![Wire::ONE],
            [bit] => return vec![bit.negated(), *bit],
            _ => word.split_at(word.len() / 2),
        };
        let (low, high) = (self.one_hot(low), self.one_hot(high));
        self.outer(&high, &low)
    }

    /// All products of two one-hot lists. As each list sums up to 1, the products with its
    /// last wire follow from the others.
    fn outer(&mut self, high: &[Wire], low: &[Wire]) -> Word {
        let (Some((_, highs)), Some((last, lows))) = (high.split_last(), low.split_last()) else {
            return Word::new();
        };
        let mut all = Word::with_capacity(high.len() * low.len());
        let (mut column, mut corner) = (lows.to_vec(), *last);
        for high in highs {
            let mut rest = *high;
            for (low, left) in lows.iter().zip(&mut column) {
                let both = self.and(*high, *low);
                all.push(both);
                rest = self.xor(rest, both);
                *left = self.xor(*left, both);
            }
            all.push(rest);
            corner = self.xor(corner, rest);
        }
        all.extend(column);
        all.push(corner);
        all
    }

    /// Returns the entry of a public table at a one-hot position; free.
    pub fn look_up(&mut self, one_hot: &[Wire], table: &[u64], bits: usize) -> Word {
        let bit = |at: usize| {
            let chosen = one_hot.iter().zip(table).filter(|(_, entry)| **entry >> at & 1 == 1);
            chosen.fold(Wire::ZERO, |sum, (wire, _)| self.xor(sum, *wire))
        };
        (0..bits).map(bit).collect()
    }
}
