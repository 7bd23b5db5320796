//! Operators that are known by name only: those that other crates add.

use super::operator::Operator;
use crate::error::{Error, Result};
use serde::de::DeserializeOwned;
use std::sync::{PoisonError, RwLock};

/// How an operator comes out of JSON.
#[derive(Clone, Copy, Debug)]
pub struct Registration {
    /// The operator's name in JSON: what [`Operator::kind`] returns. Lower-case letters,
    /// digits and hyphens.
    pub name: &'static str,
    /// The reader of the operator's fields.
    pub read: fn(serde_json::Value) -> serde_json::Result<Box<dyn Operator>>,
}

impl Registration {
    /// An operator whose fields serde reads.
    pub const fn of<T: Operator + DeserializeOwned>(name: &'static str) -> Self {
        Self { name, read: |fields| Ok(Box::new(serde_json::from_value::<T>(fields)?)) }
    }
}

static REGISTERED: RwLock<Vec<&'static Registration>> = RwLock::new(Vec::new());

/// The refusal of a name that an operator has already.
pub(super) fn taken(name: &str) -> Error {
    Error::Misuse(format!("there is an operator `{name}` already"))
}

/// Adds an operator whose name is none of this crate's.
pub(super) fn add(registration: &'static Registration) -> Result<()> {
    let name = registration.name;
    let letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(1..=64).contains(&name.len()) || !name.chars().all(letter) {
        return Err(Error::Misuse(format!("`{name}` is no name for an operator")));
    }
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if registered.iter().any(|other| other.name == name) {
        return Err(taken(name));
    }
    registered.push(registration);
    Ok(())
}

/// The registered operator of that name.
pub(super) fn find(name: &str) -> Option<&'static Registration> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.iter().find(|registration| registration.name == name).copied()
}
