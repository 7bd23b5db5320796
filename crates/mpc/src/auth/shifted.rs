//! Integers that are committed before they exist: random ones are, and what they are off by is told.
//!
//! | | |
//! |---|---|
//! | In | correlated OTs whose sender is the server; later the client's integers mod 2^bits |
//! | Out | the client: the integers with their tags; the server: their keys, and how far the high bits are off |
//! | Reveals | differences to random bits that are used once, uniform |
//! | Security | as [`crate::auth`]: what a difference stands for follows from the random choices, which are committed |
//! | Cost | ahead the words of tags ([`Shifted::ahead_cost`]); then a bit up for each bit, and no word down |
//! | Paper | this project; differences to random bits: Beaver, "Precomputing oblivious transfer", CRYPTO 1995 |
//!
//! Of the random integer c the high bits count as one integer, from which that of p is off by d, so that what has
//! been garbled for the bits of c is used with the server's share and d. Each of the `skip` low bits stands for itself: p
//! has bit `c xor e`, which is `e + (1 - 2e)*c`. Both are linear in c for the d and e that were told, so that tags follow.

use std::fmt;

use gc::tagged::{ALPHA_BITS, BitTags, MacKeys};
use ot::{ReceiverBatch, SenderBatch};
use ring::word::mask;
use ring::{Bits, Random};
use wire::{Channel, Cost, Lane, Lanes, Result, Role, Values as Words, tags};
use zeroize::Zeroizing;

use super::commit::{ClientBits, ServerBits, accept_random, random};
use super::tag::{tag_client, tag_cost, tag_server};
use super::values::{Keys, Values};
use crate::defect::defect;

/// Client to server: differences.
type Told = Lanes<{ tags::SHIFTS }>;

/// Public sizes of integers of `bits` bits of which the lowest `skip` stand for themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shifted {
    count: usize,
    bits: u32,
    low: Vec<BitTags>,
    high: BitTags,
}

/// The client's random bits and their tags.
pub struct ClientShift {
    bits: ClientBits,
    low: Vec<Values>,
    high: Values,
}

/// What the server holds of them.
pub struct ServerShift {
    bits: ServerBits,
    low: Vec<Keys>,
    high: Keys,
}

impl Shifted {
    /// Plans `count` integers of `bits` bits, of which more than `skip` are there.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] for sizes that tags have no room for.
    pub fn new(count: usize, bits: u32, skip: u32) -> Result<Self> {
        let modulus = bits + ALPHA_BITS;
        let low = (0..skip).map(|bit| BitTags::new(count, 1, modulus - bit));
        let low = low.collect::<Result<_>>()?;
        let high = BitTags::new(count, bits.saturating_sub(skip), modulus.saturating_sub(skip))?;
        Ok(Self { count, bits, low, high })
    }

    fn skip(&self) -> u32 {
        self.low.len() as u32
    }

    /// Returns what the tags cost that are sent ahead.
    pub fn ahead_cost(&self) -> Cost {
        self.low.iter().chain([&self.high]).map(tag_cost).collect()
    }

    /// Returns what telling the differences costs.
    pub fn cost(&self) -> Cost {
        Cost::message(Role::Client, Told::body_len(&self.layout()))
    }

    fn layout(&self) -> Vec<Lane> {
        vec![Lane::Planes { planes: 1, count: self.bits as usize * self.count }]
    }

    /// Commits to random integers and receives their tags.
    ///
    /// # Errors
    /// [`wire::Error::Internal`] for another number of correlations, [`wire::Error::Peer`],
    /// [`wire::Error::Transport`].
    pub fn client(&self, ch: &mut Channel, ots: ReceiverBatch) -> Result<ClientShift> {
        let bits = random(ots, self.bits as usize, self.count)?;
        let mut low = Vec::with_capacity(self.low.len());
        for (bit, plan) in self.low.iter().enumerate() {
            low.push(tag_client(ch, plan, &bits.part(bit..bit + 1))?);
        }
        let high = self.low.len()..self.bits as usize;
        let high = tag_client(ch, &self.high, &bits.part(high))?;
        Ok(ClientShift { bits, low, high })
    }

    /// Accepts them and sends what makes their tags.
    ///
    /// # Errors
    /// [`wire::Error::Internal`] for another number of correlations, [`wire::Error::Transport`].
    pub fn server(
        &self,
        ch: &mut Channel,
        ots: SenderBatch,
        keys: &MacKeys,
        rng: &mut Random,
    ) -> Result<ServerShift> {
        let bits = accept_random(ots, self.bits as usize, self.count)?;
        let mut low = Vec::with_capacity(self.low.len());
        for (bit, plan) in self.low.iter().enumerate() {
            low.push(tag_server(ch, plan, keys, &bits.part(bit..bit + 1), rng)?);
        }
        let high = self.low.len()..self.bits as usize;
        let high = tag_server(ch, &self.high, keys, &bits.part(high), rng)?;
        Ok(ServerShift { bits, low, high })
    }

