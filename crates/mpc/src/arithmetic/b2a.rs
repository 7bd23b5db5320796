//! Bits shared by exclusive or, shared by addition.
//!
//! | | |
//! |---|---|
//! | In | xor shares of bits; one random OT each |
//! | Out | shares of the same bits mod 2^out_bits |
//! | Reveals | masked choices |
//! | Security | semi-honest, given the correlations |
//! | Cost | out_bits bits per element (nothing for one bit); 2 rounds, whoever begins |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), boolean to arithmetic, appendix A |
//!
//! `b = b_c + b_s - 2*b_c*b_s`, and the product is needed mod 2^(out_bits - 1) only. A
//! 1-of-n OT makes it when their receiver begins, `product.rs` when the sender does.

use ot::{Entry, Job, Table};
use ring::Bits;
use wire::{Channel, Cost, Error, Result, Role};

use crate::arithmetic::mux::{self, Side, Switch};
use crate::arithmetic::product;
use crate::correlations::{Correlations, Demand};
use crate::share::Share;

/// The public plan of a conversion.
#[derive(Clone, Debug)]
pub struct Arithmetic {
    count: usize,
    out_bits: u32,
    first: Role,
    sender: Role,
}

impl Arithmetic {
    /// Plans `count` bits to integers of `out_bits` (1 to 64); `asks` sends first, and the other
    /// party is the sender in the OTs.
    ///
    /// # Errors
    /// [`Error::Misuse`] for other widths.
    pub fn new(count: usize, out_bits: u32, asks: Role) -> Result<Self> {
        if !(1..=64).contains(&out_bits) {
            return Err(Error::misuse("bits as integers of 1 to 64 bits"));
        }
        Ok(Self { count, out_bits, first: asks, sender: !asks })
    }

    /// Takes OTs that `sender` sends, whoever begins.
    pub fn sent_by(self, sender: Role) -> Self {
        Self { sender, ..self }
    }

    fn job(&self) -> Job {
        Job { count: self.count, choice_bits: 1, entry: Entry::Word(self.out_bits - 1) }
    }

    /// One OT of products; mod 2 none is needed.
    fn switch(&self) -> Switch {
        if self.out_bits == 1 {
            return Switch::default();
        }
        Switch::to(!self.sender, vec![self.job()])
    }

    fn sender_begins(&self) -> bool {
        self.first == self.sender && self.out_bits > 1
    }

    /// Returns the OTs that a run consumes.
    pub fn demand(&self) -> Demand {
        self.switch().demand()
    }

    /// Returns what [`run`] costs.
    pub fn cost(&self) -> Cost {
        if self.sender_begins() {
            return product::cost(self.sender, self.job());
        }
        self.switch().cost(self.first)
    }

    fn side(&self, role: Role, bits: &Bits) -> Side {
        if self.out_bits == 1 {
            Side { choices: Vec::new(), tables: Vec::new() }
        } else if role != self.sender {
            Side { choices: vec![vec![bits.clone()]], tables: Vec::new() }
        } else {
            let table = Table::words(vec![vec![0; self.count], bits.to_words()]);
            Side { choices: Vec::new(), tables: vec![table] }
        }
    }
}

/// Runs the conversion.
///
/// # Errors
/// [`Error::Misuse`] when bits or correlations do not fit the plan, [`Error::Peer`],
/// [`Error::Transport`].
pub fn run(
    channel: &mut Channel,
    plan: &Arithmetic,
    bits: &Bits,
    ots: Correlations,
) -> Result<Share> {
    if bits.len() != plan.count {
        return Err(Error::misuse("bits that do not fit their conversion"));
    }
    let products = if plan.sender_begins() {
        let words = product::run(channel, plan.sender, plan.job(), bits, ots)?;
        Share::new(words, plan.out_bits)
    } else {
        let side = plan.side(channel.role(), bits);
        let switched = mux::run(channel, &plan.switch(), plan.first, side, ots)?;
        switched.sum(plan.count, plan.out_bits)
    };
    Ok(Share::new(bits.to_words(), plan.out_bits).add_scaled(&products, -2))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::{random_bits, shares_of};
    use ring::Random;
    use ring::word::mask;

    #[test]
    fn every_pair_of_bits_at_every_width() {
        let mut rng = Random::seeded(33);
        let mut client: Bits = [0, 0, 1, 1].into_iter().collect();
        let mut server: Bits = [0, 1, 0, 1].into_iter().collect();
        client.extend(&random_bits(&mut rng, 99));
        server.extend(&random_bits(&mut rng, 99));
        let roles = [Role::Client, Role::Server];
        let sides = roles.into_iter().flat_map(|asks| roles.map(|sender| (asks, sender)));
        for (out_bits, (asks, sender)) in (1..=64).flat_map(|b| sides.clone().map(move |s| (b, s)))
        {
            let plan = Arithmetic::new(client.len(), out_bits, asks).unwrap().sent_by(sender);
            assert!(plan.demand().sent_by(!sender).is_empty());
            let price = (plan.demand(), plan.cost());
            let [c, s] =
                shares_of(&mut rng, price, [&client, &server], |ch, x, ots| run(ch, &plan, x, ots));
            let sums = c.words().iter().zip(s.words());
            let sums = sums.map(|(c, s)| c.wrapping_add(*s) & mask(out_bits));
            assert!(sums.eq(client.iter().zip(server.iter()).map(|(c, s)| c ^ s)));
        }
    }

    #[test]
    fn other_widths_are_refused() {
        assert!(Arithmetic::new(1, 0, Role::Client).is_err());
        assert!(Arithmetic::new(1, 65, Role::Client).is_err());
    }
}
