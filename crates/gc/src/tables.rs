//! Garbled tables on their way: bytes in chunks of a fixed size.

use std::collections::VecDeque;
use std::fmt;

use wire::{Error, Result};

use crate::batch::Batch;

/// Bytes of every chunk but the last: few enough for an allocator to have them at hand.
pub const CHUNK: usize = 1 << 16;

/// Returns the chunks of a batch's tables: their lengths, in order.
pub fn chunks(batch: &Batch) -> impl Iterator<Item = usize> + use<> {
    chunks_of(batch.table_bytes())
}

/// Returns the lengths of the chunks of `total` bytes, in order.
pub fn chunks_of(total: usize) -> impl Iterator<Item = usize> + use<> {
    (0..total).step_by(CHUNK).map(move |start| CHUNK.min(total - start))
}

/// All tables of one batch, to be evaluated once: evaluation with labels of another input
/// would reveal both. Not `Clone`; once is fine,
/// ```
/// use tacit_gc::{Batch, Tables, evaluate};
/// fn once(batch: &Batch, tables: Tables, labels: &[u128]) -> wire::Result<Vec<Vec<u64>>> {
///     evaluate(batch, tables, labels, labels)
/// }
/// ```
/// twice does not compile:
/// ```compile_fail,E0382
/// use tacit_gc::{Batch, Tables, evaluate};
/// fn twice(batch: &Batch, tables: Tables, labels: &[u128]) -> wire::Result<Vec<Vec<u64>>> {
///     evaluate(batch, tables, labels, labels)?;
///     evaluate(batch, tables, labels, labels)
/// }
/// ```
pub struct Tables {
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk that have been read.
    read: usize,
}

impl Tables {
    /// Collects the chunks of `batch`; `next` is told the length of each.
    ///
    /// # Errors
    /// [`Error::Peer`] for a chunk of another length; whatever `next` returns.
    pub fn collect(batch: &Batch, next: impl FnMut(usize) -> Result<Vec<u8>>) -> Result<Self> {
        Self::collect_bytes(batch.table_bytes(), next)
    }

    /// Collects the chunks of `total` bytes; `next` is told the length of each.
    ///
    /// # Errors
    /// As [`Tables::collect`].
    pub fn collect_bytes(
        total: usize,
        mut next: impl FnMut(usize) -> Result<Vec<u8>>,
    ) -> Result<Self> {
        let mut tables = Self::none();
        tables.fill(total, &mut chunks_of(total), &mut next)?;
        Ok(tables)
    }

    /// No bytes yet.
    pub(crate) const fn none() -> Self {
        Self { chunks: VecDeque::new(), read: 0 }
    }

    /// Takes chunks of the lengths `lens` until `wanted` bytes are held.
    ///
    /// # Errors
    /// As [`Tables::collect`].
    pub(crate) fn fill(
        &mut self,
        wanted: usize,
        lens: &mut impl Iterator<Item = usize>,
        next: &mut impl FnMut(usize) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let mut held = self.len();
        while held < wanted {
            let len = lens.next().ok_or_else(|| Error::internal("tables of another batch"))?;
            let chunk = next(len)?;
            if chunk.len() != len {
                let got = format!("{} bytes", chunk.len());
                return Err(Error::peer(format!("{len} bytes of garbled tables"), got));
            }
            held += len;
            self.chunks.push_back(chunk);
        }
        Ok(())
    }