    /// Tells by how much `words`, mod 2^bits, are off; returns them with their tags, mod `2^(bits + 40)`.
    ///
    /// # Errors
    /// [`wire::Error::Internal`] for another number of words, [`wire::Error::Transport`].
    pub fn tell(&self, ch: &mut Channel, random: &ClientShift, words: &[u64]) -> Result<Values> {
        let (skip, planes) = (self.low.len(), random.bits.planes());
        if words.len() != self.count || planes.len() != self.bits as usize {
            return Err(defect("other integers than were committed"));
        }
        let mut told = Vec::with_capacity(planes.len());
        for (bit, plane) in planes.iter().enumerate().take(skip) {
            let mut own = Bits::of_words(words, bit as u32);
            own.xor(plane);
            told.push(own);
        }
        let high = self.bits - self.skip();
        let off = |(word, random): (&u64, &u128)| {
            (word >> self.skip()).wrapping_sub(*random as u64) & mask(high)
        };
        let off: Zeroizing<Vec<u64>> =
            Zeroizing::new(words.iter().zip(random.high.values()).map(off).collect());
        told.extend((0..high).map(|bit| Bits::of_words(&off, bit)));
        let mut all = Bits::default();
        told.iter().for_each(|plane| all.extend(plane));
        ch.send(&Told::new(vec![(self.lane(), Words::Planes(vec![all]))]))?;
        let high = random.high.plus(&widened(&off)).raised(self.modulus())?;
        told.iter().zip(&random.low).try_fold(high, |sum, (told, random)| {
            let (signs, ones) = flips(told);
            let bit = random.linear(|words| products(words, &signs)).plus(&ones);
            sum.more(&bit.raised(self.modulus())?)
        })
    }

    /// Receives the differences: the integers' keys, and how much the high bits are off.
    ///
    /// # Errors
    /// [`wire::Error::Peer`], [`wire::Error::Transport`].
    pub fn told(
        &self,
        ch: &mut Channel,
        random: &ServerShift,
        keys: &MacKeys,
    ) -> Result<(Keys, Vec<u64>)> {
        let message: Told = ch.receive(&self.layout())?;
        let all = match message.0.into_iter().next() {
            Some((_, Words::Planes(planes))) => planes.into_iter().next().unwrap_or_default(),
            _ => return Err(defect("differences of another layout")),
        };
        let skip = self.low.len();
        let plane = |at: usize| -> Bits {
            (0..self.count).map(|value| all.get(at * self.count + value)).collect()
        };
        let mut off = vec![0u64; self.count];
        for (bit, at) in (skip..self.bits as usize).enumerate() {
            off.iter_mut().zip(plane(at).iter()).for_each(|(off, one)| *off |= one << bit);
        }
        let high = random.high.plus(&widened(&off), keys).raised(self.modulus())?;
        let all = (0..skip).zip(&random.low).try_fold(high, |sum, (at, random)| {
            let (signs, ones) = flips(&plane(at));
            let bit = random.linear(|words| products(words, &signs)).plus(&ones, keys);
            sum.more(&bit.raised(self.modulus())?)
        });
        Ok((all?, off))
    }

    fn lane(&self) -> Lane {
        Lane::Planes { planes: 1, count: self.bits as usize * self.count }
    }

    fn modulus(&self) -> u32 {
        self.bits + ALPHA_BITS
    }
}

impl ClientShift {
    /// Returns the random bits.
    pub fn bits(&self) -> &ClientBits {
        &self.bits
    }

    /// Returns the labels of the random bits, plane after plane.
    pub(crate) fn labels(&mut self) -> &mut [u128] {
        self.bits.all_labels()
    }
}

impl ServerShift {
    /// Returns what is held of the random bits.
    pub fn bits(&self) -> &ServerBits {
        &self.bits
    }
}

/// For bits c and what is told of `c xor e`, the factors `1 - 2e` of c and the constants e.
fn flips(told: &Bits) -> (Vec<u128>, Vec<u128>) {
    let ones: Vec<u128> = told.iter().map(u128::from).collect();
    (ones.iter().map(|one| 1u128.wrapping_sub(2 * one)).collect(), ones)
}

fn products(words: &[u128], factors: &[u128]) -> Vec<u128> {
    words.iter().zip(factors).map(|(word, factor)| word.wrapping_mul(*factor)).collect()
}

fn widened(words: &[u64]) -> Vec<u128> {
    words.iter().map(|word| u128::from(*word)).collect()
}

impl fmt::Debug for ClientShift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientShift")
    }
}

impl fmt::Debug for ServerShift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerShift")
    }
}
