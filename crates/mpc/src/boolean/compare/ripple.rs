//! A comparison by carries, one bit after the other: the fewest bits, a level of gates for each.
//!
//! The carry into the lowest bits comes from one OT of few entries. A gate for each bit above gives
//! the next carry, `(b ^ k)&(s ^ k) ^ k` for bits b and s and the carry k into them: 4 bits, where a
//! digit of a tree takes about 6 a bit. Bits of the sum are a share each without a message, so that
//! a test of the middle takes a gate for each of its bits but the first, beside the carries.

use std::ops::Range;

use super::leaves::{Leaf, Ripple};
use super::{Comparison, Sum};
use crate::boolean::gmw::{Gate, Partner, Wire};

/// Bits of the digit that an OT of all entries reads: it takes no more bits than gates, and fewer
/// OTs and rounds.
const FIRST: u32 = 3;

/// The carries into all bits from `first` on, and the level in which each can be read.
struct Carries {
    ripple: Ripple,
    first: u32,
    wires: Vec<Wire>,
}

impl Carries {
    /// The carry into a bit: nothing into the lowest one.
    fn before(&self, bit: u32) -> Sum {
        let place = bit.checked_sub(self.first).map(|place| place as usize);
        place.and_then(|place| self.wires.get(place)).copied().into_iter().collect()
    }

    /// A bit of the sum of both summands.
    fn bit(&self, bit: u32) -> Sum {
        [vec![self.ripple.sum(bit)], self.before(bit)].concat()
    }

    /// Whether a bit of the sum is 0.
    fn unset(&self, bit: u32) -> Sum {
        [vec![self.ripple.one], self.bit(bit)].concat()
    }

    fn level(&self, bit: u32) -> usize {
        bit.saturating_sub(self.first) as usize
    }
}

impl Comparison {
    /// Plans a comparison of `bits` by carries and, where `low` is less, a test of the middle; with
    /// halves also what [`Comparison::with_halves`] tells, for an interior or not.
    pub(super) fn rippled(low: u32, bits: u32, halves: Option<bool>) -> Self {
        // The lowest bit of the sum that is read, but for the interior, which reads all.
        let read = if halves.is_some() { low.saturating_sub(1) } else { low };
        let interior = halves == Some(true);
        let first = if interior { 1 } else { read.clamp(1, FIRST) };
        let mut plan = Self::empty(low, bits);
        let carry = plan.circuit.wire();
        plan.leaves.push(Leaf { shift: 0, width: first, equal: false, zero: false });
        let start = if interior { 0 } else { first };
        let ripple = Ripple { one: plan.circuit.wire(), range: start..bits };
        for _ in ripple.range.clone() {
            plan.circuit.wire();
            plan.circuit.wire();
        }
        let mut carries = Carries { ripple: ripple.clone(), first, wires: vec![carry] };
        for bit in first..bits {
            plan.carry_out(&mut carries, bit);
        }
        plan.ripple = Some(ripple);
        plan.greater = carries.before(bits);
        if low < bits {
            let middle = plan.all_unset(&carries, low..bits);
            if halves.is_some() {
                plan.tell_halves(&carries, (low, interior), &middle);
            }
            plan.middle_zero = Some(middle);
        }
        plan
    }

    /// Adds the gate that carries out of a bit.
    fn carry_out(&mut self, carries: &mut Carries, bit: u32) {
        let (base, output) = (carries.before(bit), self.circuit.wire());
        let asked = carries.ripple.asked(bit);
        let operand = [vec![asked], base.clone()].concat();
        let factor = [vec![carries.ripple.sum(bit), asked], base.clone()].concat();
        let partners = vec![Partner { factor, base, output }];
        self.circuit.push(carries.level(bit), Gate { operand, partners });
        carries.wires.push(output);
    }

    /// Adds gates that tell whether all bits of a range are 0, one after the other as carries come.
    fn all_unset(&mut self, carries: &Carries, range: Range<u32>) -> Sum {
        let mut all = carries.unset(range.start);
        for bit in range.skip(1) {
            let output = self.circuit.wire();
            let partners = vec![Partner { factor: all, base: Vec::new(), output }];
            let gate = Gate { operand: carries.unset(bit), partners };
            self.circuit.push(carries.level(bit), gate);
            all = vec![output];
        }
        all
    }

    /// Adds the gate that tells of the bits below the middle, where that is 0.
    fn tell_halves(&mut self, carries: &Carries, (low, interior): (u32, bool), middle: &Sum) {
        let below = interior.then(|| self.all_unset(carries, 0..low));
        let half = self.circuit.wire();
        let factor = carries.bit(low - 1);
        let mut partners = vec![Partner { factor, base: Vec::new(), output: half }];
        if let Some(factor) = below {
            let output = self.circuit.wire();
            partners.push(Partner { factor, base: middle.clone(), output });
            self.interior = Some(vec![output]);
        }
        let level = self.circuit.levels.len();
        self.circuit.push(level, Gate { operand: middle.clone(), partners });
        self.upper_half = Some(vec![half]);
    }
}
