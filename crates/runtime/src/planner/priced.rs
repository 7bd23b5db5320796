//! Ways at a price, and what plans pay for once.

use wire::Cost;

use super::ways::Levels;

/// What a way takes at a price, without its rounds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Priced {
    pub(super) seconds: f64,
    pub(super) cost: Cost,
    pub(super) early: bool,
    pub(super) garbled: bool,
    pub(super) levels: Levels,
}

/// What ways may ask for that is paid once for all steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shared {
    /// An exchange before the input exists.
    pub(super) early: bool,
    /// An exchange in which circuits are garbled.
    pub(super) garbled: bool,
    /// Keys for unfolding.
    pub(super) levels: Levels,
}

impl Shared {
    pub(super) fn allows(self, way: &Priced) -> bool {
        let levels = way.levels.iter().zip(self.levels).all(|(asked, most)| *asked <= most);
        levels && (self.early || !way.early) && (self.garbled || !way.garbled)
    }
}
