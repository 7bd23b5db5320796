//! Tags of integers whose bits are committed: one message from the server.

use gc::Tables;
use gc::tables::chunks_of;
use gc::tagged::{BitTags, MacKeys, tags_of_bits};
use ring::{Bits, Random};
use wire::{Channel, Cost, Result, Role, tags};

use super::commit::{ClientBits, ServerBits};
use super::values::{Keys, Values};
use crate::bytes::Bytes;

/// A chunk of the words of tags.
type Words = Bytes<{ tags::TAG_WORDS }>;

/// Receives the tags of the integers that the client's planes make, lowest first.
///
/// # Errors
/// [`wire::Error::Internal`] for bits of another plan, [`wire::Error::Peer`],
/// [`wire::Error::Transport`].
pub fn tag_client(ch: &mut Channel, plan: &BitTags, bits: &ClientBits) -> Result<Values> {
    let words =
        Tables::collect_bytes(plan.bytes(), |len| ch.receive::<Words>(&len).map(|words| words.0))?;
    let labels = bits.labels(0..plan.bits() as usize);
    let made = tags_of_bits(plan, words, bits.planes(), labels)?;
    Ok(Values::new(integers(bits.planes(), plan.count()), made.to_vec(), plan.modulus()))
}

/// Sends the words that make the client's tags; returns their keys.
///
/// # Errors
/// [`wire::Error::Internal`] for bits of another plan, [`wire::Error::Transport`].
pub fn tag_server(
    ch: &mut Channel,
    plan: &BitTags,
    keys: &MacKeys,
    bits: &ServerBits,
    rng: &mut Random,
) -> Result<Keys> {
    let zeros = bits.zeros(0..plan.bits() as usize);
    let betas = plan.garble(keys, zeros, rng, &mut |chunk| ch.send(&Words::new(chunk)))?;
    Ok(Keys::new(betas.to_vec(), plan.modulus()))
}

/// Returns what the tags of a plan cost.
pub fn tag_cost(plan: &BitTags) -> Cost {
    chunks_of(plan.bytes()).map(|len| Cost::message(Role::Server, len as u64)).collect()
}

/// The integers with these bits.
fn integers(planes: &[Bits], count: usize) -> Vec<u128> {
    let mut integers = vec![0u128; count];
    for (bit, plane) in planes.iter().enumerate() {
        integers.iter_mut().zip(plane.iter()).for_each(|(v, b)| *v |= u128::from(b) << bit);
    }
    integers
}
