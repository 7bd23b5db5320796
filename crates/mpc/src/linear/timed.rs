//! The server's work on a layer, in parts.

use std::time::Duration;

use he::bfv::noise::Load;
use he::bfv::{Blinding, Ciphertext, Encoder, Params, PublicKey, SecretKey};
use ring::host::Instant;
use ring::{Random, Seed};
use wire::{Message, Packed, Result, Segment};
use zeroize::Zeroizing;

use super::slots::ServerKeys;
use super::transport::{bfv, misuse};

/// Times of the server's work on a layer, in one thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timed {
    /// Weights to plaintexts.
    pub encoding: Duration,
    /// Masks, encryptions of zero and flooding for all responses.
    pub preparing: Duration,
    /// Rotations, products and sums.
    pub computing: Duration,
    /// Rotations, products and sums, then adding what was prepared, up to the bytes that are
    /// sent.
    pub online: Duration,
}

/// Fresh keys of both parties, with rotations by `steps`.
pub(super) fn keys(
    params: &Params,
    steps: &[usize],
    rng: &mut Random,
) -> Result<(SecretKey, ServerKeys)> {
    let (key, seed) = (SecretKey::generate(params, rng).map_err(misuse)?, Seed([0; 16]));
    let public = key.public_key(&seed, rng).map_err(misuse)?;
    let rotations = key.rotation_keys(steps, false, &seed, rng).map_err(misuse)?;
    Ok((key, ServerKeys { public, rotations }))
}

/// What responses are made with.
pub(super) struct Responding<'a> {
    pub(super) key: &'a PublicKey,
    pub(super) encoder: &'a Encoder,
    pub(super) load: Load,
    /// The layouts of all responses.
    pub(super) layouts: Vec<Vec<Segment>>,
}

impl Responding<'_> {
    /// Times preparing all responses, with the mask that `mask` gives for each, and all that
    /// comes after, with the ciphertexts that `compute` gives.
    pub(super) fn time(
        self,
        rng: &mut Random,
        mut mask: impl FnMut(&mut Random) -> Zeroizing<Vec<u64>>,
        compute: impl FnOnce(&mut dyn FnMut(Ciphertext) -> Result<()>) -> Result<()>,
    ) -> Result<Timed> {
        let Self { key, encoder, load, layouts } = self;
        let start = Instant::now();
        let prepare = |_: &Vec<Segment>| {
            let mask = mask(rng);
            Blinding::prepare(key, encoder, &mask, &load, rng).map_err(misuse)
        };
        let blindings = layouts.iter().map(prepare).collect::<Result<Vec<_>>>()?;
        let preparing = start.elapsed();

        let start = Instant::now();
        let (mut prepared, mut sent) = (blindings.into_iter().zip(layouts), Vec::new());
        compute(&mut |cipher| {
            let Some((blinding, layout)) = prepared.next() else { return Ok(()) };
            let response = cipher.respond_prepared(encoder, &load, blinding).map_err(misuse)?;
            let halves = layout.into_iter().zip([response.c1, response.c0]);
            sent.clear();
            Packed::<{ bfv::RESPONSES }>(halves.collect()).encode(&mut sent);
            Ok(())
        })?;
        Ok(Timed { preparing, online: start.elapsed(), ..Timed::default() })
    }
}
