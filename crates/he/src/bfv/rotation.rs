//! Rotations of slots: an automorphism, then key switching back to the secret.
//!
//! Keys are kept turned back, so that digits are multiplied as they are and only the
//! result is turned: one decomposition serves any number of rotations (hoisting).

use std::fmt;

use ring::Seed;

use super::cipher::Ciphertext;
use super::params::Params;
use super::ring::{Prime, Turn, domain};
use super::switch::{Digits, SwitchKey, digits};
use crate::error::{Error, Result, expect_len};
use crate::simd::residue;

/// Separates the uniform halves of rotation keys from every other use of a seed.
pub(crate) const ROTATION: &[u8; 4] = b"bfvr";

/// Keys for some rotations of both rows to the left, and for swapping the rows.
pub struct RotationKeys {
    params: Params,
    keys: Vec<RotationKey>,
}

struct RotationKey {
    turn: Turn,
    key: SwitchKey,
    /// Where each value of a turned polynomial comes from.
    places: Vec<u32>,
}

/// A ciphertext cut into digits, ready for many rotations.
pub struct Hoisted {
    cipher: Ciphertext,
    digits: Digits,
}

/// The turns that keys are asked for, each once.
///
/// # Errors
/// [`Error::Shape`] for steps that are zero, repeated, or N/2 and more.
pub(crate) fn turns(params: &Params, steps: &[usize], swap: bool) -> Result<Vec<Turn>> {
    let row = params.row();
    let mut seen = vec![false; row];
    for step in steps {
        match seen.get_mut(*step) {
            Some(seen) if *step > 0 && !*seen => *seen = true,
            _ => {
                let wanted = format!("different steps from 1 to {}", row - 1);
                return Err(Error::shape("rotation steps", wanted, step));
            }
        }
    }
    Ok(steps.iter().map(|step| Turn::Left(*step)).chain(swap.then_some(Turn::Swap)).collect())
}

impl RotationKeys {
    /// From the agreed seed and the bodies that the client sent, laid out as
    /// [`RotationKeys::layout`] says. `steps` are different, from 1 to N/2 - 1.
    ///
    /// # Errors
    /// [`Error::Shape`] for other steps, lengths, or integers beyond their primes.
    pub fn new(
        params: &Params,
        steps: &[usize],
        swap: bool,
        seed: &Seed,
        bodies: &[Vec<u64>],
    ) -> Result<Self> {
        let turns = turns(params, steps, swap)?;
        let each = params.extended().count() * digits(params);
        expect_len("segments of rotation keys", turns.len() * each, bodies.len())?;
        let keys = turns.into_iter().zip(bodies.chunks_exact(each.max(1)));
        let keys = keys.map(|(turn, bodies)| RotationKey::new(params, turn, seed, bodies));
        Ok(Self { params: params.clone(), keys: keys.collect::<Result<_>>()? })
    }

    /// The segments that are sent: integers, and bits of each. Key by key, the swap last,
    /// digit by digit, prime by prime.
    ///
    /// # Errors
    /// [`Error::Shape`] for steps that are zero, repeated, or N/2 and more.
    pub fn layout(params: &Params, steps: &[usize], swap: bool) -> Result<Vec<(usize, u32)>> {
        let keys = turns(params, steps, swap)?.len() * digits(params);
        let widths: Vec<u32> = params.extended().map(|(_, prime)| prime.bits).collect();
        let segments = (0..keys).flat_map(|_| widths.iter().map(|bits| (params.degree(), *bits)));
        Ok(segments.collect())
    }

    /// The integers to send, in the segments of [`RotationKeys::layout`].
    pub fn bodies(&self) -> Vec<Vec<u64>> {
        self.keys.iter().flat_map(|key| key.bodies(&self.params)).collect()
    }

    /// The parameters.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Memory that the key of one rotation takes, in bytes.
    pub fn bytes(params: &Params) -> usize {
        2 * 8 * params.degree() * params.extended().count() * digits(params)
    }

    fn get(&self, turn: Turn) -> Result<&RotationKey> {
        let found = self.keys.iter().find(|key| key.turn == turn);
        found.ok_or_else(|| {
            Error::shape("rotation", "one that there is a key for", format!("{turn:?}"))
        })
    }
}

