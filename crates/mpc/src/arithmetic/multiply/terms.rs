//! The OTs of a product, and one party's choices and tables for them.

use ot::{Entry, Job, Table};
use ring::Bits;
use wire::Role;
use zeroize::Zeroizing;

use super::{Multiply, Reduced, kept};
use crate::arithmetic::mux::Side;
use crate::boolean::wrap::Wrapped;
use crate::share::server_only;

/// What the receiver of an OT chooses by.
#[derive(Clone, Copy)]
pub(super) enum What {
    /// A bit of the narrow factor, from the wide one.
    Bit(u32),
    /// The wrap of the wide factor, from the narrow one.
    WideWrap,
    /// The wrap of the narrow factor, from the wide one.
    NarrowWrap,
    /// Both wraps.
    BothWraps,
}

/// One OT: its entries, of `bits`, count `2^shift` times.
pub(super) struct Term {
    pub(super) what: What,
    pub(super) bits: u32,
    pub(super) shift: u32,
}

impl Term {
    pub(super) fn job(&self, count: usize) -> Job {
        let choice_bits = if matches!(self.what, What::BothWraps) { 2 } else { 1 };
        Job { count, choice_bits, entry: Entry::Word(self.bits) }
    }

    /// What the sum of its shares is multiplied by.
    pub(super) fn factor(&self) -> u64 {
        let one = 1u64 << self.shift;
        match self.what {
            What::Bit(_) | What::BothWraps => one,
            What::WideWrap | What::NarrowWrap => one.wrapping_neg(),
        }
    }
}

/// One party's factors.
pub(super) struct Ends<'a> {
    plan: &'a Multiply,
    wide: Wrapped,
    narrow: Wrapped,
    /// This party's summands of both factors as integers mod 2^64, offsets taken off.
    integers: [Zeroizing<Vec<u64>>; 2],
}

impl<'a> Ends<'a> {
    pub(super) fn new(role: Role, plan: &'a Multiply, [wide, narrow]: [Wrapped; 2]) -> Self {
        let integers = [(&plan.wide, &wide), (&plan.narrow, &narrow)].map(|(factor, wrapped)| {
            let offset = server_only(role, factor.offset());
            Zeroizing::new(wrapped.words.iter().map(|w| w.wrapping_sub(offset)).collect())
        });
        Self { plan, wide, narrow, integers }
    }

    /// The local part: the product of this party's summands. The OTs run over the bits
    /// of the narrow factor before its offset is taken off, so both take it off here.
    pub(super) fn local(&self) -> Vec<u64> {
        let offset = self.plan.narrow.offset();
        let pairs = self.integers[0].iter().zip(&self.narrow.words);
        pairs.map(|(x, y)| x.wrapping_mul(y.wrapping_sub(offset))).collect()
    }

    fn choice(&self, term: &Term) -> Vec<Bits> {
        match term.what {
            What::Bit(bit) => vec![Bits::of_words(&self.narrow.words, bit)],
            What::WideWrap => vec![self.wide.half.clone()],
            What::NarrowWrap => vec![self.narrow.half.clone()],
            What::BothWraps => vec![self.wide.half.clone(), self.narrow.half.clone()],
        }
    }

    fn table(&self, term: &Term) -> Table {
        let [x, y] = &self.integers;
        let wraps = |factor: &Reduced, wrapped: &Wrapped| {
            factor.wrap.as_ref().map(|wrap| wrap.given(&wrapped.half)).into_iter().flatten()
        };
        let wide = || wraps(&self.plan.wide, &self.wide);
        let narrow = || wraps(&self.plan.narrow, &self.narrow);
        Table::words(match term.what {
            What::Bit(_) => vec![vec![0; x.len()], x.to_vec()],
            What::WideWrap => wide().map(|wrap| kept(y, &wrap)).collect(),
            What::NarrowWrap => narrow().map(|wrap| kept(x, &wrap)).collect(),
            What::BothWraps => {
                let both = |high: Bits| wide().map(move |low| low.and(&high).to_words());
                narrow().flat_map(both).collect()
            }
        })
    }

    pub(super) fn side(&self, role: Role) -> Side {
        let choices = self.plan.terms(role).iter().map(|term| self.choice(term)).collect();
        let tables = self.plan.terms(!role).iter().map(|term| self.table(term)).collect();
        Side { choices, tables }
    }
}
