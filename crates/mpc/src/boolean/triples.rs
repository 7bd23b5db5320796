//! Correlated triples of bits, from random OTs alone.
//!
//! | | |
//! |---|---|
//! | In | random OTs of bits, one way or both ways |
//! | Out | xor shares of `a`, `b_1..b_k` and `a*b_1..a*b_k`, all random |
//! | Reveals | nothing |
//! | Security | semi-honest, given the OTs |
//! | Cost | no message; an OT each way, or 1 + k of one way |
//! | Paper | Rathee et al., CrypTFlow2 (CCS 2020), correlated triples, section 4 and appendix A |
//!
//! A random OT with pads `r0, r1` of k bits and random choice `c` *is* the cross
//! term `c*(r0^r1)`, shared as `r0` and `r_c`. With one each way every party's `a` is its
//! choice and its `b` the xor of its pads. Where one direction alone is at hand, a second
//! one-bit OT for each product turns the other cross term round: the choice is the
//! receiver's `b_i`, the xor of the pads the sender's share of `a`, which then differs
//! from product to product: the sender opens it for each.

use ot::{Entry, Job, ReceiverPads, SenderPads};
use ring::Bits;
use wire::{Result, Role};
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::correlations::{Correlations, Demand};

/// Who sends in the OTs behind triples: each party in its turn, or one alone.
pub(crate) type Sender = Option<Role>;

/// This party's half of the triples of one operand, a plane per product. The sender in
/// OTs of one direction holds an `a` for each product, any other party holds one for all.
#[derive(Default, Zeroize, ZeroizeOnDrop)]
pub(crate) struct Triples {
    pub(crate) a: Vec<Bits>,
    pub(crate) b: Vec<Bits>,
    pub(crate) c: Vec<Bits>,
}

/// OTs for `count` operands with `products` each.
pub(crate) fn demand(sender: Sender, products: usize, count: usize) -> Demand {
    let job = |bits| Job { count, choice_bits: 1, entry: Entry::Bits(bits) };
    let first = vec![job(products as u32)];
    match sender {
        None => Demand::both(first),
        Some(sender) => Demand::from(sender, [first, vec![job(1); products]].concat()),
    }
}

/// How often `role` masks an operand.
pub(crate) fn masks(sender: Sender, role: Role, products: usize) -> usize {
    if sender == Some(role) { products } else { 1 }
}

impl Triples {
    /// Takes what [`demand`] says off the front of `ots`.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] when others or fewer are there.
    pub(crate) fn take(
        role: Role,
        sender: Sender,
        demand: &Demand,
        ots: &mut Correlations,
    ) -> Result<Self> {
        let sent = ots.send(demand.sent_by(role))?.into_iter().map(sent);
        let received = ots.receive(demand.sent_by(!role))?.into_iter().map(received);
        let mut terms = sent.chain(received);
        let first = terms.next().unwrap_or_default();
        let rest = terms.fold(Term::default(), Term::join);
        let (factors, mut c) = (first.factors, first.shares);
        c.iter_mut().zip(&rest.shares).for_each(|(c, share)| c.xor(share));
        let chooses = sender == Some(!role);
        let (a, b) = if chooses { (factors, rest.factors) } else { (rest.factors, factors) };
        for (at, (b, c)) in b.iter().zip(&mut c).enumerate() {
            if let Some(a) = a.get(at).or(a.first()) {
                c.xor_and(a, b);
            }
        }
        Ok(Self { a, b, c })
    }
}

/// One end of OTs: this party's factors of the cross terms and shares of these.
#[derive(Default)]
struct Term {
    factors: Vec<Bits>,
    shares: Vec<Bits>,
}

impl Term {
    fn join(mut self, mut other: Self) -> Self {
        self.factors.append(&mut other.factors);
        self.shares.append(&mut other.shares);
        self
    }
}

fn sent(pads: SenderPads) -> Term {
    let mut pairs = pads.into_columns().into_iter().map(|mut pad| std::mem::take(&mut pad.planes));
    let shares = pairs.next().unwrap_or_default();
    let mut factors = pairs.next().unwrap_or_default();
    factors.iter_mut().zip(&shares).for_each(|(factor, share)| factor.xor(share));
    Term { factors, shares }
}

fn received(pads: ReceiverPads) -> Term {
    let (factors, mut opened) = pads.into_parts();
    Term { factors, shares: std::mem::take(&mut opened.planes) }
}
