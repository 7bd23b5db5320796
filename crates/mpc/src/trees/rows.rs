//! The rows of a pool's slots: what the server encrypts, and what the client opens on its walks.
//!
//! A row is a stream of words: the next slot's key (two words), its place, then the increments. Row
//! c of slot i is masked by the blocks `AES_K(t xor (1 + c)*2^32 xor b)` of the slot's key and
//! `AES_L(t xor b)` of its label, b = 0, 1, ..., where t is `salt xor i*2^64`. No two blocks under
//! one key are equal. The salt is fresh for each pool, so that a search does not try one block
//! against many keys.
//!
//! Row 0 has no increments on the wire: the words of its streams are its increments, and the slot's
//! mask is what makes them so (row reduction: Naor, Pinkas, Sumner, "Privacy preserving auctions and
//! mechanism design", EC 1999).

use std::hint::black_box;

use graph::ops::{Pool, Walk as Sizes};
use ot::Column;
use ring::Bits;
use ring::prg::expand;
use ring::word::mask;
use ring::{Prg, Seed};
use wire::{Error, Result};
use zeroize::Zeroizing;

use crate::defect::defect;

/// Domain of the stream of salt, keys and masks.
const DOMAIN: u64 = u64::from_le_bytes(*b"a walk  ");
/// Words of a row before its increments: the next slot's key and place.
const HEAD: usize = 3;
/// The parts of a message: salts, keys and places of roots, keys, places and increments of rows.
pub(super) const PARTS: usize = 6;

/// Sizes of rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    pub(super) sizes: Sizes,
    pub(super) values: usize,
    pub(super) out_bits: u32,
}

/// Labels by slot, in halves.
#[derive(Clone, Copy)]
pub(super) struct Labels<'a>([&'a [u64]; 2]);

/// The server's view of one pool.
pub(super) struct Server<'a> {
    pub(super) rows: Rows,
    /// Number of the pool's first slot among those of all pools.
    pub(super) first: usize,
    /// The server's shares of outcomes.
    pub(super) right: &'a Bits,
    /// The client's masked choices.
    pub(super) asked: &'a Bits,
    /// The labels of both random choices.
    pub(super) labels: [Labels<'a>; 2],
    pub(super) pool: Pool<'a, u64>,
}

/// The client's view of one pool.
pub(super) struct Client<'a> {
    pub(super) rows: Rows,
    /// Number of the pool's first slot among those of all pools.
    pub(super) first: usize,
    /// The client's shares of outcomes.
    pub(super) right: &'a Bits,
    /// The labels of its shares.
    pub(super) labels: Labels<'a>,
    /// The parts of the message.
    pub(super) parts: &'a [Vec<u64>; PARTS],
}

impl<'a> Labels<'a> {
    /// The labels of a column of pairs.
    ///
    /// # Errors
    /// [`Error::Internal`] for a column of other entries.
    pub(super) fn of(column: &'a Column) -> Result<Self> {
        match column.words.as_slice() {
            [low, high] => Ok(Self([low, high])),
            _ => Err(defect("labels that are no pairs")),
        }
    }

    fn get(&self, slot: usize) -> u128 {
        let [low, high] = self.0.map(|half| half.get(slot).copied().unwrap_or(0));
        joined([low, high])
    }
}

/// A block of its halves, the low one first.
fn joined([low, high]: [u64; 2]) -> u128 {
    u128::from(low) | u128::from(high) << 64
}

/// Block `at` of a list of halves.
fn block(words: &[u64], at: usize) -> u128 {
    match words.get(2 * at..2 * at + 2) {
        Some([low, high]) => joined([*low, *high]),
        _ => 0,
    }
}

/// A bit, as all ones or zeros. The compiler must not know that it is one of the two: it would
/// branch on it.
fn mask_of(bits: &Bits, at: usize) -> u64 {
    let word = bits.words().get(at / 64).copied().unwrap_or(0);
    black_box((word >> (at % 64)) & 1).wrapping_neg()
}

/// Streams that mask rows, and room for them.
struct Streams {
    salt: u128,
    blocks: Zeroizing<Vec<[u8; 16]>>,
}

impl Streams {
    fn new(salt: u128, rows: Rows) -> Self {
        Self { salt, blocks: Zeroizing::new(vec![[0; 16]; (HEAD + rows.values).div_ceil(2)]) }
    }

