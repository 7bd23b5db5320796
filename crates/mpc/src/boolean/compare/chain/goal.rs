//! What a chain tells of a sum, and the states that its digits hand on.

/// The bits that a chain tells of the sum of the asking party's integer and the other's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::boolean::compare) enum Goal {
    /// The carry out.
    Carry,
    /// The carry out as a number of so many bits, of which the parties get summands.
    Number { bits: u32 },
    /// The carry, and whether the bits from `low` on are zero.
    Middle { low: u32 },
    /// Whether bit `top` of the sum is 0, as a number of so many bits of which the parties get
    /// summands.
    NonNegative { top: u32, bits: u32 },
    /// Besides, where these are zero, the bit below `low` and, for `interior`, whether any bit
    /// below `low` is set.
    Halves { low: u32, interior: bool },
}

/// The facts that the digits so far give of the sum. `half` and `inner` count only where `zero`
/// holds.
#[derive(Clone, Copy)]
pub(super) struct State {
    carry: bool,
    zero: bool,
    half: bool,
    inner: bool,
}

impl Goal {
    /// Number of bits that are told.
    pub(in crate::boolean::compare) fn outcomes(self) -> u32 {
        match self {
            Self::Carry => 1,
            Self::Middle { .. } => 2,
            Self::Number { bits } | Self::NonNegative { bits, .. } => bits,
            Self::Halves { interior, .. } => 3 + u32::from(interior),
        }
    }

    /// Whether the outcome is one bit of whose number the parties get summands, and not bits shared
    /// by exclusive or.
    pub(super) fn adds(self) -> bool {
        matches!(self, Self::Number { .. } | Self::NonNegative { .. })
    }

    /// Bits of a state's number between bits `at - 1` and `at`.
    pub(super) fn state_bits(self, at: u32) -> u32 {
        match self {
            Self::Carry | Self::Number { .. } | Self::NonNegative { .. } => 1,
            Self::Middle { low } => 1 + u32::from(at > low),
            Self::Halves { low, .. } if at > low => 3,
            Self::Halves { low, interior } => 1 + u32::from(at == low) + u32::from(interior),
        }
    }

    /// Which of four things is known at the end or beyond `low`: that the middle is not zero (0), or
    /// that it is, the bits below being zero (1), less than half (2), or more (3). Without
    /// `interior` 1 stands for 2 as well, and 2 for 3.
    fn kind(state: State, interior: bool) -> u32 {
        let found = 1 + u32::from(state.half) + u32::from(interior && state.inner);
        if state.zero { found } else { 0 }
    }

    /// The number of a state at bit `at`.
    pub(super) fn code(self, at: u32, state: State) -> u32 {
        let carry = u32::from(state.carry);
        match self {
            Self::Carry | Self::Number { .. } | Self::NonNegative { .. } => carry,
            Self::Middle { low } => carry | u32::from(at > low && state.zero) << 1,
            Self::Halves { low, interior } if at > low => carry | Self::kind(state, interior) << 1,
            Self::Halves { low, interior } => {
                let half = u32::from(at == low && state.half);
                let inner = u32::from(interior && state.inner);
                carry | half << 1 | inner << (1 + u32::from(at == low))
            }
        }
    }

    /// The state of a number at bit `at`; numbers that no state has stand for any.
    pub(super) fn state(self, at: u32, code: u32) -> State {
        let told = |bit: u32| (code >> bit) & 1 == 1;
        let start = State { carry: told(0), zero: true, half: false, inner: false };
        match self {
            Self::Carry | Self::Number { .. } | Self::NonNegative { .. } => start,
            Self::Middle { low } => State { zero: at <= low || told(1), ..start },
            Self::Halves { low, interior } if at > low => {
                let (kind, most) = (code >> 1, 2 + u32::from(interior));
                State { zero: kind > 0, half: kind >= most, inner: kind >= 2, ..start }
            }
            Self::Halves { low, .. } if at == low => {
                State { half: told(1), inner: told(2), ..start }
            }
            Self::Halves { .. } => State { inner: told(1), ..start },
        }
    }

    /// The state behind bit `at`, from the bits of who asks and of the other party, whose share of
    /// the sum is the complement of its operand.
    pub(super) fn step(self, at: u32, state: State, [asked, told]: [bool; 2]) -> State {
        let sum = u8::from(asked) + u8::from(!told) + u8::from(state.carry);
        let (bit, carry) = (sum & 1 == 1, sum > 1);
        let low = match self {
            Self::Carry | Self::Number { .. } => return State { carry, ..state },
            Self::NonNegative { top, .. } => {
                return State { carry: if at == top { !bit } else { carry }, ..state };
            }
            Self::Middle { low } | Self::Halves { low, .. } => low,
        };
        if at >= low {
            return State { carry, zero: state.zero && !bit, ..state };
        }
        State { carry, half: at + 1 == low && bit, inner: state.inner || bit, ..state }
    }

    /// The bits that a final state tells, with the carry in the lowest.
    pub(super) fn outcome(self, state: State) -> u32 {
        if self.adds() {
            return u32::from(state.carry);
        }
        let told = [true, state.half, state.inner].map(|bit| state.zero && bit);
        let all = u32::from(state.carry)
            | (1..).zip(told).fold(0, |all, (at, bit)| all | u32::from(bit) << at);
        all & ((1 << self.outcomes()) - 1)
    }
}
