//! A registered source operator as a value in a source graph.

use super::operator::SourceOperator;
use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fmt;

/// A source operator that was registered: anything that can be copied, compared and written.
pub struct RegisteredSource(Box<dyn SourceOperator>);

impl RegisteredSource {
    /// The operator.
    pub fn operator(&self) -> &dyn SourceOperator {
        self.0.as_ref()
    }
}

impl From<Box<dyn SourceOperator>> for RegisteredSource {
    fn from(operator: Box<dyn SourceOperator>) -> Self {
        Self(operator)
    }
}

impl Clone for RegisteredSource {
    fn clone(&self) -> Self {
        Self(self.0.boxed())
    }
}

impl PartialEq for RegisteredSource {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(other.operator())
    }
}

impl fmt::Debug for RegisteredSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for RegisteredSource {
    /// The operator's fields, with its name as the field `op`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.to_json().map_err(S::Error::custom)?;
        let Value::Object(fields) = fields else {
            return Err(S::Error::custom(format!("operator `{}` has no fields", self.0.kind())));
        };
        let mut map = serializer.serialize_map(Some(1 + fields.len()))?;
        map.serialize_entry("op", self.0.kind())?;
        for (name, value) in &fields {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}
