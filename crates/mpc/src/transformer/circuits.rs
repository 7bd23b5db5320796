//! Boolean circuits of the functions of a row's sums: inverses, factors and means.
//!
//! They compute the integers of [`graph::functions`] bit for bit. What a product with a
//! power of two does there is here a shift by as many places as octaves were reached, a
//! multiplexer for each bit of that number, which comes for free from the flags of the
//! octaves: bit j of the number is the exclusive or of every 2^j-th flag.

use gc::{Builder, Wire, Word};
use graph::functions;
use graph::functions::curve::{Curve, Lines};
use graph::functions::inverse::Inverse;
use wire::{Error, Result};

/// Whether there is a circuit for an inverse.
///
/// # Errors
/// [`Error::Misuse`] for a curve that rises anywhere, which those of inverses do not.
pub(super) fn check(function: &Inverse) -> Result<()> {
    match &function.curve {
        Curve::Lines(lines) if lines.slopes.iter().any(|slope| *slope > 0) => {
            Err(Error::misuse("a circuit for a curve that rises"))
        }
        _ => Ok(()),
    }
}

/// Bits of the largest result.
fn result_bits(function: &Inverse) -> usize {
    (function.most().max(1).ilog2() + 1) as usize
}

/// `function` of `0 <= y < 2^top`, in as many bits as its largest result has.
pub(super) fn inverse(b: &mut Builder, function: &Inverse, y: &[Wire]) -> Word {
    let octave = (function.forth / function.back.max(1)) as usize;
    let reached = reached(b, function, y);
    // The leading part of the lowest octave, and above it what shifts may bring there.
    let [leading, below] = function.leading.map(|bits| bits as usize);
    let longest = leading + octave * ((1 << reached.len()) - 1);
    let lowest = octave * function.back as usize;
    let place = |at: usize| (below + at).checked_sub(lowest).and_then(|at| y.get(at));
    let start: Word = (0..longest).map(|at| place(at).copied().unwrap_or(Wire::ZERO)).collect();
    let leading = moved_down(b, &reached, &start, octave, leading);
    let value = curve(b, &function.curve, &leading);
    // One place more for the bit that rounds.
    let doubled: Word = std::iter::once(Wire::ZERO).chain(value).collect();
    let scaled = moved_down(b, &reached, &doubled, 1, doubled.len());
    let Some((half, rest)) = scaled.split_first() else { return Word::new() };
    let rest: Word = rest.iter().copied().take(result_bits(function)).collect();
    b.sum(&rest, &vec![Wire::ZERO; rest.len()], *half).0
}

/// How many octaves but the first y has reached, in binary.
fn reached(b: &mut Builder, function: &Inverse, y: &[Wire]) -> Word {
    // Thresholds are powers of two in rising order.
    let places = function.thresholds.iter().map(|threshold| threshold.ilog2() as usize);
    let (mut flags, mut upper, mut above) = (Word::new(), y.len(), Wire::ZERO);
    for place in places.rev() {
        let any = b.any(y.get(place..upper).unwrap_or_default());
        (above, upper) = (b.or(above, any), place);
        flags.push(above);
    }
    flags.reverse();
    let bits = usize::BITS - flags.len().leading_zeros();
    let bit = |bit: u32| {
        let every = flags.iter().skip((1 << bit) - 1).step_by(1 << bit);
        every.fold(Wire::ZERO, |sum, flag| b.xor(sum, *flag))
    };
    (0..bits).map(bit).collect()
}

/// `word` moved down by `places * number`, and of that the lowest `bits`.
fn moved_down(b: &mut Builder, number: &[Wire], word: &[Wire], places: usize, bits: usize) -> Word {
    let mut word = word.to_vec();
    for (at, bit) in number.iter().enumerate().rev() {
        let by = places << at;
        // What lower bits of the number may still bring down is kept.
        let kept = word.len().min(bits + by - places);
        word.resize(word.len().max(kept + by), Wire::ZERO);
        let (low, high) = (word.get(..kept), word.get(by..kept + by));
        word = b.mux(*bit, high.unwrap_or_default(), low.unwrap_or_default());
    }
    word.truncate(bits);
    word
}

