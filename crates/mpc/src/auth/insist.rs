//! The check of a client of a test that goes on where an honest one would stop.

use ring::Random;
use wire::{Channel, Error, Result};

use super::check::{
    NonceMessage, SmallValues, finish_client, receive_seed, shown_small, shown_zero,
    small_sums_client, sums_client,
};
use super::combine::ZERO;
use super::values::Values;
use crate::defect::defect;

/// [`super::check_client`] that opens what follows from its values whatever they are, after `change` of what it
/// opens, and sends a nonce when the server's tags are not its own.
#[allow(clippy::missing_errors_doc)]
pub fn insist_client(
    ch: &mut Channel,
    relations: &[Values],
    masks: &Values,
    small: SmallValues<'_>,
    rng: &mut Random,
    change: &dyn Fn(&mut [Vec<u64>]),
) -> Result<()> {
    let seed = receive_seed(ch)?;
    let modulus = relations.iter().map(Values::modulus).max();
    let modulus = modulus.ok_or_else(|| defect("a check of no relations"))?;
    let mut zero = shown_zero(&sums_client(&seed, ZERO, relations, masks, modulus)?, modulus);
    let (sums, modulus) = small_sums_client(&seed, small)?;
    let mut small = shown_small(&sums, modulus);
    let mut opened: Vec<Vec<u64>> = zero.opened.drain(..).chain(small.opened.drain(..)).collect();
    change(&mut opened);
    small.opened = opened.split_off(1);
    zero.opened = opened;
    match finish_client(ch, &seed, vec![zero, small], rng) {
        Err(Error::Peer { .. }) => ch.send(&NonceMessage::new(vec![0; 32])),
        other => other,
    }
}
