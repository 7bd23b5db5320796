//! What a party computes on its own shares: sums, other places, constants. Shares hold
//! the tensors of a run's inputs one after another.

use mpc::Share;
use ring::Modulus;
use ring::word::mask;
use wire::{Result, Role};

use crate::steps::SumStep;

/// Sums over `windows` of each tensor of `inputs` values, mod `modulus` if there is one.
pub(crate) fn pool(
    x: &Share,
    windows: &[Vec<usize>],
    inputs: usize,
    modulus: Option<Modulus>,
) -> Share {
    let add = |sum: u64, word: u64| match modulus {
        Some(modulus) => modulus.add(sum, word),
        None => sum.wrapping_add(word),
    };
    let sum = |words: &[u64], window: &Vec<usize>| {
        let values = window.iter().filter_map(|i| words.get(*i));
        values.fold(0u64, |sum, word| add(sum, *word))
    };
    let tensors = x.words().chunks(inputs.max(1));
    let sums = tensors.flat_map(|words| windows.iter().map(move |window| sum(words, window)));
    Share::new(sums.collect(), x.bits())
}

/// Elements of each tensor of `inputs` values in other places; both parties have zero
/// where there is none.
pub(crate) fn arrange(x: &Share, places: &[Option<usize>], inputs: usize) -> Share {
    let at = |words: &[u64], place: &Option<usize>| {
        place.and_then(|i| words.get(i)).copied().unwrap_or(0)
    };
    let tensors = x.words().chunks(inputs.max(1));
    let moved = tensors.flat_map(|words| places.iter().map(move |place| at(words, place)));
    Share::new(moved.collect(), x.bits())
}

/// Each matrix of so many rows and columns, its columns one after another.
pub(crate) fn transpose(x: &Share, [rows, columns]: [usize; 2]) -> Share {
    let matrices = x.words().chunks_exact((rows * columns).max(1));
    let turned = matrices.flat_map(|words| {
        (0..columns).flat_map(move |column| words.iter().skip(column).step_by(columns))
    });
    Share::new(turned.copied().collect(), x.bits())
}

/// Tensors one after another, for each input those of its own; `lengths` are theirs.
pub(crate) fn concat(parts: &[Share], lengths: &[usize]) -> Share {
    let bits = parts.first().map_or(1, Share::bits);
    let batch = parts.iter().zip(lengths).map(|(part, each)| part.len() / each.max(&1)).max();
    let mut words = Vec::with_capacity(parts.iter().map(Share::len).sum());
    for image in 0..batch.unwrap_or(0) {
        for (part, each) in parts.iter().zip(lengths) {
            words.extend(part.words().iter().skip(image * each).take(*each));
        }
    }
    Share::new(words, bits)
}

/// The server's constants added, to each tensor the same.
pub(crate) fn offset(x: &Share, constants: &[i64]) -> Share {
    let sums = x.words().iter().zip(constants.iter().cycle());
    Share::new(sums.map(|(word, c)| word.wrapping_add(*c as u64)).collect(), x.bits())
}

/// The weighted sum of two tensors, with the half that rounding adds.
pub(crate) fn add(role: Role, sum: &SumStep, x: &Share, y: &Share) -> Result<Share> {
    let half = match (role, sum.shift) {
        (Role::Server, 1..) => 1u64 << (sum.shift - 1),
        _ => 0,
    };
    let zero = Share::new(vec![half & mask(sum.width); x.len()], sum.width);
    Ok(zero
        .add_scaled(&x.narrow(sum.width)?, sum.multipliers[0])
        .add_scaled(&y.narrow(sum.width)?, sum.multipliers[1]))
}

/// The client's positions in a table, `length` of each input, as vectors of zeros with a
/// one, `[rows, length]`; of the server's share of them, which is nothing, zeros. What is
/// written where does not depend on the positions.
pub(crate) fn one_hot(role: Role, [rows, length]: [usize; 2], x: &Share, bits: u32) -> Share {
    let own = u64::from(role == Role::Client);
    let mut words = Vec::with_capacity(rows.saturating_mul(x.len()));
    for positions in x.words().chunks(length.max(1)) {
        for row in 0..rows as u64 {
            words.extend(positions.iter().map(|position| own & u64::from(*position == row)));
        }
    }
    Share::new(words, bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_input_of_a_run_is_rearranged_on_its_own() {
        let x = Share::new(vec![1, 2, 3, 4], 8);
        assert_eq!(arrange(&x, &[Some(1), None], 2).words(), [2, 0, 4, 0]);
        let y = Share::new(vec![9, 8], 8);
        assert_eq!(concat(&[x.clone(), y], &[2, 1]).words(), [1, 2, 9, 3, 4, 8]);
        assert_eq!(offset(&x, &[1, -1]).words(), [2, 1, 4, 3]);
    }
}