    /// Returns the number of bytes held.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum::<usize>() - self.read
    }

    /// Returns whether all have been read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the next blocks.
    #[inline]
    pub(crate) fn read_blocks<'b>(
        &mut self,
        blocks: impl Iterator<Item = &'b mut [u128]>,
    ) -> Result<()> {
        for blocks in blocks {
            let ready = self.chunks.front().and_then(|chunk| chunk.get(self.read..));
            let ready = ready.and_then(|rest| rest.get(..16 * blocks.len() + 1));
            if let Some(bytes) = ready {
                let rows = blocks.iter_mut().zip(bytes.as_chunks().0);
                rows.for_each(|(block, row)| *block = u128::from_le_bytes(*row));
                self.read += 16 * blocks.len();
            } else {
                self.read_across(blocks)?;
            }
        }
        Ok(())
    }

    /// Returns the next `len` bytes, in `across` where a chunk ends among them.
    #[inline]
    pub(crate) fn next<'b>(&'b mut self, len: usize, across: &'b mut [u8]) -> Result<&'b [u8]> {
        let start = self.read;
        // Some bytes of the chunk remain, so that it is not dropped yet.
        if self.chunks.front().is_some_and(|chunk| chunk.len() > start + len) {
            self.read += len;
            let chunk = self.chunks.front().map_or(&[][..], Vec::as_slice);
            return Ok(&chunk[start..start + len]);
        }
        self.read(&mut across[..len])?;
        Ok(&across[..len])
    }

    /// Reads blocks one by one, where a chunk ends among them.
    fn read_across(&mut self, blocks: &mut [u128]) -> Result<()> {
        for block in blocks {
            let mut bytes = [0; 16];
            self.read(&mut bytes)?;
            *block = u128::from_le_bytes(bytes);
        }
        Ok(())
    }

    /// Reads the next bytes; what has been read is dropped chunk by chunk.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<()> {
        let mut out = out;
        while !out.is_empty() {
            let Some(chunk) = self.chunks.front() else {
                return Err(Error::internal("garbled tables of another batch"));
            };
            let rest = chunk.get(self.read..).unwrap_or_default();
            let now = rest.len().min(out.len());
            let (to, later) = out.split_at_mut(now);
            to.copy_from_slice(rest.get(..now).unwrap_or_default());
            self.read += now;
            if self.read == chunk.len() {
                self.chunks.pop_front();
                self.read = 0;
            }
            out = later;
        }
        Ok(())
    }
}

/// Cuts what is written into chunks.
pub(crate) struct Writer<'a> {
    /// A chunk and more, of which the first `held` bytes wait.
    buffer: Vec<u8>,
    held: usize,
    sink: &'a mut dyn FnMut(Vec<u8>) -> Result<()>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(sink: &'a mut dyn FnMut(Vec<u8>) -> Result<()>) -> Self {
        Self { buffer: Vec::new(), held: 0, sink }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.room(bytes.len()).copy_from_slice(bytes);
        self.flush()
    }

    #[inline]
    pub(crate) fn write_blocks<'b>(
        &mut self,
        blocks: impl Iterator<Item = &'b [u128]>,
    ) -> Result<()> {
        for blocks in blocks {
            let rows = self.room(16 * blocks.len()).as_chunks_mut().0;
            rows.iter_mut().zip(blocks).for_each(|(row, block)| *row = block.to_le_bytes());
        }
        self.flush()
    }

    /// The next `len` bytes, to be written.
    #[inline]
    pub(crate) fn room(&mut self, len: usize) -> &mut [u8] {
        let start = self.held;
        self.held += len;
        if self.buffer.len() < self.held {
            self.buffer.resize(self.held.max(CHUNK + CHUNK / 16), 0);
        }
        &mut self.buffer[start..self.held]
    }

    /// Hands on whole chunks.
    #[inline]
    pub(crate) fn flush(&mut self) -> Result<()> {
        while self.held >= CHUNK {
            (self.sink)(self.buffer[..CHUNK].to_vec())?;
            self.buffer.copy_within(CHUNK..self.held, 0);
            self.held -= CHUNK;
        }
        Ok(())
    }

    /// Hands on the rest.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.buffer.truncate(self.held);
        if self.buffer.is_empty() { Ok(()) } else { (self.sink)(self.buffer) }
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tables(<{} bytes>)", self.len())
    }
}