/// The curve's value at `z`, which [`check`] has let pass.
fn curve(b: &mut Builder, curve: &Curve, z: &[Wire]) -> Word {
    let lines = match curve {
        Curve::Whole(entries) => {
            let largest = entries.iter().max().copied().unwrap_or(0);
            let hot = b.one_hot(z);
            return b.look_up(&hot, entries, bits_of(largest));
        }
        Curve::Lines(lines) => lines,
    };
    let (low, piece) = z.split_at((lines.drop as usize).min(z.len()));
    let hot = b.one_hot(piece);
    let Lines { starts, slopes, .. } = lines;
    let steps = (1i64 << lines.drop) - 1;
    // From a piece's end upwards, as the slope is not above zero: the distance from the
    // end is the complement of the lower bits.
    let pieces = starts.iter().zip(slopes);
    let ends: Vec<u64> = pieces.map(|(s, slope)| (*s as i64 + slope * steps) as u64).collect();
    let falls: Vec<u64> = slopes.iter().map(|slope| slope.unsigned_abs()).collect();
    let wide = |table: &[u64]| bits_of(table.iter().max().copied().unwrap_or(0));
    let end = b.look_up(&hot, &ends, wide(&ends));
    let fall = b.look_up(&hot, &falls, wide(&falls));
    let bits = bits_of(starts.iter().max().copied().unwrap_or(0));
    let mut columns = vec![Word::new(); bits];
    columns.iter_mut().zip(end).for_each(|(column, wire)| column.push(wire));
    for (i, wire) in low.iter().enumerate() {
        for (column, fall) in columns.iter_mut().skip(i).zip(&fall) {
            column.push(b.and(wire.negated(), *fall));
        }
    }
    b.compressed(columns).split_off(bits.min(lines.fraction as usize))
}

fn bits_of(largest: u64) -> usize {
    (u64::BITS - largest.leading_zeros()).max(1) as usize
}

/// The factor of a layer norm's row, and what the row is moved by mod 2^element, from the sum
/// of its squares and its sum.
pub(super) fn factor_and_mean(
    b: &mut Builder,
    norm: &functions::LayerNorm,
    inverse_root: &Inverse,
    [squares, sum]: [&[Wire]; 2],
) -> [Word; 2] {
    let top = (inverse_root.bits - 1) as usize;
    let scaled = b.times(squares, norm.cols as u64, top);
    let squared = b.square(sum, top);
    let variance = b.subtract(&scaled, &squared);
    let factor = inverse(b, inverse_root, &variance);
    let product = b.multiply(sum, &factor, 0, 0, sum.len() + factor.len());
    let (quotient, shift) = norm.quotient;
    let bits = (product.len() + bits_of(quotient as u64)).min((shift + norm.element) as usize);
    let mean = b.times(&product, quotient as u64, bits).split_off(bits.min(shift as usize));
    [factor, mean]
}

