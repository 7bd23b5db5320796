//! Protocols on many elements, cut into slices that bound the memory they take.

use std::ops::Range;

use mpc::compare::Radix;
use mpc::maximum::{Maximum, Tournament};
use mpc::reduce::Reduce;
use mpc::truncate::Truncate;
use mpc::{Correlations, Demand, Protocol, Share};
use wire::{Channel, Cost, Error, Phase, Result};

use super::correlated::Correlated;
use super::correlations::{CorrelationSource, MOST_BYTES, pad_bytes};
use super::spent::Spent;

/// Elements that a protocol works on at a time.
const MOST_ELEMENTS: usize = 1 << 20;
/// Elements of rows of which a protocol reads a part: all of a batch of trees in one slice.
const MOST_OF_ROWS: usize = 1 << 23;
/// Elements whose bits are whole machine words.
const WORDS: usize = 512;

/// A protocol on a part of the elements.
#[derive(Debug)]
pub struct Slice {
    /// The elements of each input that it reads.
    input: Range<usize>,
    plan: Box<dyn Protocol>,
}

impl Slice {
    /// Returns as how many slices of at most `most` elements it has to run.
    fn slices(&self, most: usize) -> usize {
        let bytes = pad_bytes(&self.plan.demand());
        bytes.div_ceil(MOST_BYTES).max(self.input.len().div_ceil(most))
    }

    /// Returns the same protocol on elements so much further on.
    fn further(self, by: usize) -> Self {
        Self { input: self.input.start + by..self.input.end + by, ..self }
    }
}

/// A protocol on all elements of a layer, one slice after another, each right after
/// the correlations that it consumes.
#[derive(Debug)]
pub struct Sliced(Vec<Slice>);

impl Sliced {
    /// `count` results, each from the element at the same place; `plan` makes the
    /// protocol for some of them.
    ///
    /// # Errors
    /// What `plan` returns.
    pub fn new<P: Protocol>(count: usize, plan: impl Fn(usize) -> Result<P>) -> Result<Self> {
        let slice =
            |range: Range<usize>| Ok(Slice { plan: Box::new(plan(range.len())?), input: range });
        Self::cut(count, MOST_ELEMENTS, WORDS, slice)
    }

    /// `count` results, made from at most `most` elements at a time; `slice` makes the protocol for a
    /// range of them, which is a multiple of `unit` long but for the last one.
    ///
    /// # Errors
    /// What `slice` returns.
    fn cut(
        count: usize,
        most: usize,
        unit: usize,
        slice: impl Fn(Range<usize>) -> Result<Slice>,
    ) -> Result<Self> {
        let whole = slice(0..count)?;
        let slices = whole.slices(most);
        if slices <= 1 {
            return Ok(Self(vec![whole]));
        }
        let each = count.div_ceil(slices).next_multiple_of(unit);
        let ranges = (0..count).step_by(each).map(|start| start..count.min(start + each));
        Ok(Self(ranges.map(slice).collect::<Result<_>>()?))
    }

    /// `rows` of `cols` values; `plan` makes the protocol for some rows.
    ///
    /// # Errors
    /// What `plan` returns.
    pub fn rows<P: Protocol>(
        rows: usize,
        cols: usize,
        plan: impl Fn(usize) -> Result<P>,
    ) -> Result<Self> {
        Self::cut(rows, MOST_ELEMENTS, WORDS, |range| {
            let plan = Box::new(plan(range.len())?);
            Ok(Slice { plan, input: range.start * cols..range.end * cols })
        })
    }

    /// `rows` of `cols` values of most of which a protocol reads little; `plan` makes it for some rows.
    ///
    /// # Errors
    /// What `plan` returns.
    pub fn sparse_rows<P: Protocol>(
        rows: usize,
        cols: usize,
        plan: impl Fn(usize) -> Result<P>,
    ) -> Result<Self> {
        Self::cut(rows, MOST_OF_ROWS, WORDS, |range| {
            let plan = Box::new(plan(range.len())?);
            Ok(Slice { plan, input: range.start * cols..range.end * cols })
        })
    }

