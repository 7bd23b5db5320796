//! Coefficient-packed ciphertexts to the server, phases of masked responses back, and shares
//! that come of both.

use graph::Rounding;
use graph::ops::ROUNDING_SLACK;
use he::rlwe::noise::{self, Noise};
use he::rlwe::{Ciphertext, EXACT_BITS, Fresh, Params, Response, SecretKey, rescale};
use ring::Random;
use ring::word::mask;
use wire::{Channel, Error, Packed, Result, Segment};
use zeroize::Zeroizing;

use super::{Received, Worker, chunks, misuse, seed_of, send_chunks, words_of};
use crate::defect::defect;
use crate::parallel;
use crate::share::Share;

/// How ciphertexts of a layer come from the client.
#[derive(Clone, Copy, Debug)]
pub(in crate::linear) struct Sent {
    pub(in crate::linear) params: Params,
    /// Bits of plaintexts, which are lifted to the top of the modulus.
    pub(in crate::linear) bits: u32,
    /// The lowest bits of bodies, which are not sent.
    pub(in crate::linear) dropped: u32,
}

impl Sent {
    /// Seed and body of each ciphertext.
    pub(in crate::linear) fn layout(&self) -> Vec<Segment> {
        let seed = Segment { count: 2, bits: 64 };
        let bits = self.params.modulus_bits() - self.dropped;
        vec![seed, Segment { count: self.params.degree(), bits }]
    }

    /// Bytes of each ciphertext.
    pub(in crate::linear) fn bytes(&self) -> u64 {
        let bits = self.params.modulus_bits() - self.dropped;
        self.params.degree() as u64 * u64::from(bits) / 8 + 16
    }

    /// The ciphertext of the segments that came of it.
    ///
    /// # Errors
    /// [`Error::Peer`] for what is none.
    pub(in crate::linear) fn expand(&self, [seed, body]: [Vec<u64>; 2]) -> Result<Ciphertext> {
        let fresh = Fresh { seed: seed_of(&seed), body };
        let expanded = fresh.expand_shortened(self.params, self.dropped);
        expanded.map_err(|e| Error::peer("a ciphertext", e.to_string()))
    }
}

/// Encrypts polynomials and sends them in messages of `layouts`; only as many as are worked on
/// at a time are held.
///
/// # Errors
/// [`Error::Misuse`] when key or polynomials do not fit, [`Error::Transport`].
pub(in crate::linear) fn send_inputs<const TAG: u8>(
    channel: &mut Channel,
    layouts: Vec<Vec<Segment>>,
    (key, sent): (&SecretKey, Sent),
    polynomials: impl Iterator<Item = Zeroizing<Vec<u64>>>,
    worker: &mut Worker<'_>,
) -> Result<()> {
    let encrypt = |(values, mut rng): (Zeroizing<Vec<u64>>, Random)| {
        let Sent { params, bits, dropped } = sent;
        let mut fresh = key.encrypt(params, &values, bits, &mut rng).map_err(misuse)?;
        fresh.shorten(params, dropped, &mut rng).map_err(misuse)?;
        Ok(vec![words_of(&fresh.seed), fresh.body])
    };
    send_chunks::<TAG>(channel, layouts, worker.map(polynomials, encrypt))
}

/// Receives responses of `bits` in messages of `layouts`, one for each of `places`, and hands
/// the decrypted coefficients to `each`, in order. `outputs` says which coefficients of a
/// response are kept and where they belong.
///
/// # Errors
/// [`Error::Misuse`] for a key that does not fit, [`Error::Peer`], [`Error::Transport`].
pub(in crate::linear) fn receive_phases<const TAG: u8, P: Send>(
    channel: &mut Channel,
    layouts: Vec<Vec<Segment>>,
    (key, bits, threads): (&SecretKey, u32, usize),
    mut places: impl Iterator<Item = P>,
    outputs: impl Fn(P) -> (Vec<usize>, Vec<usize>) + Sync,
    mut each: impl FnMut(Vec<usize>, &[u64]),
) -> Result<()> {
    let decrypt = |(place, response): (P, Response)| {
        let (keep, to) = outputs(place);
        Ok((to, key.decrypt(&response, &keep).map_err(misuse)?))
    };
    for layout in chunks(layouts) {
        let message: Packed<TAG> = channel.receive(&layout)?;
        let mut parts = message.into_values();
        let mut answers = Vec::new();
        while let (Some(c1), Some(c0)) = (parts.next(), parts.next()) {
            let place =
                places.next().ok_or_else(|| defect("there are more responses than places"))?;
            answers.push((place, Response { c1, c0, bits }));
        }
        for opened in parallel::map(threads, answers, decrypt) {
            let (to, opened) = opened?;
            each(to, &opened);
        }
    }
    Ok(())
}

