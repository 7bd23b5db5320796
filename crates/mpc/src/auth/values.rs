//! Integers with tags, and the linear maps that both parties apply to their parts.

use std::fmt;

use gc::tagged::{ALPHA_BITS, EvaluatorShare, GarblerShare, MacKeys};
use wire::Result;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::defect::defect;

/// The client's integers `v` and their tags `m`, both mod 2^modulus. What they stand for is `v` mod
/// `2^(modulus - 40)`; the bits above are part of what is tagged.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Values {
    pub(super) values: Vec<u128>,
    pub(super) tags: Vec<u128>,
    modulus: u32,
}

/// The server's keys `beta` of these integers: `m = alpha*v + beta` mod 2^modulus.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Keys {
    pub(super) betas: Vec<u128>,
    modulus: u32,
}

/// Returns the low `bits` ones, 1 to 128.
pub(super) const fn ones(bits: u32) -> u128 {
    u128::MAX >> (128 - bits)
}

fn reduced(mut words: Vec<u128>, modulus: u32) -> Vec<u128> {
    words.iter_mut().for_each(|word| *word &= ones(modulus));
    words
}

impl Values {
    /// Wraps integers and tags mod 2^modulus, 1 to 128 bits.
    pub fn new(values: Vec<u128>, tags: Vec<u128>, modulus: u32) -> Self {
        Self { values: reduced(values, modulus), tags: reduced(tags, modulus), modulus }
    }

    /// Takes an output of tagged circuits, shared mod `2^bits`.
    pub fn of_circuit(share: &EvaluatorShare, bits: u32) -> Self {
        let values = share.values.iter().map(|value| u128::from(*value)).collect();
        Self::new(values, share.tags.clone(), bits + ALPHA_BITS)
    }

    /// Returns the number of integers.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the bits of values and tags.
    pub fn modulus(&self) -> u32 {
        self.modulus
    }

    /// Returns the integers. Sending them reveals them.
    pub fn values(&self) -> &[u128] {
        &self.values
    }

    /// Returns their tags.
    pub(crate) fn tags(&self) -> &[u128] {
        &self.tags
    }

    /// Returns the image of the integers under `map`, a linear map over the integers that both
    /// parties know. Arithmetic may wrap mod 2^128.
    #[must_use]
    pub fn linear(&self, map: impl Fn(&[u128]) -> Vec<u128>) -> Self {
        Self::new(map(&self.values), map(&self.tags), self.modulus)
    }

    /// Returns the differences to `others`.
    ///
    /// # Errors
    /// [`wire::Error::Internal`] for other lengths or moduli.
    pub fn less(&self, others: &Self) -> Result<Self> {
        same((self.len(), self.modulus), (others.len(), others.modulus))?;
        let [values, tags] =
            [(&self.values, &others.values), (&self.tags, &others.tags)].map(differences);
        Ok(Self::new(values, tags, self.modulus))
    }

    /// Returns the sums with `others`.
    ///
    /// # Errors
    /// [`wire::Error::Internal`] for other lengths or moduli.
    pub fn more(&self, others: &Self) -> Result<Self> {
        same((self.len(), self.modulus), (others.len(), others.modulus))?;
        let [values, tags] = [(&self.values, &others.values), (&self.tags, &others.tags)].map(sums);
        Ok(Self::new(values, tags, self.modulus))
    }

    /// Returns the integers with a public constant added to each.
    #[must_use]
    pub fn plus(&self, constants: &[u128]) -> Self {
        let values = self.values.iter().zip(constants).map(|(v, c)| v.wrapping_add(*c)).collect();
        Self::new(values, self.tags.clone(), self.modulus)
    }

    /// Returns the integers with values and tags reduced mod 2^modulus.
    ///
    /// # Errors
    /// [`wire::Error::Internal`] for a larger modulus.
    pub fn narrowed(&self, modulus: u32) -> Result<Self> {
        shift(modulus, self.modulus)?;
        Ok(Self::new(self.values.clone(), self.tags.clone(), modulus))
    }

    /// Returns the integers times `2^(modulus - self.modulus())`, with tags mod 2^modulus.
    ///
    /// # Errors
    /// [`wire::Error::Internal`] for a smaller modulus.
    pub fn raised(&self, modulus: u32) -> Result<Self> {
        let shift = shift(self.modulus, modulus)?;
        Ok(Self::new(shifted(&self.values, shift), shifted(&self.tags, shift), modulus))
    }
}