    /// `rows` of `cols` values; `plan` makes the protocol for at most `most` rows at a time.
    ///
    /// # Errors
    /// What `plan` returns.
    pub fn few_rows<P: Protocol>(
        [rows, cols]: [usize; 2],
        most: usize,
        plan: impl Fn(usize) -> Result<P>,
    ) -> Result<Self> {
        let starts = (0..rows).step_by(most.max(1));
        let ranges = starts.map(|start| start..rows.min(start + most.max(1)));
        let slice = |range: Range<usize>| {
            let plan = Box::new(plan(range.len())?);
            Ok(Slice { plan, input: range.start * cols..range.end * cols })
        };
        Ok(Self(ranges.map(slice).collect::<Result<_>>()?))
    }

    /// A protocol that runs on all values at once, however many there are.
    pub fn whole(inputs: usize, plan: impl Protocol) -> Self {
        Self(vec![Slice { input: 0..inputs, plan: Box::new(plan) }])
    }

    /// Windows over a tensor that lie in the order of what they see.
    ///
    /// # Errors
    /// What `plan` returns for the number of inputs and windows over them.
    pub fn windows<P: Protocol>(
        windows: &[Vec<usize>],
        plan: impl Fn(usize, &[Vec<usize>]) -> Result<P>,
    ) -> Result<Self> {
        Self::cut(windows.len(), MOST_ELEMENTS, WORDS, |range| {
            let windows = windows.get(range).unwrap_or_default();
            let positions = || windows.iter().flatten().copied();
            let (start, end) =
                (positions().min().unwrap_or(0), positions().max().map_or(0, |i| i + 1));
            if start == 0 {
                return Ok(Slice { plan: Box::new(plan(end, windows)?), input: start..end });
            }
            let moved = |window: &Vec<usize>| window.iter().map(|i| i - start).collect();
            let moved: Vec<Vec<usize>> = windows.iter().map(moved).collect();
            Ok(Slice { plan: Box::new(plan(end - start, &moved)?), input: start..end })
        })
    }

    /// Returns the one kind of protocol that all slices run.
    pub fn kind(&self) -> Option<&dyn Protocol> {
        self.0.first().map(|slice| slice.plan.as_ref())
    }

    /// The name of what it computes, in one or two words.
    pub(crate) fn operator(&self) -> &'static str {
        self.kind().map_or("", Protocol::operator)
    }

    /// How many slices.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// OTs of all slices.
    pub(crate) fn demand(&self) -> Demand {
        self.0.iter().map(|slice| slice.plan.demand()).sum()
    }

    /// What all slices cost online.
    pub(crate) fn cost(&self) -> Cost {
        self.0.iter().map(|slice| slice.plan.cost()).collect()
    }

    /// A bound on the probability that a result is not the functionality's.
    pub(crate) fn failure(&self) -> f64 {
        self.0.iter().map(|slice| slice.plan.failure()).sum()
    }

    /// What all slices take online.
    pub(crate) fn spent(&self) -> Spent {
        self.parts().map(|(_, spent)| spent).collect()
    }

    /// Slice by slice, what it consumes and takes online.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (Demand, Spent)> {
        self.0.iter().map(|slice| {
            let (demand, cost) = (slice.plan.demand(), slice.plan.cost());
            (demand, Spent { cost, work: slice.plan.work() })
        })
    }

    /// How it computes that, for people.
    pub(crate) fn describe(&self) -> String {
        let protocol = self.kind().map(Protocol::describe).unwrap_or_default();
        match self.len() {
            0 | 1 => protocol,
            slices => format!("{protocol}, {slices} slices"),
        }
    }

    /// Runs `after`, if there is one, on what a layer left.
    pub(crate) fn run_after(
        after: Option<&Self>,
        channel: &mut Channel,
        y: Share,
        feed: &mut Feed<'_>,
    ) -> Result<Share> {
        match after {
            Some(sliced) => sliced.run(channel, vec![y], feed),
            None => Ok(y),
        }
    }

    /// Runs slice after slice.
    pub(crate) fn run(
        &self,
        channel: &mut Channel,
        inputs: Vec<Share>,
        feed: &mut Feed<'_>,
    ) -> Result<Share> {
        // Windows may leave out the last rows and columns.
        let all = |slice: &Slice| inputs.iter().all(|share| slice.input == (0..share.len()));
        if let [slice] = self.0.as_slice()
            && all(slice)
        {
            let ots = feed.take(channel, &slice.plan.demand())?;
            return slice.plan.run(channel, &inputs, ots);
        }
        let (mut words, mut bits) = (Vec::new(), 0);
        for slice in &self.0 {
            let ots = feed.take(channel, &slice.plan.demand())?;
            let part = |share: &Share| share.gather(slice.input.clone());
            let parts: Vec<Share> = inputs.iter().map(part).collect();
            let result = slice.plan.run(channel, &parts, ots)?;
            words.extend_from_slice(result.words());
            bits = result.bits();
        }
        Ok(Share::new(words, bits))
    }
}

