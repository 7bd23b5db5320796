//! Walks through the tests of all trees, which lie in one pool in an order that is fresh for every
//! input.
//!
//! | | |
//! |---|---|
//! | In | xor shares of each test's outcome; the server's pool, in an order that is uniform and used once, and 16 bytes of its randomness that are used once; random OTs |
//! | Out | shares mod 2^out_bits of the values of the leaf that each tree reaches |
//! | Reveals | masked choices to the server; to the client for each tree as many slots as walks have steps, all distinct and in uniform order |
//! | Security | semi-honest, given the correlations, if AES is a pseudo-random permutation |
//! | Cost | for each slot an OT, a bit up and two rows down, each of 16 bytes and the number of a slot, one of them with out_bits for each value of a leaf; 2 rounds |
//! | Paper | Brickell, Porter, Shmatikov, Witchel, "Privacy-preserving remote diagnostics" (CCS 2007): branching programs whose nodes are encrypted and permuted; garbled tests replaced by OTs of shared outcomes |
//!
//! Slot i has a key K_i, and an OT gives the client the label L_i^c of its share c of the
//! outcome. Row c of the slot holds key and place of the next slot and the increments of the edge
//! for the outcome that c and the server's share make, under AES streams of K_i and of L_i^c
//! ([`rows`]). The client knows the keys of the slots on its walks only, and one label of each
//! slot, so that it opens one row of each slot on its walks and nothing else.
//!
//! Each slot has a mask. An increment goes out with the mask of the next slot added and that of its
//! own slot subtracted, so that the sum over a walk is the leaf's value less the mask of the root,
//! which is the server's share. The mask of a slot is what makes the increments of its row 0 equal to
//! the streams that mask them, so that they need not be sent; streams of which the client lacks a
//! key are uniform to it, and so are masks.
//!
//! *Data-dependent work.* The client reads the rows of slots in the order of its walks, which it
//! knows, and which is uniform, whatever the trees, the input and the outcomes are. The server reads keys
//! and masks at the places to which the edges of its own pool lead. These are places after a fresh
//! uniform permutation, and no share, label or outcome has an influence on them; they depend on the
//! server's own trees, as its reading of the model does. Its share of an outcome swaps two rows by a mask.

use ot::one_of_n::{choices_cost, choices_layout};
use ot::{Choices, Entry, Job};
use ring::word::mask;
use ring::{Bits, Seed};
use wire::{Channel, Cost, Error, Lane, Lanes, MOST_BODY, Result, Role, Values, tags};
use zeroize::Zeroizing;

use super::paths::Paths;
use super::rows::{Client, Labels, PARTS, Rows, Server};
use super::shape::{FRESH, Shape};
use crate::correlations::{Correlations, Demand};
use crate::defect::defect;
use graph::ops::{Pool, Walk as Sizes};

/// Most slots of a pool.
const MOST_SLOTS: usize = 1 << 20;
/// Most values of a leaf.
const MOST_VALUES: usize = 1 << 12;

/// The roots, and the rows of all slots.
type Message = Lanes<{ tags::TREE_ROWS }>;

/// Whether rows of these sizes fit a message, and places fit words of the width of tests.
pub(super) fn fits(sizes: &Sizes, shape: &Shape) -> bool {
    let places = sizes.slots.saturating_add(sizes.trees) as u64;
    let known = sizes.check().is_ok() && shape.bits >= u8::BITS && shape.values <= MOST_VALUES;
    known && places <= mask(shape.bits) && {
        let walk = Walk::new([1, shape.values], *sizes, shape.out_bits);
        sizes.slots <= MOST_SLOTS && Message::body_len(&walk.layout()) <= MOST_BODY
    }
}

/// The public plan of walks through pools.
#[derive(Debug)]
pub(super) struct Walk {
    /// Number of pools, one for each input.
    count: usize,
    values: usize,
    sizes: Sizes,
    out_bits: u32,
}

impl Walk {
    /// Plans walks through `count` pools of `values` a leaf.
    pub(super) fn new([count, values]: [usize; 2], sizes: Sizes, out_bits: u32) -> Self {
        Self { count, values, sizes, out_bits }
    }

    /// A label for each slot and share.
    fn job(&self) -> Job {
        let entry = Entry::Pair(64, 64);
        Job { count: self.count * self.sizes.slots, choice_bits: 1, entry }
    }

    /// Salts, keys of roots, places of roots; keys and places of rows, increments of rows 1.
    fn layout(&self) -> Vec<Lane> {
        let (roots, rows) = (self.count * self.sizes.trees, 2 * self.count * self.sizes.slots);
        let place = self.sizes.place_bits();
        let words = |count, bits| Lane::Words { count, bits };
        vec![
            words(2 * self.count, 64),
            words(2 * roots, 64),
            words(roots, place),
            words(2 * rows, 64),
            words(rows, place),
            words(rows / 2 * self.values, self.out_bits),
        ]
    }

