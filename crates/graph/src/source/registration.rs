//! How a source operator comes out of JSON.

use super::operator::SourceOperator;
use serde::de::DeserializeOwned;

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