/// Where a step takes its correlations from.
pub enum Feed<'a> {
    /// Made before for a whole stretch of steps.
    Ready(&'a mut Correlations),
    /// Made when they are asked for, in the middle of this step.
    Later(&'a mut CorrelationSource, usize),
}

impl Feed<'_> {
    /// Makes correlated OTs that a layer takes as they are.
    pub(crate) fn correlated(&mut self, channel: &mut Channel, count: usize) -> Result<Correlated> {
        match self {
            Self::Ready(_) => {
                Err(Error::internal("a layer that takes its correlations unprepared"))
            }
            Self::Later(source, step) => {
                let made = source.correlated(channel, count)?;
                channel.enter(Phase::Online, Some(*step));
                Ok(made)
            }
        }
    }

    fn take(&mut self, channel: &mut Channel, demand: &Demand) -> Result<Correlations> {
        match self {
            Self::Ready(correlations) => correlations.split(channel.role(), demand),
            Self::Later(source, step) => {
                let correlations = source.prepare(channel, demand)?;
                channel.enter(Phase::Online, Some(*step));
                Ok(correlations)
            }
        }
    }
}

/// Exact truncation of `count` values of `width` bits by `drop` bits.
pub(crate) fn truncation(
    count: usize,
    width: u32,
    drop: u32,
    out_bits: u32,
    radix: Radix,
) -> Result<Sliced> {
    Sliced::new(count, |count| Truncate::new(count, width, drop, out_bits, radix))
}

/// Exact truncation of `count` values of `width` bits by `drop` bits, with one message each way.
pub(crate) fn reduction(count: usize, width: u32, drop: u32, out_bits: u32) -> Result<Sliced> {
    Sliced::new(count, |count| Reduce::new(count, width, drop, out_bits))
}

/// Maxima of `windows` on each of `copies` (channels of a picture, say) of so many inputs, which follow
/// each other. A slice has whole copies, unless one is too large for a slice.
///
/// # Errors
/// [`Error::Misuse`] for windows that are empty or beyond their inputs and widths out of range.
pub fn max_pool(
    windows: &[Vec<usize>],
    [copies, inputs]: [usize; 2],
    bits: u32,
    radix: Radix,
) -> Result<Sliced> {
    let plan = |tournament| Maximum::new(tournament, bits, None, radix);
    let tournament = Tournament::new(inputs, windows)?;
    let slice = |range: Range<usize>| {
        let plan = Box::new(plan(tournament.clone().copies(range.len()))?);
        Ok(Slice { plan, input: range.start * inputs..range.end * inputs })
    };
    if slice(0..1)?.slices(MOST_ELEMENTS) <= 1 {
        let unit = WORDS.div_ceil(windows.len().max(1));
        return Sliced::cut(copies, MOST_ELEMENTS, unit, slice);
    }
    let mut slices = Vec::new();
    for copy in 0..copies {
        let one =
            Sliced::windows(windows, |inputs, windows| plan(Tournament::new(inputs, windows)?))?;
        slices.extend(one.0.into_iter().map(|slice| slice.further(copy * inputs)));
    }
    Ok(Sliced(slices))
}