impl RotationKey {
    fn new(params: &Params, turn: Turn, seed: &Seed, bodies: &[Vec<u64>]) -> Result<Self> {
        let (degree, count) = (params.degree(), digits(params));
        let order = &params.ring().order;
        let sources: Vec<u32> = order.sources(turn.back(params.row())).collect();
        let number = turn.number(params.row());
        let primes = params.extended().count();
        let mut values = vec![0.0; 2 * degree * primes * count];
        let mut out = values.chunks_exact_mut(degree);
        for (k, (i, prime)) in params.extended().enumerate() {
            for digit in 0..count {
                let body = bodies.get(digit * primes + k).map(Vec::as_slice).unwrap_or_default();
                prime.check("rotation key", body)?;
                let uniform = prime.uniform(seed, domain(ROTATION, number, digit, i), degree);
                for words in [body, &uniform] {
                    if let Some(out) = out.next() {
                        prime.load(out, words, &sources);
                    }
                }
            }
        }
        Ok(Self { turn, key: SwitchKey { values }, places: order.turned(turn) })
    }

    /// The bodies digit by digit, prime by prime.
    fn bodies(&self, params: &Params) -> Vec<Vec<u64>> {
        let (degree, count) = (params.degree(), digits(params));
        let order = &params.ring().order;
        // Of each slot the value that holds what the client made for it.
        let mut places = vec![0; degree];
        for (place, slot) in order.sources(self.turn.back(params.row())).enumerate() {
            if let Some(entry) = places.get_mut(slot as usize) {
                *entry = place as u32;
            }
        }
        let body = |digit: usize, (k, prime): (usize, &Prime)| {
            let values = self.key.values.chunks_exact(degree).nth(2 * (k * count + digit));
            prime.store(values.unwrap_or_default(), &places)
        };
        let primes = || params.extended().map(|(_, prime)| prime).enumerate();
        (0..count).flat_map(|digit| primes().map(move |prime| body(digit, prime))).collect()
    }

    fn turn(&self, cipher: &Ciphertext, digits: &Digits) -> Ciphertext {
        let params = &cipher.params;
        let (degree, level) = (params.degree(), params.ring().level);
        let mut switched = digits.switch(params, &self.key);
        let [c0, _] = &mut switched;
        let [theirs, _] = &cipher.halves;
        let parts = c0.chunks_exact_mut(degree).zip(theirs.chunks_exact(degree));
        for (prime, (c0, theirs)) in params.primes().iter().zip(parts) {
            residue::add(level, prime.float(), c0, theirs);
        }
        let mut turned = Ciphertext::zero(params);
        for (to, from) in turned.halves.iter_mut().zip(&switched) {
            for (to, from) in to.chunks_exact_mut(degree).zip(from.chunks_exact(degree)) {
                residue::gather(to, from, &self.places);
            }
        }
        turned
    }
}

impl Ciphertext {
    /// Both rows turned left by `step`, from 0 to N/2 - 1.
    ///
    /// # Errors
    /// [`Error::Shape`] for other parameters, or when there is no key for the step.
    pub fn rotate(&self, keys: &RotationKeys, step: usize) -> Result<Self> {
        if step == 0 { Ok(self.clone()) } else { self.turn(keys, Turn::Left(step)) }
    }

    /// Both rows exchanged.
    ///
    /// # Errors
    /// [`Error::Shape`] for other parameters, or when there is no key for it.
    pub fn swap_rows(&self, keys: &RotationKeys) -> Result<Self> {
        self.turn(keys, Turn::Swap)
    }

    fn turn(&self, keys: &RotationKeys, turn: Turn) -> Result<Self> {
        self.params.check("rotation key parameters", &keys.params)?;
        let key = keys.get(turn)?;
        let [_, c1] = &self.halves;
        Ok(key.turn(self, &Digits::of(&self.params, c1)))
    }

    /// Cuts the ciphertext into digits for any number of rotations.
    pub fn hoist(&self) -> Hoisted {
        let [_, c1] = &self.halves;
        Hoisted { cipher: self.clone(), digits: Digits::of(&self.params, c1) }
    }
}

impl Hoisted {
    /// The ciphertext.
    pub const fn cipher(&self) -> &Ciphertext {
        &self.cipher
    }

    /// As [`Ciphertext::rotate`].
    ///
    /// # Errors
    /// As there.
    pub fn rotate(&self, keys: &RotationKeys, step: usize) -> Result<Ciphertext> {
        self.cipher.params.check("rotation key parameters", &keys.params)?;
        if step == 0 {
            return Ok(self.cipher.clone());
        }
        Ok(keys.get(Turn::Left(step))?.turn(&self.cipher, &self.digits))
    }

    /// As [`Ciphertext::swap_rows`].
    ///
    /// # Errors
    /// As there.
    pub fn swap_rows(&self, keys: &RotationKeys) -> Result<Ciphertext> {
        self.cipher.params.check("rotation key parameters", &keys.params)?;
        Ok(keys.get(Turn::Swap)?.turn(&self.cipher, &self.digits))
    }
}

impl fmt::Debug for RotationKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RotationKeys({}, <{} keys>)", self.params, self.keys.len())
    }
}

impl fmt::Debug for Hoisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hoisted({})", self.cipher.params)
    }
}
