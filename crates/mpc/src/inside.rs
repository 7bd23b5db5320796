//! The last step of a clipped layer: values inside a range as they are, a cap above it,
//! zero below, extended on the way. See `relu.rs` for the whole.

use ot::{Entry, Job, Table};
use ring::Bits;
use ring::word::{mask, signed};
use wire::Role;
use zeroize::Zeroizing;

use crate::relu::gated;
use crate::switch::{Side, Switch};

/// The public plan: values from `bits` to `out_bits`, with an upper end.
#[derive(Clone, Debug)]
pub(crate) struct Inside {
    pub(crate) count: usize,
    pub(crate) bits: u32,
    pub(crate) cap: Option<u64>,
    pub(crate) out_bits: u32,
}

impl Inside {
    pub(crate) fn switch(&self) -> Switch {
        let entry = Entry::Word(self.out_bits);
        let job = |choice_bits| Job { count: self.count, choice_bits, entry };
        let mut to_client = vec![job(if self.extends() { 2 } else { 1 })];
        to_client.extend(self.cap.map(|_| job(1)));
        Switch { to_client, to_server: vec![job(1)] }
    }

    fn extends(&self) -> bool {
        self.out_bits > self.bits
    }

    /// `positive` and `inside` are xor shares of `[y >= 0]` and `[0 <= y <= cap]`.
    pub(crate) fn side(&self, role: Role, y: &[u64], positive: &Bits, inside: &Bits) -> Side {
        let mut above = positive.clone();
        above.xor(inside);
        let signed = |word: &u64| signed(*word, self.bits) as u64 & mask(self.out_bits);
        let plain: Vec<u64> = y.iter().map(signed).collect();
        let plain = Zeroizing::new(plain);
        let top = Bits::of_words(y, self.bits - 1);
        match role {
            Role::Client => {
                let mut picks = vec![inside.clone()];
                picks.extend(self.extends().then_some(top));
                let mut choices = vec![picks];
                choices.extend(self.cap.map(|_| vec![above]));
                Side { choices, tables: vec![Table::words(gated(&plain, inside))] }
            }
            Role::Server => {
                let mut columns = gated(&plain, inside);
                if self.extends() {
                    // The client's top bit is set: both set is a wrap.
                    let wrap = 1u64 << self.bits;
                    let wraps = top.masks().map(|both| both & wrap);
                    let carried =
                        plain.iter().zip(wraps).map(|(value, wrap)| value.wrapping_add(wrap));
                    let carried: Vec<u64> =
                        carried.map(|value| value & mask(self.out_bits)).collect();
                    columns.extend(gated(&Zeroizing::new(carried), inside));
                }
                let mut tables = vec![Table::words(columns)];
                tables.extend(self.cap.map(|cap| Table::words(gated(&vec![cap; y.len()], &above))));
                Side { choices: vec![vec![inside.clone()]], tables }
            }
        }
    }
}
