//! Garbled tables on their way: bytes in chunks of a fixed size.

use std::collections::VecDeque;
use std::fmt;

use wire::{Error, Result};

use crate::batch::Batch;

/// Bytes of every chunk but the last.
pub const CHUNK: usize = 1 << 20;

/// The chunks of a batch's tables: their lengths, in order.
pub fn chunks(batch: &Batch) -> impl Iterator<Item = usize> + use<> {
    let total = batch.table_bytes();
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
    pub fn collect(batch: &Batch, mut next: impl FnMut(usize) -> Result<Vec<u8>>) -> Result<Self> {
        let mut taken = VecDeque::new();
        for len in chunks(batch) {
            let chunk = next(len)?;
            if chunk.len() != len {
                let got = format!("{} bytes", chunk.len());
                return Err(Error::peer(format!("{len} bytes of garbled tables"), got));
            }
            taken.push_back(chunk);
        }
        Ok(Self { chunks: taken, read: 0 })
    }

    /// Bytes held.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum::<usize>() - self.read
    }

    /// Whether all have been read.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads the next bytes; what has been read is dropped chunk by chunk.
    pub(crate) fn read(&mut self, out: &mut [u8]) -> Result<()> {
        let mut out = out;
        while !out.is_empty() {
            let Some(chunk) = self.chunks.front() else {
                return Err(Error::misuse("garbled tables of another batch"));
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
    buffer: Vec<u8>,
    sink: &'a mut dyn FnMut(Vec<u8>) -> Result<()>,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(sink: &'a mut dyn FnMut(Vec<u8>) -> Result<()>) -> Self {
        Self { buffer: Vec::new(), sink }
    }

    /// The bytes not handed on yet, to append to.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Hands on whole chunks.
    #[inline]
    pub(crate) fn flush(&mut self) -> Result<()> {
        while self.buffer.len() >= CHUNK {
            let rest = self.buffer.split_off(CHUNK);
            (self.sink)(std::mem::replace(&mut self.buffer, rest))?;
        }
        Ok(())
    }

    /// Hands on the rest.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        if self.buffer.is_empty() { Ok(()) } else { (self.sink)(self.buffer) }
    }
}

impl fmt::Debug for Tables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tables(<{} bytes>)", self.len())
    }
}
