//! What layers keep while they are preprocessed and until they run, as values of one type.

use std::any::Any;

use wire::{Error, Result};

/// What a layer keeps between asking and finishing; only the layer knows what it is.
pub struct Asked(Kept);

/// What a party holds of one preprocessed layer, consumed by the run that it was made for.
pub struct Preprocessed(Kept);

impl Asked {
    /// Keeps `state` for the layer that made it.
    pub fn new<T: Any + Send>(state: T) -> Self {
        Self(Kept(Box::new(state)))
    }

    /// What was kept.
    ///
    /// # Errors
    /// [`Error::Internal`] for what another layer or the other party kept.
    pub fn take<T: Any>(self) -> Result<T> {
        self.0.take()
    }
}

impl Preprocessed {
    /// Keeps `state` for the layer that made it.
    pub fn new<T: Any + Send>(state: T) -> Self {
        Self(Kept(Box::new(state)))
    }

    /// Whether this type was kept.
    pub(crate) fn is<T: Any>(&self) -> bool {
        self.0.0.is::<T>()
    }

    /// What was kept.
    ///
    /// # Errors
    /// [`Error::Internal`] for what another layer or the other party kept.
    pub fn take<T: Any>(self) -> Result<T> {
        self.0.take()
    }
}

/// A value of any type.
struct Kept(Box<dyn Any + Send>);

impl Kept {
    fn take<T: Any>(self) -> Result<T> {
        let foreign =
            || Error::internal("a layer met the preprocessing of another; please report it");
        self.0.downcast().map(|state| *state).map_err(|_| foreign())
    }
}
