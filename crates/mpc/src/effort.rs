//! How much of which work the parties do: what a cost model multiplies with seconds.
//!
//! Counts follow from public plans alone, like bytes and rounds. They are of both parties
//! together, as the work lies on the path to the result: who waits for whom is in the seconds
//! that a unit takes, which are measured with both parties running.

use std::ops::{Add, AddAssign};

use ot::{Job, Made};
use wire::{Cost, Role};

use crate::pads::Need;

/// A kind of work and its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kernel {
    /// A session: handshake, base transfers.
    Session,
    /// The first run of a session: code and memory that no run used before.
    Start,
    /// A byte of memory that a session uses for the first time, of the party that holds more.
    Touched,
    /// A change of direction on the wire.
    Round,
    /// A byte on the wire, encrypted and copied.
    Byte,
    /// A correlation of SoftSpoken with k = 2.
    SoftSpoken2,
    /// With k = 4.
    SoftSpoken4,
    /// With k = 8.
    SoftSpoken8,
    /// A correlation of Ferret's set with 2^16 secret positions.
    Ferret16,
    /// With 2^17.
    Ferret17,
    /// With 2^18.
    Ferret18,
    /// With 2^19.
    Ferret19,
    /// A random transfer: hashing at the receiver, bookkeeping at both.
    Transfer,
    /// A pad of one entry of a table.
    Entry,
    /// One of a table of 32 entries or more, whose pads do not stay in the nearest cache.
    WideEntry,
    /// A byte of a stream out of a pad.
    Stream,
    /// A transfer consumed online.
    Consumed,
    /// A bit of tables and openings online.
    OnlineBit,
    /// An AND gate garbled.
    Garbled,
    /// An AND gate evaluated.
    Evaluated,
    /// A coefficient of a secret-key encryption.
    Encrypted,
    /// A coefficient of a response: a fresh encryption of zero, masked and rounded.
    Answered,
    /// A coefficient of a response that is kept, with a wide error.
    Kept,
    /// A multiplication of the direct kernel.
    Direct,
    /// A coefficient of a transform.
    Transformed,
    /// A coefficient of a product of transforms.
    Pointwise,
    /// A coefficient of a factor that the server multiplies in the clear or unfolds.
    Factor,
    /// A picosecond of slot-packed work, by the formula of its operations.
    Slotted,
    /// A byte of slot-packed ciphertexts, made and read.
    Packed,
    /// A coefficient of a rotation key: made, sent, and read with its uniform half.
    Keyed,
    /// An element of a local step.
    Local,
}

impl Kernel {
    /// All of them, in order.
    pub const ALL: [Self; COUNT] = [
        Self::Session,
        Self::Start,
        Self::Touched,
        Self::Round,
        Self::Byte,
        Self::SoftSpoken2,
        Self::SoftSpoken4,
        Self::SoftSpoken8,
        Self::Ferret16,
        Self::Ferret17,
        Self::Ferret18,
        Self::Ferret19,
        Self::Transfer,
        Self::Entry,
        Self::WideEntry,
        Self::Stream,
        Self::Consumed,
        Self::OnlineBit,
        Self::Garbled,
        Self::Evaluated,
        Self::Encrypted,
        Self::Answered,
        Self::Kept,
        Self::Direct,
        Self::Transformed,
        Self::Pointwise,
        Self::Factor,
        Self::Slotted,
        Self::Packed,
        Self::Keyed,
        Self::Local,
    ];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Start => "start",
            Self::Touched => "touched",
            Self::Round => "round",
            Self::Byte => "byte",
            Self::SoftSpoken2 => "softspoken2",
            Self::SoftSpoken4 => "softspoken4",
            Self::SoftSpoken8 => "softspoken8",
            Self::Ferret16 => "ferret16",
            Self::Ferret17 => "ferret17",
            Self::Ferret18 => "ferret18",
            Self::Ferret19 => "ferret19",
            Self::Transfer => "transfer",
            Self::Entry => "entry",
            Self::WideEntry => "wide_entry",
            Self::Stream => "stream",
            Self::Consumed => "consumed",
            Self::OnlineBit => "online_bit",
            Self::Garbled => "garbled",
            Self::Evaluated => "evaluated",
            Self::Encrypted => "encrypted",
            Self::Answered => "answered",
            Self::Kept => "kept",
            Self::Direct => "direct",
            Self::Transformed => "transformed",
            Self::Pointwise => "pointwise",
            Self::Factor => "factor",
            Self::Slotted => "slotted",
            Self::Packed => "packed",
            Self::Keyed => "keyed",
            Self::Local => "local",
        }
    }
}

/// How many kinds there are.
pub const COUNT: usize = 31;

/// Entries of a table that counts as wide.
const WIDE: usize = 32;

/// Units of every kind of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort([f64; COUNT]);

impl Default for Effort {
    fn default() -> Self {
        Self([0.0; COUNT])
    }
}

impl Effort {
    /// Nothing.
    pub fn none() -> Self {
        Self::default()
    }

    /// So many units of one kind.
    pub fn of(kernel: Kernel, units: f64) -> Self {
        Self::none().and(kernel, units)
    }

    /// With so many units more.
    #[must_use]
    pub fn and(mut self, kernel: Kernel, units: f64) -> Self {
        if let Some(count) = self.0.get_mut(kernel as usize) {
            *count += units;
        }
        self
    }

