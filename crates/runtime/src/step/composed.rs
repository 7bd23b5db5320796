//! A protocol on shares with what each party computes by itself before and after it.

use mpc::Share;
use wire::{Channel, Result, Role};

use super::local::{self, WeightedSum};
use super::sliced::{Feed, Sliced};

/// A protocol between two public constants, on inputs that are brought into its range first.
#[derive(Debug)]
pub struct Composed {
    /// The sum of two inputs that takes the place of the inputs, if there is one.
    pub sum: Option<WeightedSum>,
    /// Width to which each input is reduced before; its own where there is none.
    pub narrow: Option<[u32; 2]>,
    /// The constant that is added to each input first.
    pub before: i64,
    /// The protocol, cut into slices.
    pub sliced: Sliced,
    /// The constant that is added to each result.
    pub after: i64,
    /// Sides of the matrix, of one input, that is transposed before and back after.
    pub transpose: Option<[usize; 2]>,
    /// Tensors that it writes besides, from inputs of their own behind the first.
    pub also: Vec<Also>,
    /// The width of its own results, where other tensors may be wider.
    pub out_bits: Option<u32>,
}

/// A tensor that a step of another node writes, too.
#[derive(Clone, Copy, Debug)]
pub struct Also {
    /// The number of the tensor in the graph.
    pub tensor: usize,
    /// How many elements it has in a run, those of all inputs of a batch.
    pub len: usize,
    /// The width of its shares in bits, at most that of the protocol's results.
    pub bits: u32,
    /// The constant that is added to each of its inputs first.
    pub before: i64,
    /// The constant that is added to each of its results.
    pub after: i64,
}

impl From<Sliced> for Composed {
    /// The protocol alone.
    fn from(sliced: Sliced) -> Self {
        Self {
            sum: None,
            narrow: None,
            before: 0,
            sliced,
            after: 0,
            transpose: None,
            also: Vec::new(),
            out_bits: None,
        }
    }
}

impl Composed {
    /// The name of what it computes.
    pub(crate) fn operator(&self) -> &'static str {
        match self.sum {
            Some(_) => "sum",
            None => self.sliced.operator(),
        }
    }

    /// How it computes that, for people.
    pub(crate) fn describe(&self) -> String {
        match (&self.sum, self.also.len()) {
            (Some(_), _) => "local + exact truncation".into(),
            (None, 0) => self.sliced.describe(),
            (None, others) => format!("{}, {} tensors at once", self.sliced.describe(), 1 + others),
        }
    }

    /// Runs it on this party's shares.
    ///
    /// # Errors
    /// What the protocol returns.
    pub(crate) fn run(
        &self,
        channel: &mut Channel,
        mut inputs: Vec<Share>,
        feed: &mut Feed<'_>,
    ) -> Result<Share> {
        let role = channel.role();
        if let Some(sum) = &self.sum {
            inputs = vec![sum.add(role, &inputs)?];
        }
        if !self.also.is_empty() {
            inputs = vec![self.joined(role, inputs)];
        }
        let mut ready = Vec::with_capacity(inputs.len());
        for (share, place) in inputs.into_iter().zip(0..) {
            let width = self.narrow.and_then(|widths| widths.get(place).copied());
            let share = if self.before == 0 { share } else { share.plus(role, self.before) };
            let share = match width {
                Some(width) => share.narrow(width)?,
                None => share,
            };
            ready.push(match self.transpose {
                Some(sides) => local::transpose(&share, sides),
                None => share,
            });
        }
        let result = self.sliced.run(channel, ready, feed)?;
        let result = match self.transpose {
            Some([rows, columns]) => local::transpose(&result, [columns, rows]),
            None => result,
        };
        let result = if self.after == 0 { result } else { result.plus(role, self.after) };
        Ok(self.apart(role, result))
    }

    /// All inputs one behind another, each moved by what its own constant differs from the first's.
    fn joined(&self, role: Role, inputs: Vec<Share>) -> Share {
        let bits = inputs.first().map_or(1, Share::bits);
        let moves =
            std::iter::once(0).chain(self.also.iter().map(|also| also.before - self.before));
        let moved = inputs.into_iter().zip(moves.chain(std::iter::repeat(0)));
        let moved = moved.map(|(share, by)| if by == 0 { share } else { share.plus(role, by) });
        let moved: Vec<Share> = moved.collect();
        // Shares are not left behind in a list that grew.
        let mut words = Vec::with_capacity(moved.iter().map(Share::len).sum());
        moved.iter().for_each(|share| words.extend_from_slice(share.words()));
        Share::new(words, bits)
    }

    /// Results with each other tensor's moved by what its constant differs from the first's.
    fn apart(&self, role: Role, result: Share) -> Share {
        if self.also.iter().all(|also| also.after == self.after) {
            return result;
        }
        let others: usize = self.also.iter().map(|also| also.len).sum();
        let mut start = result.len().saturating_sub(others);
        let mut words = Vec::with_capacity(result.len());
        words.extend_from_slice(result.gather(0..start).words());
        for also in &self.also {
            let part = result.gather(start..start + also.len);
            words.extend_from_slice(part.plus(role, also.after - self.after).words());
            start += also.len;
        }
        Share::new(words, result.bits())
    }
}
