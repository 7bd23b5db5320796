//! The values of a digit, told apart bit by bit.

use ring::Bits;

/// Says for each value of a digit whether the digit's bits give it.
pub(crate) fn minterms(digit: &[Bits], count: usize) -> Vec<Bits> {
    let mut terms = vec![Bits::zeros(count).not()];
    for bit in digit {
        let with: Vec<Bits> = terms.iter().map(|term| term.and(bit)).collect();
        terms.iter_mut().zip(&with).for_each(|(term, with)| term.xor(with));
        terms.extend(with);
    }
    terms
}