/// The next ciphertext that the client sent, to which `own` is added.
///
/// # Errors
/// [`Error::Misuse`] where `own` does not fit, [`Error::Internal`] after the last,
/// [`Error::Peer`], [`Error::Transport`].
pub(in crate::linear) fn next_ciphertext<const TAG: u8>(
    channel: &mut Channel,
    received: &mut Received<TAG>,
    sent: Sent,
    own: Option<Zeroizing<Vec<u64>>>,
) -> Result<Ciphertext> {
    let mut cipher = sent.expand([received.next(channel)?, received.next(channel)?])?;
    if let Some(own) = own {
        cipher.add_plain(&own, sent.bits).map_err(misuse)?;
    }
    Ok(cipher)
}

/// How phases and masks become shares of a result.
#[derive(Clone, Copy, Debug)]
pub(in crate::linear) struct Rescaling {
    pub(in crate::linear) rounding: Rounding,
    /// Bits of the accumulator.
    pub(in crate::linear) plain_bits: u32,
    /// Bits of the result, where it is rounded.
    pub(in crate::linear) out_bits: u32,
    /// Bits of the resulting shares.
    pub(in crate::linear) result_bits: u32,
}

/// What terms in the clear add to the error of a stochastic rescale: they are exact, phases are not.
pub(in crate::linear) const COARSE: f64 = 1.0 / (1 << noise::STOCHASTIC_SPARE) as f64;

impl Rescaling {
    /// A bound on the probability that one result of this `noise` leaves its width, or, if it is
    /// exact, is wrong.
    pub(in crate::linear) fn failure(&self, noise: Noise) -> f64 {
        match self.rounding {
            Rounding::Stochastic => noise.beyond(self.out_bits, ROUNDING_SLACK as f64 - COARSE),
            Rounding::Exact => {
                noise.beyond(self.plain_bits + EXACT_BITS, f64::from(1 << (EXACT_BITS - 1)))
            }
        }
    }

    /// The client's share by phases mod 2^`response_bits` and terms mod 2^plain_bits that it
    /// knows.
    pub(in crate::linear) fn client(
        &self,
        phases: &[u64],
        response_bits: u32,
        known: &[u64],
    ) -> Result<Share> {
        let plain = self.plain_bits;
        let width = plain.max(response_bits);
        let sums = phases.iter().zip(known).map(|(phase, known)| {
            (phase << (width - response_bits)).wrapping_add(known << (width - plain)) & mask(width)
        });
        let sums = Zeroizing::new(sums.collect::<Vec<u64>>());
        let words = match self.rounding {
            Rounding::Stochastic => rescale::client(&sums, width, self.out_bits),
            Rounding::Exact => rescale::exact_client(&sums, width, plain),
        };
        Ok(Share::new(words.map_err(misuse)?, self.result_bits))
    }

    /// The server's share by masks mod 2^`modulus_bits`.
    pub(in crate::linear) fn server(&self, masks: &[u64], modulus_bits: u32) -> Result<Share> {
        let words = match self.rounding {
            Rounding::Stochastic => rescale::server(masks, modulus_bits, self.out_bits),
            Rounding::Exact => rescale::exact_server(masks, modulus_bits, self.plain_bits),
        };
        Ok(Share::new(words.map_err(misuse)?, self.result_bits))
    }
}
