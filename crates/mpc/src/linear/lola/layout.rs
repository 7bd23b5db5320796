//! Where the elements of a vector are in the slots of messages.
//!
//! A message is a ciphertext of two rows that rotate together. LoLa's representations are
//! all of one form: every element has a first place, and messages may repeat themselves
//! within a row, from row to row, or in every slot.
//! Source: LoLa (arXiv 1812.10659), section 4.

use std::fmt;

use graph::Conv;

/// No element: the slot holds zero, or a value that is not read.
pub(crate) const NOTHING: u32 = u32::MAX;

/// How a vector is spread over messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Representation {
    /// All elements in one message (or as few as hold them), each once.
    Dense,
    /// One element a message, in every slot.
    Sparse,
    /// Dense, repeated until the message is full.
    Stacked,
    /// Dense in an order of its own, with gaps.
    Interleaved,
    /// An image has one message for each tap of the kernel that comes next, with what the tap
    /// reads in every window.
    Convolution,
    /// A message has one element of many inputs, an input in each slot (CryptoNets).
    Batched,
}

impl fmt::Display for Representation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dense => "dense",
            Self::Sparse => "sparse",
            Self::Stacked => "stacked",
            Self::Interleaved => "interleaved",
            Self::Convolution => "convolution",
            Self::Batched => "batched",
        })
    }
}

/// A slot of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) message: usize,
    pub(crate) row: usize,
    pub(crate) offset: usize,
}

/// A vector in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) representation: Representation,
    /// Slots of a row.
    pub(crate) row: usize,
    pub(crate) messages: usize,
    /// Slots after which a row repeats itself; its length when it does not.
    pub(crate) period: usize,
    /// Whether both rows are the same.
    pub(crate) mirrored: bool,
    /// The first place of each element.
    pub(crate) places: Vec<Place>,
}

impl Layout {
    /// `count` elements, repeated in blocks of the next power of two; `None` when a row does
    /// not hold them.
    pub(crate) fn stacked(count: usize, row: usize) -> Option<Self> {
        let period = count.next_power_of_two();
        let places = (0..count).map(|offset| Place { message: 0, row: 0, offset }).collect();
        let representation = Representation::Stacked;
        (period <= row).then_some(Self {
            representation,
            row,
            messages: 1,
            period,
            mirrored: true,
            places,
        })
    }

    /// `count` elements once, row after row, message after message.
    pub(crate) fn dense(count: usize, row: usize) -> Self {
        let place = |i: usize| Place { message: i / (2 * row), row: i / row % 2, offset: i % row };
        Self {
            representation: Representation::Dense,
            row,
            messages: count.div_ceil(2 * row),
            period: row,
            mirrored: false,
            places: (0..count).map(place).collect(),
        }
    }

    /// One message for each element.
    pub(crate) fn sparse(count: usize, row: usize) -> Self {
        Self {
            representation: Representation::Sparse,
            row,
            messages: count,
            period: 1,
            mirrored: true,
            places: (0..count).map(|message| Place { message, row: 0, offset: 0 }).collect(),
        }
    }

    /// One message for each element of `count`, an input in each slot.
    pub(crate) fn batched(count: usize, row: usize) -> Self {
        Self { representation: Representation::Batched, ..Self::sparse(count, row) }
    }

    /// How often a message holds each of its elements.
    pub(crate) fn copies(&self) -> usize {
        self.row / self.period * if self.mirrored { 2 } else { 1 }
    }

    /// The element in each slot of each message.
    pub(crate) fn owners(&self) -> Vec<Vec<u32>> {
        let mut owners = vec![vec![NOTHING; 2 * self.row]; self.messages];
        for (place, element) in self.places.iter().zip(0u32..) {
            let rows = if self.mirrored { 0..2 } else { place.row..place.row + 1 };
            let Some(slots) = owners.get_mut(place.message) else { continue };
            for row in rows {
                let starts = (0..self.row).step_by(self.period);
                for slot in starts.map(|start| row * self.row + start + place.offset) {
                    slots.iter_mut().skip(slot).take(1).for_each(|owner| *owner = element);
                }
            }
        }
        owners
    }
}

/// An image for a convolution: of each tap of the kernel what it reads, window by window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Windows {
    conv: Conv,
    row: usize,
    /// Slots after which a row repeats itself.
    period: usize,
}

impl Windows {
    /// Before a convolution whose results are repeated after `period` slots.
    pub(crate) const fn new(conv: Conv, row: usize, period: usize) -> Self {
        Self { conv, row, period }
    }

    /// Taps of the kernel, each a message.
    pub(crate) const fn messages(&self) -> usize {
        self.conv.in_channels * self.conv.kernel[0] * self.conv.kernel[1]
    }

    /// The element of the image in each slot of a message, nothing where it is padded.
    pub(crate) fn owners(&self, message: usize) -> Vec<u32> {
        let conv = &self.conv;
        let [rows, columns] = conv.kernel;
        let (channel, tap) = (message / (rows * columns), message % (rows * columns));
        let width = conv.out_width();
        let element = |window: usize| {
            let axis = |at: usize, tap: usize, axis: usize, side: usize| {
                let position = at * conv.stride[axis] + tap * conv.dilation[axis];
                position.checked_sub(conv.padding[axis]).filter(|position| *position < side)
            };
            let y = axis(window / width, tap / columns, 0, conv.in_height)?;
            let x = axis(window % width, tap % columns, 1, conv.in_width)?;
            u32::try_from((channel * conv.in_height + y) * conv.in_width + x).ok()
        };
        let windows = conv.out_height() * width;
        let block: Vec<u32> = (0..self.period)
            .map(|slot| if slot < windows { element(slot).unwrap_or(NOTHING) } else { NOTHING })
            .collect();
        block.repeat(2 * self.row / self.period)
    }
}

/// How the client packs its input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Vector(Layout),
    Windows(Windows),
}

impl Input {
    pub(crate) const fn messages(&self) -> usize {
        match self {
            Self::Vector(layout) => layout.messages,
            Self::Windows(windows) => windows.messages(),
        }
    }

    pub(crate) const fn representation(&self) -> Representation {
        match self {
            Self::Vector(layout) => layout.representation,
            Self::Windows(_) => Representation::Convolution,
        }
    }

    /// The element in each slot of each message.
    pub(crate) fn owners(&self) -> Vec<Vec<u32>> {
        match self {
            Self::Vector(layout) => layout.owners(),
            Self::Windows(windows) => {
                (0..windows.messages()).map(|message| windows.owners(message)).collect()
            }
        }
    }
}
