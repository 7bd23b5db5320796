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

/// Of a layer norm's row the factor and what it is moved by, from the sum of its squares
/// and its sum.
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
