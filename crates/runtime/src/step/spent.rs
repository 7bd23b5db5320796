//! What a session takes, part by part: messages and work.

use mpc::linear::ot_matmul::MESSAGE;
use pricing::{Unit, Work};
use wire::{Cost, Phase};

/// Work on a mask that is not the server's, or goes with the messages.
const AT_ONCE: [Unit; 2] = [Unit::Encrypted, Unit::Kept];

/// The messages of a part of a session, and its work without that of the messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Bytes and rounds of the messages.
    pub cost: Cost,
    /// Work, in the units of the price list.
    pub work: Work,
}

impl Spent {
    /// A part that sends messages and does no other work.
    pub fn sending(cost: Cost) -> Self {
        Self { cost, ..Self::default() }
    }

    /// The part with more work.
    #[must_use]
    pub fn and(self, work: Work) -> Self {
        Self { work: self.work + work, ..self }
    }

    /// Products by OT, of which one party takes a message while the other makes the next,
    /// so that half of the work is beside the rest: all of it where they follow others in the
    /// same direction, else all but a message's.
    #[must_use]
    pub(crate) fn beside_others(self) -> Self {
        let streams = self.work.units(Unit::Stream);
        let bytes = self.cost.bytes();
        let alone = if self.cost.rounds > 0 { bytes.min(MESSAGE) } else { 0 };
        if streams == 0.0 || alone == bytes {
            return self;
        }
        let beside = (bytes - alone) as f64 / 2.0;
        let made = streams * beside / bytes as f64;
        self.and(Work::of(Unit::Stream, -made).and(Unit::Byte, -beside))
    }

    /// The share of one of `runs` runs, about; the rounds are all there.
    #[must_use]
    pub(crate) fn of_one(self, runs: usize) -> Self {
        if runs == 1 {
            return self;
        }
        let share = |bytes: u64| bytes.div_ceil(runs as u64);
        let [client_to_server, server_to_client] =
            [self.cost.client_to_server, self.cost.server_to_client].map(share);
        let each = |unit: &Unit| Work::of(*unit, self.work.units(*unit) / runs as f64);
        let work = Unit::ALL.iter().map(each).sum();
        Self { cost: Cost { client_to_server, server_to_client, ..self.cost }, work }
    }

    /// This part and then the next.
    #[must_use]
    pub(crate) fn then(self, next: Self) -> Self {
        Self { cost: self.cost.then(next.cost), work: self.work + next.work }
    }
}

impl FromIterator<Spent> for Spent {
    fn from_iter<I: IntoIterator<Item = Self>>(all: I) -> Self {
        all.into_iter().fold(Self::default(), Self::then)
    }
}

/// The most memory that a session has used so far.
#[derive(Debug, Default)]
pub(crate) struct Peak(u64);

impl Peak {
    /// Using so many bytes at a time, of which those above the peak are new.
    pub(crate) fn touch(&mut self, bytes: u64) -> Work {
        let new = bytes.saturating_sub(self.0);
        self.0 += new;
        Work::of(Unit::Touched, new as f64)
    }
}

/// A part of a session, in its order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) phase: Phase,
    /// The step, if it is one.
    pub(crate) step: Option<usize>,
    pub(crate) spent: Spent,
    /// Work that is done while a party waits, and the window of steps before which it must be done.
    pub(crate) later: Option<(usize, Work)>,
    /// The step before which its messages must be there, if they are sent while a party waits.
    pub(crate) aside: Option<usize>,
    /// The window that begins with this part: what waits for those before it has been done.
    pub(crate) begins: Option<usize>,
}

impl Part {
    pub(crate) fn new(phase: Phase, step: Option<usize>, spent: Spent) -> Self {
        Self { phase, step, spent, later: None, aside: None, begins: None }
    }
}

/// The work of a layer on a mask that goes with its messages, and what the server does while it waits.
pub(crate) fn parted(work: Work) -> (Work, Work) {
    let at_once = |sign: f64| -> Work {
        AT_ONCE.iter().map(|unit| Work::of(*unit, sign * work.units(*unit))).sum()
    };
    (at_once(1.0), work + at_once(-1.0))
}

/// The parts with the rounds that each adds to those before it, and streams beside each other.
pub(crate) fn counted(parts: Vec<Part>) -> impl Iterator<Item = Part> {
    let mut total = Cost::NONE;
    parts.into_iter().map(move |mut part| {
        let sum = total.then(part.spent.cost);
        part.spent.cost.rounds = sum.rounds - total.rounds;
        part.spent = part.spent.beside_others();
        total = sum;
        part
    })
}
