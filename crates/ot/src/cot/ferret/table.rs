//! The table that rows of the code are sums of: the correlations of a refill's secret.
//!
//! The largest has 10 MB and is read at random places, six for each correlation. In pages of 4 KiB it has more of them than a
//! processor remembers the addresses of, so that a read waits for an address before it waits for the block; Linux is asked for
//! pages of 2 MiB.

use zeroize::optimization_barrier;

use crate::simd::sums::Block;

/// The correlations of a secret, a block for each of its bits. They are wiped when dropped.
pub(super) struct Table {
    memory: Memory,
    length: usize,
}

impl Table {
    /// The correlations in order.
    pub(super) fn new(correlations: impl ExactSizeIterator<Item = u128>) -> Self {
        let length = correlations.len();
        let mut table = Self { memory: Memory::new(size_of::<Block>() * length), length };
        let (blocks, _) = table.memory.bytes_mut().as_chunks_mut();
        blocks.iter_mut().zip(correlations).for_each(|(block, value)| *block = value.to_le_bytes());
        table
    }

    pub(super) fn blocks(&self) -> &[Block] {
        &self.memory.bytes().as_chunks().0[..self.length]
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let bytes = self.memory.bytes_mut();
        bytes.fill(0);
        optimization_barrier(bytes);
    }
}

/// At least so many bytes as were asked for.
enum Memory {
    Small(Vec<u8>),
    #[cfg(target_os = "linux")]
    Large(large::Pages),
}

impl Memory {
    fn new(bytes: usize) -> Self {
        #[cfg(target_os = "linux")]
        if let Some(pages) = large::Pages::new(bytes) {
            return Self::Large(pages);
        }
        Self::Small(vec![0; bytes])
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Small(bytes) => bytes,
            #[cfg(target_os = "linux")]
            Self::Large(pages) => pages.bytes(),
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Small(bytes) => bytes,
            #[cfg(target_os = "linux")]
            Self::Large(pages) => pages.bytes_mut(),
        }
    }
}

#[cfg(target_os = "linux")]
mod large {
    use memmap2::{Advice, MmapMut};

    /// Bytes of a large page.
    const PAGE: usize = 2 << 20;

    /// Memory that starts where a large page may start.
    pub(super) struct Pages {
        memory: MmapMut,
        start: usize,
    }

    impl Pages {
        /// Nothing where less is asked for than a page, or where the system has no memory of this kind. Whether it makes
        /// its pages large is its own affair.
        pub(super) fn new(bytes: usize) -> Option<Self> {
            let whole = (bytes >= PAGE).then(|| bytes.next_multiple_of(PAGE) + PAGE)?;
            let memory = MmapMut::map_anon(whole).ok()?;
            let start = memory.as_ptr().align_offset(PAGE);
            let advised = memory.advise_range(Advice::HugePage, start, whole - PAGE);
            // Smaller pages do as well, but slower.
            drop(advised);
            Some(Self { memory, start })
        }

        pub(super) fn bytes(&self) -> &[u8] {
            &self.memory[self.start..]
        }

        pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
            &mut self.memory[self.start..]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::Random;

    #[test]
    fn small_and_large_tables_hold_what_they_are_given() {
        let mut rng = Random::seeded(3);
        for length in [0, 1, 5000, (2 << 20) / 16, 200_000] {
            let values: Vec<u128> = (0..length).map(|_| rng.block()).collect();
            let table = Table::new(values.iter().copied());
            let found = table.blocks().iter().map(|block| u128::from_le_bytes(*block));
            assert!(found.eq(values));
        }
    }
}
