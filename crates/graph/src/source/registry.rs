//! Source operators that are known by name only: those that other crates add.

use super::op::SourceOp;
use super::operator::SourceOperator;
use crate::error::{Error, Result};
use serde::de::DeserializeOwned;
use std::sync::{PoisonError, RwLock};

/// How a source operator comes out of JSON.
#[derive(Clone, Copy, Debug)]
pub struct SourceRegistration {
    /// The operator's name in JSON: what [`SourceOperator::kind`] returns. Letters and digits.
    pub name: &'static str,
    /// The reader of the operator's fields, an object without `op`, `name`, `inputs` and
    /// `output`.
    pub read: fn(serde_json::Value) -> serde_json::Result<Box<dyn SourceOperator>>,
}

impl SourceRegistration {
    /// An operator whose fields serde reads. One without fields is a struct with braces, since
    /// its JSON is an object.
    pub const fn of<T: SourceOperator + DeserializeOwned>(name: &'static str) -> Self {
        Self { name, read: |fields| Ok(Box::new(serde_json::from_value::<T>(fields)?)) }
    }
}

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
    if registered.iter().any(|other| other.name == name) || SourceOp::is_built_in(name) {
        return Err(Error::Misuse(format!("there is a source operator `{name}` already")));
    }
    registered.push(registration);
    Ok(())
}

/// The registered operator of that name.
pub(super) fn find(name: &str) -> Option<&'static SourceRegistration> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    registered.iter().find(|registration| registration.name == name).copied()
}
