//! A party's own randomness.

use std::ops::{Deref, DerefMut};

use crate::host;
use crate::prg::{Prg, Seed};

/// Domain of generators that are keyed from another.
const CHILD: u64 = u64::from_le_bytes(*b"a child ");

/// A party's private generator, keyed by the operating system. A forked process that
/// inherits one draws from a key of its own. A seeded one exists only under the feature
/// `testing`, which no release build enables.
#[derive(Debug)]
pub struct Random {
    prg: Prg,
    /// The process that the key belongs to; none for a seeded stream.
    process: Option<u32>,
}

impl Random {
    /// Keyed with fresh entropy.
    ///
    /// # Errors
    /// When the operating system gives no entropy; nothing may go on then.
    pub fn from_os() -> Result<Self, getrandom::Error> {
        Ok(Self { prg: fresh()?, process: Some(host::process()) })
    }

    /// A generator of its own, keyed from this one.
    pub fn child(&mut self) -> Self {
        let seed = self.seed();
        Self { prg: Prg::new(&seed, CHILD), process: self.process }
    }

    /// Takes a new key in a process that the present one does not belong to: parent and
    /// child would draw the same masks.
    fn rekey_after_fork(&mut self) {
        let process = host::process();
        if self.process.is_some_and(|owner| owner != process) {
            // The interface of a stream has no room for an error, and going on is no choice.
            let Ok(prg) = fresh() else { std::process::abort() };
            *self = Self { prg, process: Some(process) };
        }
    }

    /// A reproducible generator for tests.
    #[cfg(any(test, feature = "testing"))]
    pub fn seeded(seed: u64) -> Self {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self { prg: Prg::new(&Seed(bytes), u64::MAX), process: None }
    }
}

/// A stream under a key from the operating system.
fn fresh() -> Result<Prg, getrandom::Error> {
    let mut seed = Seed([0; 16]);
    getrandom::fill(&mut seed.0)?;
    Ok(Prg::new(&seed, 0))
}

impl Deref for Random {
    type Target = Prg;

    fn deref(&self) -> &Prg {
        &self.prg
    }
}

impl DerefMut for Random {
    fn deref_mut(&mut self) -> &mut Prg {
        self.rekey_after_fork();
        &mut self.prg
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// What a child sees after a fork: the parent's memory under another process number.
    #[test]
    fn another_process_draws_from_another_key() {
        let mut seeds = Random::seeded(1);
        let seed = seeds.seed();
        let inherited = |owner| Random { prg: Prg::new(&seed, 0), process: owner };
        let own = host::process();
        let [mut parent, mut child, mut twin] = [own, !own, !own].map(|id| inherited(Some(id)));
        let expected = inherited(None).block();
        let drawn = [parent.block(), child.block(), twin.block()];
        assert_eq!(drawn[0], expected);
        assert!(drawn[1] != expected && drawn[2] != expected && drawn[1] != drawn[2]);
        assert_eq!(child.process, Some(own));
        let again = child.block();
        assert!(again != drawn[1], "one new key, not one for each draw");
    }

    #[test]
    fn children_differ_from_their_parent_and_each_other() {
        let mut parent = Random::seeded(5);
        let [mut one, mut two] = [parent.child(), parent.child()];
        let drawn = [parent.block(), one.block(), two.block()];
        assert!(drawn[0] != drawn[1] && drawn[0] != drawn[2] && drawn[1] != drawn[2]);
        let mut again = Random::seeded(5);
        assert_eq!(again.child().block(), drawn[1]);
    }

    #[test]
    fn fresh_generators_differ() {
        assert_ne!(Random::from_os().unwrap().block(), Random::from_os().unwrap().block());
    }
}