    /// Units of one kind.
    pub fn units(&self, kernel: Kernel) -> f64 {
        self.0.get(kernel as usize).copied().unwrap_or_default()
    }

    /// Units of all kinds, in the order of [`Kernel::ALL`].
    pub fn all(&self) -> &[f64; COUNT] {
        &self.0
    }

    /// The messages of a step: their bytes and turns.
    pub fn messages(cost: Cost) -> Self {
        Self::of(Kernel::Byte, cost.bytes() as f64).and(Kernel::Round, cost.rounds as f64)
    }

    /// A non-linear step online: what it consumes and what it sends.
    pub fn online(need: &Need, cost: Cost) -> Self {
        let gates: usize = need.circuits.iter().map(|c| c.batch().and_gates()).sum();
        // Labels are not opened bit by bit.
        let labels: u64 = need.circuits.iter().map(|c| c.online_cost().bytes()).sum();
        let sent = 8.0 * cost.bytes().saturating_sub(labels) as f64;
        Self::of(Kernel::Consumed, transfers(need) as f64)
            .and(Kernel::OnlineBit, sent)
            .and(Kernel::Evaluated, gates as f64)
    }

    /// Making pads and garbling circuits, without their correlations.
    pub fn pads(need: &Need) -> Self {
        let circuits = need.circuit_jobs();
        let jobs = need.client_sends.iter().chain(&need.server_sends).chain(&circuits);
        let (mut count, mut entries, mut wide) = (0.0, 0.0, 0.0);
        for job in jobs {
            count += job.count as f64;
            let narrow = job.entries() < WIDE;
            *(if narrow { &mut entries } else { &mut wide }) +=
                job.count as f64 * job.entries() as f64;
        }
        let gates: usize = need.circuits.iter().map(|c| c.batch().and_gates()).sum();
        Self::of(Kernel::Transfer, count)
            .and(Kernel::Entry, entries)
            .and(Kernel::WideEntry, wide)
            .and(Kernel::Garbled, gates as f64)
    }

    /// Making correlations.
    pub fn correlations(made: Made) -> Self {
        let soft = [Kernel::SoftSpoken2, Kernel::SoftSpoken4, Kernel::SoftSpoken8];
        let silent = [Kernel::Ferret16, Kernel::Ferret17, Kernel::Ferret18, Kernel::Ferret19];
        let kinds = soft.into_iter().zip(made.soft).chain(silent.into_iter().zip(made.silent));
        kinds.fold(Self::none(), |sum, (kernel, count)| sum.and(kernel, count as f64))
    }
}

fn transfers(need: &Need) -> usize {
    let sent = |sender| need.sent_by(sender).iter().map(|job: &Job| job.count).sum::<usize>();
    sent(Role::Client) + sent(Role::Server)
}

impl Add for Effort {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl AddAssign for Effort {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, units)| *sum += units);
    }
}

impl std::iter::Sum for Effort {
    fn sum<I: Iterator<Item = Self>>(efforts: I) -> Self {
        efforts.fold(Self::none(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_and_named_apart() {
        let mut names: Vec<&str> = Kernel::ALL.iter().map(|kernel| kernel.name()).collect();
        assert!(Kernel::ALL.iter().enumerate().all(|(at, kernel)| at == *kernel as usize));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COUNT);
    }

    #[test]
    fn pads_of_wide_tables_are_counted_apart() {
        let pads = |choice_bits| {
            let job = Job { count: 10, choice_bits, entry: ot::Entry::Bits(1) };
            Effort::pads(&Need { client_sends: vec![job], ..Need::default() })
        };
        for (choice_bits, entries, wide) in [(4, 160.0, 0.0), (5, 0.0, 320.0), (8, 0.0, 2560.0)] {
            let effort = pads(choice_bits);
            assert!((effort.units(Kernel::Transfer) - 10.0).abs() < 1e-9);
            assert!((effort.units(Kernel::Entry) - entries).abs() < 1e-9);
            assert!((effort.units(Kernel::WideEntry) - wide).abs() < 1e-9);
        }
    }

    #[test]
    #[allow(clippy::unwrap_used)]
    fn labels_beside_transfers_are_not_counted_as_opened() {
        use crate::garbled::{Function, Garbled, Ring};
        let to = Ring::Power(9);
        let plan = Garbled::map(5, Ring::Power(8), 8, Function::default(), to).unwrap();
        let alone = Effort::online(&plan.need(), plan.cost());
        assert!(alone.units(Kernel::OnlineBit).abs() < 1e-9);
        let more = plan.cost().then(Cost::message(Role::Client, 100));
        let opened = more.bytes() - plan.cost().bytes();
        let both = Effort::online(&plan.need(), more);
        assert!((both.units(Kernel::OnlineBit) - 8.0 * opened as f64).abs() < 1e-9);
        assert!((both.units(Kernel::Evaluated) - plan.and_gates() as f64).abs() < 1e-9);
    }

    #[test]
    fn efforts_add_up() {
        let both = Effort::of(Kernel::Byte, 2.0) + Effort::messages(Cost::message(Role::Client, 5));
        assert!((both.units(Kernel::Byte) - 12.0).abs() < 1e-9);
        assert!((both.units(Kernel::Round) - 1.0).abs() < 1e-9);
    }
}