    /// Masks a row of slot number `slot` of its pool by one stream: that of the slot's key in row
    /// `Some(c)`, that of a label otherwise.
    fn mask(&mut self, key: u128, slot: usize, row: Option<usize>, words: &mut [u64]) {
        let part = row.map_or(0, |row| (1 + row as u128) << 32);
        expand(key, self.salt ^ (slot as u128) << 64 ^ part, &mut self.blocks);
        let stream = self.blocks.as_flattened().as_chunks::<8>().0;
        for (word, pad) in words.iter_mut().zip(stream) {
            *word ^= u64::from_le_bytes(*pad);
        }
    }
}

impl Server<'_> {
    /// Encrypts the rows with keys of `seed`, and appends them to the parts of the message. Returns
    /// the server's shares of the leaves' values.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a pool whose edges lead out of it.
    pub(super) fn garble(&self, seed: &Seed, parts: &mut [Vec<u64>; PARTS]) -> Result<Vec<u64>> {
        let Rows { sizes, values, .. } = self.rows;
        let mut prg = Prg::new(seed, DOMAIN);
        let salt = [prg.word(), prg.word()];
        // Ends have keys too, so that edges to them look like all others; their masks are zero.
        let places = sizes.slots + sizes.trees;
        let keys = Zeroizing::new(prg.uniform(2 * places, 64));
        let mut masks = Zeroizing::new(vec![0; places * values]);
        let mut streams = Streams::new(joined(salt), self.rows);
        let mut rows = [0, 1].map(|_| Zeroizing::new(vec![0; HEAD + values]));
        let [salts, root_keys, roots, row_keys, row_places, increments] = parts;
        salts.extend(salt);
        row_keys.resize(4 * (self.first + sizes.slots), 0);
        row_places.resize(2 * (self.first + sizes.slots), 0);
        increments.resize((self.first + sizes.slots) * values, 0);
        for slot in self.last_first()? {
            for (outcome, row) in rows.iter_mut().enumerate() {
                let next = self.pool.next[outcome][slot] as usize;
                if next >= places {
                    return Err(outside());
                }
                row[..2].copy_from_slice(&keys[2 * next..2 * next + 2]);
                row[2] = next as u64;
                let terms = self.pool.increments[outcome][slot * values..].iter();
                let sums = terms.zip(&masks[next * values..]).zip(&mut row[HEAD..]);
                sums.for_each(|((term, mask), sum)| *sum = term.wrapping_add(*mask));
            }
            let own = &mut masks[slot * values..(slot + 1) * values];
            self.encrypt(slot, block(&keys, slot), &mut streams, &mut rows, own);
            let at = self.first + slot;
            for (row, words) in rows.iter().enumerate() {
                row_keys[4 * at + 2 * row..][..2].copy_from_slice(&words[..2]);
                row_places[2 * at + row] = words[2] & mask(sizes.place_bits());
            }
            increments[at * values..][..values].copy_from_slice(&rows[1][HEAD..]);
        }
        for root in self.pool.roots {
            let root = *root as usize;
            root_keys.extend_from_slice(&keys[2 * root..2 * root + 2]);
            roots.push(root as u64 & mask(sizes.place_bits()));
        }
        let shares = self.pool.roots.iter().map(|root| &masks[*root as usize * values..][..values]);
        Ok(shares.flatten().copied().collect())
    }

    /// All slots, each after those to which its edges lead; slots that no walk reaches come first.
    fn last_first(&self) -> Result<Vec<usize>> {
        let Rows { sizes, .. } = self.rows;
        let mut reached = vec![false; sizes.slots];
        let mut order = Vec::with_capacity(sizes.slots);
        let mut here: Vec<usize> = self.pool.roots.iter().map(|root| *root as usize).collect();
        for _ in 0..sizes.depth {
            let mut below = Vec::with_capacity(2 * here.len());
            for slot in here {
                let known = reached.get_mut(slot);
                if slot >= sizes.slots + sizes.trees {
                    return Err(outside());
                }
                if known.is_some_and(|known| !std::mem::replace(known, true)) {
                    order.push(slot);
                    below.extend(self.pool.next.map(|next| next[slot] as usize));
                }
            }
            here = below;
        }
        order.extend((0..sizes.slots).filter(|slot| !reached[*slot]));
        order.reverse();
        Ok(order)
    }

    /// Orders the rows of both outcomes by the server's share, and encrypts them; where increments
    /// stand, rows come with what they add up to beyond the next slot. Sets the slot's mask.
    fn encrypt(
        &self,
        slot: usize,
        key: u128,
        streams: &mut Streams,
        rows: &mut [Zeroizing<Vec<u64>>; 2],
        own: &mut [u64],
    ) {
        let at = self.first + slot;
        let [share, asked] = [self.right, self.asked].map(|bits| mask_of(bits, at));
        let [left, right] = rows;
        for (left, right) in left.iter_mut().zip(right.iter_mut()) {
            let change = (*left ^ *right) & share;
            *left ^= change;
            *right ^= change;
        }
        let asked = u128::from(asked) | u128::from(asked) << 64;
        let [zero, one] = self.labels.map(|labels| labels.get(at));
        let change = (zero ^ one) & asked;
        // The increments of row 0 are its streams.
        own.copy_from_slice(&left[HEAD..]);
        left[HEAD..].fill(0);
        streams.mask(key, slot, Some(0), left);
        streams.mask(zero ^ change, slot, None, left);
        for ((own, stream), sum) in own.iter_mut().zip(&left[HEAD..]).zip(&mut right[HEAD..]) {
            *own = own.wrapping_sub(*stream);
            *sum = sum.wrapping_sub(*own);
        }
        streams.mask(key, slot, Some(1), right);
        streams.mask(one ^ change, slot, None, right);
        let low = mask(self.rows.out_bits);
        own.iter_mut().chain(&mut right[HEAD..]).for_each(|word| *word &= low);
    }
}

