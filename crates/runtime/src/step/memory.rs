//! What layers keep from one run of a session to the next.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;

use wire::{Error, Result};

/// What a party's layers keep between the runs of a session, by step. It ends with the session,
/// and a session ends with the first run that fails.
#[derive(Default)]
pub struct Memory(BTreeMap<usize, Box<dyn Any + Send>>);

impl Memory {
    /// What the layer of a step keeps: the default before it has kept anything.
    ///
    /// # Errors
    /// [`Error::Internal`] for what another layer kept.
    pub fn of<T: Any + Send + Default>(&mut self, step: usize) -> Result<&mut T> {
        let kept = self.0.entry(step).or_insert_with(|| Box::new(T::default()));
        kept.downcast_mut()
            .ok_or_else(|| Error::internal("a layer met what another one kept; please report it"))
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory(<of {} steps>)", self.0.len())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_step_finds_what_it_kept_and_nothing_of_another_kind() {
        let mut memory = Memory::default();
        memory.of::<Vec<u64>>(3).unwrap().push(7);
        assert_eq!(*memory.of::<Vec<u64>>(3).unwrap(), [7]);
        assert!(memory.of::<Vec<u64>>(4).unwrap().is_empty());
        assert!(matches!(memory.of::<String>(3), Err(Error::Internal(_))));
    }
}
