//! Rotations of slots: an automorphism, then key switching back to the secret.
//!
//! Keys are kept turned back, so that digits are multiplied as they are and only the
//! result is turned: one decomposition serves any number of rotations (hoisting).

use std::fmt;

use ring::Seed;

use super::cipher::Ciphertext;
use super::params::Params;
use super::ring::{Turn, domain};
use super::switch::{Digits, Rows, SwitchKey, digits};
use super::values::Values;
use crate::error::{Error, Result, expect_len};
use crate::simd::residue::{self, Permutation};

/// Separates the uniform halves of rotation keys from every other use of a seed.
pub(crate) const ROTATION: &[u8; 4] = b"bfvr";

/// Keys for some rotations of both rows to the left, and for swapping the rows.
pub struct RotationKeys {
    params: Params,
    keys: Vec<RotationKey>,
}

/// Rotation keys of which some have yet to come.
pub struct Incoming {
    keys: RotationKeys,
    turns: std::vec::IntoIter<Turn>,
    seed: Seed,
}

struct RotationKey {
    turn: Turn,
    key: SwitchKey,
    /// Where each value of a turned polynomial comes from.
    places: Permutation,
}

/// A ciphertext cut into digits, ready for many rotations.
pub struct Hoisted {
    cipher: Ciphertext,
    rows: Vec<Values>,
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
        let mut keys = Self::incoming(params, steps, swap, seed)?;
        let each = params.extended().count() * digits(params);
        bodies.chunks(each.max(1)).try_for_each(|bodies| keys.add(bodies))?;
        keys.whole()
    }

    /// Reads the keys one at a time, as they arrive.
    ///
    /// # Errors
    /// [`Error::Shape`] for other steps.
    pub fn incoming(params: &Params, steps: &[usize], swap: bool, seed: &Seed) -> Result<Incoming> {
        let turns = turns(params, steps, swap)?.into_iter();
        let keys = Self { params: params.clone(), keys: Vec::with_capacity(turns.len()) };
        Ok(Incoming { keys, turns, seed: seed.clone() })
    }

    /// Returns the segments that are sent: integers, and bits of each. Key by key, the swap last,
    /// digit by digit, prime by prime.
    ///
    /// # Errors
    /// [`Error::Shape`] for steps that are zero, repeated, or N/2 and more.
    pub fn layout(params: &Params, steps: &[usize], swap: bool) -> Result<Vec<(usize, u32)>> {
        let keys = turns(params, steps, swap)?;
        Ok(keys.iter().flat_map(|_| SwitchKey::layout(params)).collect())
    }

    /// Returns the integers to send, in the segments of [`RotationKeys::layout`].
    pub fn bodies(&self) -> Vec<Vec<u64>> {
        self.keys.iter().flat_map(|key| key.bodies(&self.params)).collect()
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the memory that the key of one rotation takes, in bytes.
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

impl Incoming {
    /// Returns the next key, from its segments of [`RotationKeys::layout`].
    ///
    /// # Errors
    /// [`Error::Shape`] for a key too many, other lengths, or integers beyond their primes.
    pub fn add(&mut self, bodies: &[Vec<u64>]) -> Result<()> {
        let params = &self.keys.params;
        let each = params.extended().count() * digits(params);
        expect_len("segments of a rotation key", each, bodies.len())?;
        let next = self.turns.next();
        let turn = next.ok_or_else(|| Error::shape("rotation keys", "no more", "another"))?;
        let key = RotationKey::new(params, turn, &self.seed, bodies)?;
        self.keys.keys.push(key);
        Ok(())
    }

    /// Returns all keys.
    ///
    /// # Errors
    /// [`Error::Shape`] when some have not come.
    pub fn whole(self) -> Result<RotationKeys> {
        expect_len("rotation keys that are missing", 0, self.turns.len())?;
        Ok(self.keys)
    }
}

impl RotationKey {
    fn new(params: &Params, turn: Turn, seed: &Seed, bodies: &[Vec<u64>]) -> Result<Self> {
        let order = &params.ring().order;
        let [sources, _] = order.turned_slots(turn.back(params.row()));
        let number = turn.number(params.row());
        let domain = |digit, prime| domain(ROTATION, number, digit, prime);
        let key = SwitchKey::new(params, &sources, domain, seed, bodies)?;
        Ok(Self { turn, key, places: order.turned(turn) })
    }

    /// The bodies digit by digit, prime by prime.
    fn bodies(&self, params: &Params) -> Vec<Vec<u64>> {
        let [_, places] = params.ring().order.turned_slots(self.turn.back(params.row()));
        self.key.bodies(params, &places)
    }

    fn turn(&self, cipher: &Ciphertext, rows: Rows<'_>) -> Ciphertext {
        let params = &cipher.params;
        let [c0, _] = &cipher.halves;
        let switched = rows.switch(params, &self.key, c0);
        let halves = switched.map(|from| {
            let mut to = Values::zero(from.len());
            let (to_parts, from_parts) =
                (to.chunks_exact_mut(params.degree()), from.chunks_exact(params.degree()));
            for (to, from) in to_parts.zip(from_parts) {
                residue::gather(to, from, &self.places);
            }
            to
        });
        Ciphertext { params: params.clone(), halves }
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
        keys.params.check_covers("rotation key parameters", &self.params)?;
        let key = keys.get(turn)?;
        let [_, c1] = &self.halves;
        let digits = Digits::of(&self.params, c1);
        Ok(key.turn(self, Rows::once(&digits, Some(c1))))
    }

    /// Cuts the ciphertext into digits for any number of rotations.
    pub fn hoist(&self) -> Hoisted {
        let [_, c1] = &self.halves;
        let rows = Digits::of(&self.params, c1).rows(&self.params, c1);
        Hoisted { cipher: self.clone(), rows }
    }
}

impl Hoisted {
    /// Returns the ciphertext.
    pub const fn cipher(&self) -> &Ciphertext {
        &self.cipher
    }

    /// Turns the rows as [`Ciphertext::rotate`] does.
    ///
    /// # Errors
    /// As there.
    pub fn rotate(&self, keys: &RotationKeys, step: usize) -> Result<Ciphertext> {
        keys.params.check_covers("rotation key parameters", &self.cipher.params)?;
        if step == 0 {
            return Ok(self.cipher.clone());
        }
        Ok(keys.get(Turn::Left(step))?.turn(&self.cipher, Rows::Kept(&self.rows)))
    }

    /// Swaps the rows as [`Ciphertext::swap_rows`] does.
    ///
    /// # Errors
    /// As there.
    pub fn swap_rows(&self, keys: &RotationKeys) -> Result<Ciphertext> {
        keys.params.check_covers("rotation key parameters", &self.cipher.params)?;
        Ok(keys.get(Turn::Swap)?.turn(&self.cipher, Rows::Kept(&self.rows)))
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