fn outside() -> Error {
    Error::misuse("a pool of trees whose edges lead out of it")
}

impl Client<'_> {
    /// Walks through tree number `tree` of pool number `pool`. Returns the sums of the increments.
    ///
    /// # Errors
    /// [`Error::Peer`] when a row leads to a place where no slot is.
    pub(super) fn walk(&self, pool: usize, tree: usize) -> Result<Vec<u64>> {
        let Rows { sizes, values, out_bits } = self.rows;
        let [salts, root_keys, roots, ..] = self.parts;
        let mut streams = Streams::new(block(salts, pool), self.rows);
        let root = pool * sizes.trees + tree;
        let mut row = Zeroizing::new(vec![0; HEAD + values]);
        let mut sums = vec![0u64; values];
        let mut key = Zeroizing::new(block(root_keys, root));
        let mut place = roots.get(root).copied().unwrap_or(u64::MAX);
        for _ in 0..sizes.depth {
            let slot = place as usize;
            if slot >= sizes.slots {
                let wanted = format!("a slot below {}", sizes.slots);
                return Err(Error::peer(wanted, format!("slot {place}")));
            }
            self.read(self.first + slot, &mut row);
            let share = usize::from(mask_of(self.right, self.first + slot) != 0);
            streams.mask(*key, slot, Some(share), &mut row);
            streams.mask(self.labels.get(self.first + slot), slot, None, &mut row);
            *key = block(&row, 0);
            place = row[2] & mask(sizes.place_bits());
            for (sum, term) in sums.iter_mut().zip(&row[HEAD..]) {
                *sum = sum.wrapping_add(*term) & mask(out_bits);
            }
        }
        Ok(sums)
    }

    /// Copies the row of the client's share, reading both.
    fn read(&self, at: usize, row: &mut [u64]) {
        let share = mask_of(self.right, at);
        let [.., keys, places, increments] = self.parts;
        let values = self.rows.values;
        let mut take = |from: &[u64], to: usize, each: usize| {
            let (zero, one) = (&from[2 * at * each..], &from[(2 * at + 1) * each..]);
            for ((word, zero), one) in row[to..to + each].iter_mut().zip(zero).zip(one) {
                *word = zero ^ ((zero ^ one) & share);
            }
        };
        take(keys, 0, 2);
        take(places, 2, 1);
        // The increments of row 0 are zeros that are not sent.
        let own = increments[at * values..].iter();
        row[HEAD..].iter_mut().zip(own).for_each(|(word, own)| *word = own & share);
    }
}
