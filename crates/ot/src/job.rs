//! The shape of a batch of 1-of-2^m oblivious transfers.

use wire::{Error, Lane, Result};

/// Most bits of a pad.
const PAD_BITS: u32 = u128::BITS;

/// The values of a table and how their two shares are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// This many bits (1 to 128), shared by exclusive or.
    Bits(u32),
    /// The same, with pads of `spare` bits more that no message carries: the sender draws random
    /// bits from them ([`SenderPads::take_spare`](crate::SenderPads::take_spare)). At most 128 bits
    /// in all.
    Spared {
        /// Bits shared by exclusive or.
        bits: u32,
        /// Bits of each pad beyond them.
        spare: u32,
    },
    /// An integer mod 2^l (l from 1 to 64), shared by addition.
    Word(u32),
    /// Two integers under one choice.
    Pair(u32, u32),
}

/// `count` oblivious transfers of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Number of elements.
    pub count: usize,
    /// Width m of a choice, 1 to 8: tables have 2^m entries.
    pub choice_bits: u32,
    /// What an entry of a table holds.
    pub entry: Entry,
}

impl Entry {
    /// Returns the widths of the integers in an entry, in bits; none for bits.
    pub fn words(self) -> impl Iterator<Item = u32> + Clone {
        let (first, second) = match self {
            Self::Bits(_) | Self::Spared { .. } => (None, None),
            Self::Word(bits) => (Some(bits), None),
            Self::Pair(first, second) => (Some(first), Some(second)),
        };
        first.into_iter().chain(second)
    }

    /// Returns the number of bits shared by exclusive or; 0 for integers.
    pub const fn planes(self) -> usize {
        match self {
            Self::Bits(bits) | Self::Spared { bits, .. } => bits as usize,
            _ => 0,
        }
    }

    /// Returns the number of bits of a pad that are kept as planes: those of [`Entry::planes`] and
    /// the spare ones.
    pub const fn pad_planes(self) -> usize {
        match self {
            Self::Spared { bits, spare } => (bits as usize).saturating_add(spare as usize),
            entry => entry.planes(),
        }
    }

    fn is_legal(self) -> bool {
        let fits = |bits: u32, most: u32| (1..=most).contains(&bits);
        match self {
            Self::Bits(bits) => fits(bits, PAD_BITS),
            Self::Spared { bits, spare } => {
                fits(bits, PAD_BITS) && fits(spare, PAD_BITS) && bits <= PAD_BITS - spare
            }
            Self::Word(bits) => fits(bits, 64),
            Self::Pair(first, second) => fits(first, 64) && fits(second, 64),
        }
    }
}

impl Job {
    /// Returns the number of correlations that the job consumes.
    pub const fn cots(&self) -> usize {
        self.count.saturating_mul(self.choice_bits as usize)
    }

    /// Returns the number of entries of a table, 2^m.
    pub const fn entries(&self) -> usize {
        1 << self.choice_bits
    }

    /// Returns the layout of what the receiver sends.
    pub const fn choice_lane(&self) -> Lane {
        Lane::Planes { planes: self.choice_bits as usize, count: self.count }
    }

    /// Returns the layout of what the sender sends: the entries but the first.
    pub fn value_lanes(&self) -> Vec<Lane> {
        let sent = self.entries() - 1;
        match self.entry {
            Entry::Bits(bits) | Entry::Spared { bits, .. } => {
                vec![Lane::Planes { planes: sent * bits as usize, count: self.count }]
            }
            entry => {
                let count = self.count.saturating_mul(sent);
                entry.words().map(|bits| Lane::Words { count, bits }).collect()
            }
        }
    }

    /// # Errors
    /// [`Error::Internal`] for widths out of range.
    pub(crate) fn check(&self) -> Result<()> {
        if (1..=8).contains(&self.choice_bits) && self.entry.is_legal() {
            return Ok(());
        }
        Err(Error::internal("an OT of 1-8 bits to 1-128 bits or to integers of 1-64 bits"))
    }
}