impl Keys {
    /// Wraps keys mod 2^modulus, 1 to 128 bits.
    pub fn new(betas: Vec<u128>, modulus: u32) -> Self {
        Self { betas: reduced(betas, modulus), modulus }
    }

    /// Takes an output of tagged circuits, shared mod `2^bits`.
    pub fn of_circuit(share: &GarblerShare, bits: u32) -> Self {
        Self::new(share.betas.clone(), bits + ALPHA_BITS)
    }

    /// Returns the number of integers.
    pub fn len(&self) -> usize {
        self.betas.len()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.betas.is_empty()
    }

    /// Returns the bits of the keys.
    pub fn modulus(&self) -> u32 {
        self.modulus
    }

    /// Returns the keys.
    pub(crate) fn betas(&self) -> &[u128] {
        &self.betas
    }

    /// As [`Values::linear`].
    #[must_use]
    pub fn linear(&self, map: impl Fn(&[u128]) -> Vec<u128>) -> Self {
        Self::new(map(&self.betas), self.modulus)
    }

    /// As [`Values::less`].
    ///
    /// # Errors
    /// [`wire::Error::Internal`] for other lengths or moduli.
    pub fn less(&self, others: &Self) -> Result<Self> {
        same((self.len(), self.modulus), (others.len(), others.modulus))?;
        Ok(Self::new(differences((&self.betas, &others.betas)), self.modulus))
    }

    /// As [`Values::more`].
    ///
    /// # Errors
    /// [`wire::Error::Internal`] for other lengths or moduli.
    pub fn more(&self, others: &Self) -> Result<Self> {
        same((self.len(), self.modulus), (others.len(), others.modulus))?;
        Ok(Self::new(sums((&self.betas, &others.betas)), self.modulus))
    }

    /// As [`Values::plus`].
    #[must_use]
    pub fn plus(&self, constants: &[u128], keys: &MacKeys) -> Self {
        let alpha = u128::from(keys.alpha());
        let moved = |(beta, c): (&u128, &u128)| beta.wrapping_sub(alpha.wrapping_mul(*c));
        Self::new(self.betas.iter().zip(constants).map(moved).collect(), self.modulus)
    }

    /// As [`Values::narrowed`].
    ///
    /// # Errors
    /// [`wire::Error::Internal`] for a larger modulus.
    pub fn narrowed(&self, modulus: u32) -> Result<Self> {
        shift(modulus, self.modulus)?;
        Ok(Self::new(self.betas.clone(), modulus))
    }

    /// As [`Values::raised`].
    ///
    /// # Errors
    /// [`wire::Error::Internal`] for a smaller modulus.
    pub fn raised(&self, modulus: u32) -> Result<Self> {
        Ok(Self::new(shifted(&self.betas, shift(self.modulus, modulus)?), modulus))
    }

    /// Returns the tags that `values` have with these keys, mod 2^modulus.
    pub(super) fn tags_of(&self, values: &[u128], keys: &MacKeys) -> Zeroizing<Vec<u128>> {
        let alpha = u128::from(keys.alpha());
        let tag = |(beta, v): (&u128, &u128)| {
            alpha.wrapping_mul(*v).wrapping_add(*beta) & ones(self.modulus)
        };
        Zeroizing::new(self.betas.iter().zip(values).map(tag).collect())
    }
}

fn differences((words, others): (&Vec<u128>, &Vec<u128>)) -> Vec<u128> {
    words.iter().zip(others).map(|(word, other)| word.wrapping_sub(*other)).collect()
}

fn sums((words, others): (&Vec<u128>, &Vec<u128>)) -> Vec<u128> {
    words.iter().zip(others).map(|(word, other)| word.wrapping_add(*other)).collect()
}

fn shifted(words: &[u128], shift: u32) -> Vec<u128> {
    words.iter().map(|word| word << shift).collect()
}

fn shift(from: u32, to: u32) -> Result<u32> {
    let shift = to.checked_sub(from).filter(|_| to <= 128);
    shift.ok_or_else(|| defect("tags are taken to a smaller modulus"))
}

fn same(ours: (usize, u32), others: (usize, u32)) -> Result<()> {
    if ours == others { Ok(()) } else { Err(defect("tagged values of other lengths or moduli")) }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Values(<{} mod 2^{}>)", self.len(), self.modulus)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys(<{} mod 2^{}>)", self.len(), self.modulus)
    }
}