    fn rows(&self) -> Rows {
        Rows { sizes: self.sizes, values: self.values, out_bits: self.out_bits }
    }

    /// Sends the client's choices, and walks through what the server answers.
    fn walk(&self, channel: &mut Channel, right: &Bits, mut ots: Correlations) -> Result<Vec<u64>> {
        let pads = ots.receive(&[self.job()])?.pop().ok_or_else(|| defect("no labels"))?;
        let (choices, labels) = pads.into_parts();
        let mut masked = choices.into_iter().next().ok_or_else(|| defect("no choices"))?;
        masked.xor(right);
        let lane = self.job().choice_lane();
        channel.send(&Choices::new(vec![(lane, Values::Planes(vec![masked]))]))?;
        let message: Message = channel.receive(&self.layout())?;
        let parts = parts_of(message)?;
        let labels = Labels::of(&labels)?;
        let mut sums = Vec::with_capacity(self.count * self.sizes.trees * self.values);
        for pool in 0..self.count {
            let first = pool * self.sizes.slots;
            let client = Client { rows: self.rows(), first, right, labels, parts: &parts };
            for tree in 0..self.sizes.trees {
                sums.extend(client.walk(pool, tree)?);
            }
        }
        Ok(sums)
    }

    /// Answers the client's choices with rows. Returns the masks that walks leave in their sums.
    fn answer(
        &self,
        channel: &mut Channel,
        right: &Bits,
        pools: &[&[u64]],
        mut ots: Correlations,
    ) -> Result<Vec<u64>> {
        let pads = ots.send(&[self.job()])?.pop().ok_or_else(|| defect("no labels"))?;
        let choices: Choices = channel.receive(&choices_layout(&[self.job()]))?;
        let asked = match choices.0.into_iter().next() {
            Some((_, Values::Planes(planes))) => planes.into_iter().next(),
            _ => None,
        };
        let asked = asked.ok_or_else(|| defect("choices without a plane"))?;
        let labels = Zeroizing::new(pads.into_columns());
        let [zero, one] = labels.as_slice() else { return Err(defect("labels of no bit")) };
        let labels = [Labels::of(zero)?, Labels::of(one)?];
        let (slots, mut parts) = (self.sizes.slots, [const { Vec::new() }; PARTS]);
        let mut shares = Vec::with_capacity(self.count * self.sizes.trees * self.values);
        for (at, words) in pools.iter().enumerate() {
            let split = words.split_at_checked(words.len().saturating_sub(FRESH));
            let (words, fresh) = split.ok_or_else(|| defect("a pool without randomness"))?;
            let pool = Pool::new(&self.sizes, self.values, words);
            let mut seed = Seed([0; 16]);
            seed.0.iter_mut().zip(fresh).for_each(|(to, word)| *to = *word as u8);
            let server = Server {
                rows: self.rows(),
                first: at * slots,
                right,
                asked: &asked,
                labels,
                pool: pool.ok_or_else(|| defect("a pool of other sizes"))?,
            };
            shares.extend(server.garble(&seed, &mut parts)?);
        }
        let parts = self.layout().into_iter().zip(parts.map(Values::Words));
        channel.send(&Message::new(parts.collect()))?;
        Ok(shares)
    }
}

impl Paths for Walk {
    fn describe(&self) -> String {
        let Sizes { slots, depth, .. } = self.sizes;
        format!("walks of {depth} steps through {slots} encrypted slots")
    }

    fn demand(&self) -> Demand {
        Demand { server_sends: vec![self.job()], ..Demand::default() }
    }

    fn cost(&self) -> Cost {
        let rows = Cost::message(Role::Server, Message::body_len(&self.layout()));
        choices_cost(Role::Client, &[self.job()]).then(rows)
    }

    fn planes(&self) -> usize {
        1
    }

    fn run(
        &self,
        channel: &mut Channel,
        right: Vec<Bits>,
        pools: &[&[u64]],
        ots: Correlations,
    ) -> Result<Vec<u64>> {
        let right = Zeroizing::new(right);
        let [right] = right.as_slice() else { return Err(defect("outcomes in other planes")) };
        match channel.role() {
            Role::Client => self.walk(channel, right, ots),
            Role::Server => self.answer(channel, right, pools, ots),
        }
    }
}

/// The words of the message's parts.
fn parts_of(message: Message) -> Result<[Vec<u64>; PARTS]> {
    let words = message.0.into_iter().map(|(_, values)| match values {
        Values::Words(words) => Ok(words),
        Values::Planes(_) => Err(Error::peer("rows of integers", "bits")),
    });
    let parts: Vec<Vec<u64>> = words.collect::<Result<_>>()?;
    parts.try_into().map_err(|_| Error::peer("the parts of rows", "others"))
}
