//! Kinds of work.

/// A kind of work and its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// A session: handshake, base OTs.
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
    /// A correlation of SoftSpoken with k = 4.
    SoftSpoken4,
    /// A correlation of SoftSpoken with k = 8.
    SoftSpoken8,
    /// A correlation of Ferret's smallest set.
    Ferret15,
    /// A correlation of Ferret's second set.
    Ferret16,
    /// A correlation of Ferret's third set.
    Ferret17,
    /// A correlation of Ferret's fourth set.
    Ferret18,
    /// A correlation of Ferret's largest set.
    Ferret19,
    /// A random oblivious transfer: hashing at the receiver, bookkeeping at both.
    RandomOt,
    /// A pad of one entry of a table.
    Entry,
    /// A pad of one entry of a table of [`crate::equivalent::WIDE_TABLE`] entries or more: such
    /// pads do not stay in the nearest cache.
    WideEntry,
    /// A byte of a stream out of a pad.
    Stream,
    /// An oblivious transfer consumed online.
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
    /// A picosecond of slot-packed work, by the estimate of its operations from
    /// [`crate::fixed::slots`].
    Slotted,
    /// A byte of slot-packed ciphertexts, made and read.
    Packed,
    /// A coefficient of a rotation key: made, sent, and read with its uniform half.
    Keyed,
    /// An element of a local step.
    Local,
}

impl Unit {
    /// All units, in order.
    pub const ALL: [Self; COUNT] = [
        Self::Session,
        Self::Start,
        Self::Touched,
        Self::Round,
        Self::Byte,
        Self::SoftSpoken2,
        Self::SoftSpoken4,
        Self::SoftSpoken8,
        Self::Ferret15,
        Self::Ferret16,
        Self::Ferret17,
        Self::Ferret18,
        Self::Ferret19,
        Self::RandomOt,
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

    /// Returns the name of the unit in files of rates.
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
            Self::Ferret15 => "ferret15",
            Self::Ferret16 => "ferret16",
            Self::Ferret17 => "ferret17",
            Self::Ferret18 => "ferret18",
            Self::Ferret19 => "ferret19",
            Self::RandomOt => "transfer",
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

/// How many units there are.
pub const COUNT: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_numbered_and_named_apart() {
        let mut names: Vec<&str> = Unit::ALL.iter().map(|unit| unit.name()).collect();
        assert!(Unit::ALL.iter().enumerate().all(|(at, unit)| at == *unit as usize));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), COUNT);
    }
}
