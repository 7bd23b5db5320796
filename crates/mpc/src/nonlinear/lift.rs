//! Shares of values that are small and not negative, or do not matter, at a wider modulus: the
//! product that it takes begins before a comparison and ends after it.
//!
//! Shares `c, s < 2^n` of `0 <= y < 2^(n-1)` wrap when either has its top bit set, so that
//! `c + s - 2^n (msb_c OR msb_s)` is y. The asking party opens its top bit under a mask as soon as
//! it has its share, the other the masked difference when it is next to speak (`ot::opened`).
//! Other y become other values of the wider ring.

use ot::one_of_n::opened::{Asked, Offered};
use ot::one_of_n::{choices_cost, choices_layout, masked_cost, masked_layout};
use ot::{Choices, Entry, Job, Masked, Table, ask, offer};
use ring::Bits;
use ring::word::{bit, mask};
use wire::{Channel, Cost, Result, Role};
use zeroize::Zeroizing;

use crate::correlations::{Correlations, Demand};
use crate::share::Share;

/// The public plan: `count` values from `bits` to `bits + more`.
#[derive(Clone, Debug)]
pub(crate) struct Lift {
    pub(crate) count: usize,
    pub(crate) bits: u32,
    pub(crate) more: u32,
    pub(crate) asks: Role,
}

/// A lift whose first message has been sent or has come.
pub(crate) enum Begun {
    /// At the party that asks.
    Asked(Asked),
    /// At the other: what it says, and what it was asked.
    Told(Offered, Masked, Choices),
}

impl Lift {
    fn job(&self) -> Job {
        Job { count: self.count, choice_bits: 1, entry: Entry::Word(self.more) }
    }

    /// Correlations consumed.
    pub(crate) fn demand(&self) -> Demand {
        Demand::from(!self.asks, vec![self.job()])
    }

    /// What it costs, with `between` between its messages.
    pub(crate) fn cost(&self, between: Cost) -> Cost {
        let jobs = [self.job()];
        choices_cost(self.asks, &jobs).then(between).then(masked_cost(!self.asks, &jobs))
    }

    /// Sends or awaits the masked top bits of the party that asks.
    ///
    /// # Errors
    /// [`wire::Error::Misuse`] when correlations do not fit, [`wire::Error::Peer`],
    /// [`wire::Error::Transport`].
    pub(crate) fn begin(
        &self,
        channel: &mut Channel,
        words: &[u64],
        mut ots: Correlations,
    ) -> Result<Begun> {
        let jobs = [self.job()];
        if channel.role() == self.asks {
            let top = Zeroizing::new(vec![vec![Bits::of_words(words, self.bits - 1)]]);
            let (asked, choices) = ask(ots.receive(&jobs)?, &top)?;
            channel.send(&choices)?;
            return Ok(Begun::Asked(asked));
        }
        let own = words.iter().map(|word| bit(*word, self.bits - 1)).collect();
        let table = Table::words(vec![own, vec![1; words.len()]]);
        let (offered, masked) = offer(ots.send(&jobs)?, vec![table])?;
        let choices = channel.receive(&choices_layout(&jobs))?;
        Ok(Begun::Told(offered, masked, choices))
    }

    /// Sends or awaits the other message and returns the shares at `bits + more`.
    ///
    /// # Errors
    /// [`wire::Error::Peer`], [`wire::Error::Transport`].
    pub(crate) fn finish(
        &self,
        channel: &mut Channel,
        words: &[u64],
        begun: Begun,
    ) -> Result<Share> {
        let columns = match begun {
            Begun::Asked(asked) => asked.finish(channel.receive(&masked_layout(&[self.job()]))?)?,
            Begun::Told(offered, masked, choices) => {
                channel.send(&masked)?;
                offered.finish(&choices)?
            }
        };
        let wraps = columns.iter().filter_map(|column| column.first_word()).flatten();
        let all = mask(self.bits + self.more);
        let lifted = words.iter().zip(wraps);
        let lifted = lifted.map(|(word, wrap)| word.wrapping_sub(wrap << self.bits) & all);
        Ok(Share::new(lifted.collect(), self.bits + self.more))
    }
}
