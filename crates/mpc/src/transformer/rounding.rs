//! What results of a softmax lose below their point, and how wide they get.
//!
//! | | |
//! |---|---|
//! | In | shares of `0 <= x < 2^(bits-1)` mod 2^bits; correlations |
//! | Out | shares of `floor(x / 2^drop)` mod 2^out_bits |
//! | Reveals | nothing but masked choices and openings |
//! | Security | semi-honest, given the correlations |
//! | Cost | that of [`crate::arithmetic::truncate`] and of an extension, or of [`crate::arithmetic::rescale`] |
//! | Paper | as of these |

use wire::{Channel, Cost, Result, Role};

use crate::arithmetic::extend::{self, Extend};
use crate::arithmetic::rescale::{self, Rescale};
use crate::arithmetic::truncate::{self, Truncate};
use crate::correlations::{Correlations, Demand};
use crate::protocol::Protocol;
use crate::share::Share;
use crate::turns;

/// How results lose the bits below their point and get the width that is asked for.
#[derive(Clone, Debug)]
pub(super) enum Rounding {
    /// By a truncation, and where a reader needs them wider than the function has them an extension.
    Apart(Box<(Truncate, Option<Extend>)>),
    /// At once.
    Beside(Box<Rescale>),
}

impl Rounding {
    /// A truncation, and what extends its results.
    pub(super) fn apart(plan: Truncate, wider: Option<Extend>) -> Self {
        Self::Apart(Box::new((plan, wider)))
    }

    /// Correlations consumed.
    pub(super) fn demand(&self) -> Demand {
        match self {
            Self::Apart(both) => {
                let (plan, wider) = &**both;
                plan.demand() + wider.as_ref().map(Extend::demand).unwrap_or_default()
            }
            Self::Beside(plan) => plan.demand(),
        }
    }

    /// What [`Rounding::run`] costs.
    pub(super) fn cost(&self) -> Cost {
        match self {
            Self::Apart(both) => {
                let (plan, wider) = &**both;
                plan.cost().then(wider.as_ref().map_or(Cost::NONE, Extend::cost))
            }
            Self::Beside(plan) => plan.cost(),
        }
    }

    /// With parts that whoever spoke last begins, the first one `first`.
    ///
    /// # Errors
    /// As [`Truncate::begun_by`].
    pub(super) fn begun_by(self, first: Role) -> Result<Self> {
        let Self::Apart(both) = self else { return Ok(self) };
        let (plan, wider) = *both;
        let plan = plan.begun_by(first)?;
        let last = turns::after(plan.cost(), first);
        Ok(Self::apart(plan, wider.map(|wider| wider.begun_by(last))))
    }

    /// Rounds `x`, which is not negative.
    ///
    /// # Errors
    /// As [`truncate::run`].
    pub(super) fn run(
        &self,
        channel: &mut Channel,
        x: &Share,
        mut ots: Correlations,
    ) -> Result<Share> {
        match self {
            Self::Beside(plan) => rescale::run(channel, plan, x, ots),
            Self::Apart(both) => {
                let (plan, wider) = &**both;
                let now = ots.split(channel.role(), &plan.demand())?;
                let rounded = truncate::run(channel, plan, x, now)?;
                match wider {
                    Some(wider) => extend::run(channel, wider, &rounded, ots),
                    None => Ok(rounded),
                }
            }
        }
    }
}