/// The factor of an RMS norm's row, from the sum of its squares.
pub(super) fn factor(
    b: &mut Builder,
    norm: &functions::LayerNorm,
    inverse_root: &Inverse,
    squares: &[Wire],
) -> Word {
    let scaled = b.times(squares, norm.cols as u64, (inverse_root.bits - 1) as usize);
    inverse(b, inverse_root, &scaled)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use graph::functions::inverse::Power;
    use ring::Random;

    /// What a circuit of words of the garbler makes of so many values of each.
    fn outputs(circuit: &gc::Circuit, widths: &[u32], values: &[Vec<u64>]) -> Vec<Vec<i64>> {
        let count = values.first().map_or(0, Vec::len);
        let mut results = vec![Vec::new(); circuit.outputs()];
        for start in (0..count).step_by(64) {
            let lanes = start..count.min(start + 64);
            let plane = |words: &[u64], bit: u32| {
                let bits = words[lanes.clone()].iter().enumerate();
                bits.fold(0, |plane, (lane, word)| plane | (word >> bit & 1) << lane)
            };
            let words = widths.iter().zip(values);
            let planes: Vec<u64> = words
                .flat_map(|(width, words)| (0..*width).map(move |bit| plane(words, bit)))
                .collect();
            let found = circuit.run_many(&planes, &[]);
            let pairs = results.iter_mut().zip(found);
            pairs.for_each(|(all, found)| all.extend(&found[..lanes.len()]));
        }
        results
    }

    /// The edges of every octave and random values of every length.
    fn arguments(function: &Inverse, rng: &mut Random) -> Vec<u64> {
        let top = function.bits - 1;
        let mut values: Vec<u64> = (0..top).map(|bit| 1 << bit).collect();
        values.extend(values.clone().iter().flat_map(|edge| [edge - 1, edge + 1]));
        values.extend(function.thresholds.iter().map(|t| *t as u64 - 1));
        values.push((1 << top) - 1);
        for bits in 1..=top {
            values.extend(rng.uniform(300, bits));
        }
        values.iter().map(|y| y & ((1 << top) - 1)).collect()
    }

    #[test]
    fn inverses_are_those_of_the_clear_function_whatever_the_argument() {
        let mut rng = Random::seeded(78);
        for (power, sizes, peak, out_bits, most) in [
            (Power::Reciprocal, [20, 8], 1016.0, 11, 300),
            (Power::Reciprocal, [14, 2], 100.0, 8, 320),
            (Power::Reciprocal, [18, 13], 16_376.0, 15, 460),
            (Power::Reciprocal, [3, 2], 7.0, 4, 40),
            (Power::Reciprocal, [19, 6], 1016.0, 11, 290),
            (Power::Root, [22, 6], 2040.0, 12, 370),
            (Power::Root, [14, 2], 100.0, 9, 290),
            (Power::Root, [20, 10], 80_186.0, 18, 560),
            (Power::Root, [0, 7], 500.0, 10, 370),
        ] {
            let function = Inverse::new(power, sizes, peak, out_bits).unwrap();
            check(&function).unwrap();
            let top = function.bits - 1;
            let mut builder = Builder::new();
            let y = builder.garbler(top);
            let result = inverse(&mut builder, &function, &y);
            builder.output(&result, false);
            let circuit = builder.finish().unwrap();
            assert!(circuit.and_gates() <= most, "{power:?} {sizes:?}: {circuit:?}");
            let values = arguments(&function, &mut rng);
            let want: Vec<i64> = values.iter().map(|y| function.clear(*y as i64)).collect();
            assert_eq!(outputs(&circuit, &[top], &[values])[0], want, "{power:?} {sizes:?}");
        }
    }

    #[test]
    fn factors_and_means_are_those_of_the_clear_function() {
        let mut rng = Random::seeded(79);
        for (cols, bits, least, unit, out_bits, most) in [
            (384, 13, 2, 104.409, 14, 1900),
            (384, 9, 3, 100.0, 40, 1500),
            (768, 9, 2, 16.0, 10, 1500),
            (312, 12, 2, 100.0, 16, 2000),
            (128, 12, 2, 100.0, 16, 1700),
            (5, 12, 3, 100.0, 16, 1500),
            (2, 5, 1, 4.0, 6, 500),
        ] {
            let calibration = functions::Calibration { least, unit };
            let norm = functions::LayerNorm::new(cols, bits, calibration, out_bits).unwrap();
            let functions::root::Rooted::Table(root) = &norm.root else { unreachable!() };
            let widths = [super::super::moments::squares_bits(&norm) - 1, norm.sum_bits - 1];
            let mut builder = Builder::new();
            let [squares, sum] = widths.map(|width| builder.garbler(width));
            let found = factor_and_mean(&mut builder, &norm, root, [&squares, &sum]);
            found.iter().for_each(|word| builder.output(word, false));
            let circuit = builder.finish().unwrap();
            assert!(circuit.and_gates() <= most, "{cols} {bits}: {circuit:?}");
            let rows = (0..400).map(|_| {
                let narrow = 1 + rng.uniform(1, bits - 1)[0];
                let base = rng.uniform(1, bits - 1)[0] % ((1 << (bits - 1)) - narrow + 1);
                let row = rng.uniform(cols, bits - 1);
                row.iter().map(|x| base + x % narrow).collect::<Vec<u64>>()
            });
            let rows: Vec<Vec<u64>> = rows.collect();
            let sums: Vec<u64> = rows.iter().map(|row| row.iter().sum()).collect();
            let squares: Vec<u64> =
                rows.iter().map(|row| row.iter().map(|x| x * x).sum()).collect();
            let pairs = squares.iter().zip(&sums);
            let (factors, means): (Vec<i64>, Vec<i64>) = pairs
                .map(|(squares, sum)| {
                    let factor = root.clear((cols as u64 * squares - sum * sum) as i64);
                    let product = i128::from(*sum) * i128::from(factor);
                    let mean = (product * i128::from(norm.quotient.0)) >> norm.quotient.1;
                    (factor, mean as i64 & ((1 << norm.element) - 1))
                })
                .unzip();
            let got = outputs(&circuit, &widths, &[squares, sums]);
            assert!(got == [factors, means], "{cols} {bits}");
        }
    }
}
