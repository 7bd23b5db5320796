//! The source operators that are known by name: those of this crate and those that other
//! crates add.

use super::ops::{BUILT_IN, NAMES};
use super::registration::SourceRegistration;
use crate::error::{Error, Result};
use serde::de::Error as _;
use std::sync::{PoisonError, RwLock};

static REGISTERED: RwLock<Vec<&'static SourceRegistration>> = RwLock::new(Vec::new());

/// Makes a source operator known to everything in this process that reads source graphs.
///
/// # Errors
/// [`Error::Misuse`] for a name that an operator has already, and for one that is no name.
pub fn register(registration: &'static SourceRegistration) -> Result<()> {
    let name = registration.name;
    if !(1..=64).contains(&name.len()) || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
        return Err(Error::Misuse(format!("`{name}` is no name for a source operator")));
    }
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if registered.iter().any(|other| other.name == name) || NAMES.contains(&name) {
        return Err(Error::Misuse(format!("there is a source operator `{name}` already")));
    }
    registered.push(registration);
    Ok(())
}

/// The operator of that name.
pub(super) fn find(name: &str) -> serde_json::Result<&'static SourceRegistration> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    let mut all = BUILT_IN.iter().chain(registered.iter().copied());
    let found = all.find(|registration| registration.name == name);
    found.ok_or_else(|| serde_json::Error::unknown_variant(name, NAMES))
}
