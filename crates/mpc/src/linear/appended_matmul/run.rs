//! A run on prepared masks.

use he::rlwe::rescale;
use ring::word::mask;
use wire::{Channel, Error, Result, Role};
use zeroize::Zeroizing;

use super::draw::{Memory, Prepared, laid};
use super::plan::{KEPT_BITS, Layer, Masked};
use crate::defect::defect;
use crate::linear::shared_matmul::clear;
use crate::linear::transport::misuse;
use crate::share::Share;

impl Prepared {
    /// Multiplies this party's shares of both factors, of which `b` has the new entry at its end;
    /// the runs that were prepared together have to come in their order.
    ///
    /// # Errors
    /// [`Error::Misuse`] for shares that do not fit the plan, [`Error::Internal`] for the
    /// memory of another layer, [`Error::Peer`], [`Error::Transport`].
    pub fn run(
        self,
        channel: &mut Channel,
        layer: &Layer,
        memory: &mut Memory,
        a: &Share,
        b: &Share,
    ) -> Result<Share> {
        let (shape, bits, role) = (&layer.shape, layer.plain_bits, channel.role());
        let (each, entries) = (shape.entry(), shape.entries());
        let wide = a.bits() >= bits && b.bits() >= bits;
        if !wide || a.len() != shape.left() || b.len() != entries * each {
            return Err(Error::misuse(
                "shares that do not fit their product with a growing matrix",
            ));
        }
        let unfit = || defect("a product with a growing matrix lacks masks");
        let first = (shape.fixed + self.run) * each;
        let window = self.masks.get(first..first + shape.window() * each).ok_or_else(unfit)?;
        let constants = self.masks.get(..shape.fixed * each).ok_or_else(unfit)?;
        let opened = if std::mem::take(&mut memory.missed) { shape.window() } else { 1 };
        let new = window.get(window.len() - opened * each..).ok_or_else(unfit)?;
        let other = shape.other();
        let appended = (0..opened * each).map(|value| {
            let (entry, value) = (entries - opened + value / each, value % each);
            let at = shape.place(entries, entry, [value / other, value % other]);
            b.words().get(at).copied().unwrap_or_default()
        });
        let shares = a.words().iter().copied().chain(appended);
        let masks = self.left.iter().chain(new);
        let own = shares.zip(masks).map(|(share, own)| share.wrapping_sub(*own) & mask(bits));
        let both = exchanged(channel, (layer, opened), own.collect())?;
        let (left, appended) = both.split_at_checked(shape.left()).ok_or_else(unfit)?;
        let dropped = appended.len().min(memory.differences.len());
        memory.differences.drain(..dropped);
        memory.differences.extend(appended);
        let known = [vec![0; constants.len()], memory.differences.to_vec()].concat();
        let known = Zeroizing::new(laid(shape, &known));
        let mut right = Zeroizing::new([constants, window].concat());
        right = Zeroizing::new(laid(shape, &right));
        if known.len() != right.len() {
            return Err(unfit());
        }
        if role == Role::Client {
            right.iter_mut().zip(known.iter()).for_each(|(own, known)| *own += known);
        }
        let matrices = shape.matrices(entries, 1);
        let mut rest = clear::products(matrices, left, &right);
        let masked = clear::products(matrices, &self.left, &known);
        rest.iter_mut().zip(masked.iter()).for_each(|(sum, own)| *sum = sum.wrapping_add(*own));
        let kept = layer.out_bits + KEPT_BITS;
        let mut sums = rounded(role, &rest, bits, kept)?;
        let products = self.products.words();
        sums.iter_mut().zip(products).for_each(|(sum, own)| *sum = sum.wrapping_add(*own));
        let words = rounded(role, &sums, kept, layer.out_bits)?;
        Ok(Share::new(words.to_vec(), layer.out_bits))
    }
}

/// Both parties' words added up, mod 2^P.
fn exchanged(
    channel: &mut Channel,
    (layer, opened): (&Layer, usize),
    own: Vec<u64>,
) -> Result<Vec<u64>> {
    let (bits, shape) = (layer.plain_bits, vec![layer.masked(opened)]);
    let sent = Masked::one(own.clone(), bits);
    let theirs: Masked = match channel.role() {
        Role::Client => {
            channel.send(&sent)?;
            channel.receive(&shape)?
        }
        Role::Server => {
            let theirs = channel.receive(&shape)?;
            channel.send(&sent)?;
            theirs
        }
    };
    let sums = own.iter().zip(theirs.concat()).map(|(own, other)| own.wrapping_add(other));
    Ok(sums.map(|sum| sum & mask(bits)).collect())
}

/// The highest `to` of `from` bits of shares: the client rounds down and the server up, so that the sum is
/// off by less than one, of expectation zero.
fn rounded(role: Role, words: &[u64], from: u32, to: u32) -> Result<Zeroizing<Vec<u64>>> {
    let words = match role {
        Role::Client => rescale::client(words, from, to),
        Role::Server => {
            let masks: Zeroizing<Vec<u64>> =
                Zeroizing::new(words.iter().map(|word| word.wrapping_neg()).collect());
            rescale::server(&masks, from, to)
        }
    };
    Ok(Zeroizing::new(words.map_err(misuse)?))
}
