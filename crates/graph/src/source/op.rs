//! An operator as a value in a source graph.

use super::operator::SourceOperator;
use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// What an imported operator computes: a value of any type that implements
/// [`SourceOperator`]. Those of this crate are in [`super::ops`].
pub struct SourceOp(Box<dyn SourceOperator>);

impl SourceOp {
    /// Returns the operator as a `T`, if it is one.
    pub fn get<T: SourceOperator>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }

    /// Returns the operator as a `T` to change, if it is one.
    pub fn get_mut<T: SourceOperator>(&mut self) -> Option<&mut T> {
        self.0.as_any_mut().downcast_mut()
    }

    /// Returns whether the operator is a `T`.
    pub fn is<T: SourceOperator>(&self) -> bool {
        self.0.as_any().is::<T>()
    }
}

impl Deref for SourceOp {
    type Target = dyn SourceOperator;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref()
    }
}

impl DerefMut for SourceOp {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0.as_mut()
    }
}

impl<T: SourceOperator> From<T> for SourceOp {
    fn from(operator: T) -> Self {
        Self(Box::new(operator))
    }
}

impl From<Box<dyn SourceOperator>> for SourceOp {
    fn from(operator: Box<dyn SourceOperator>) -> Self {
        Self(operator)
    }
}

impl Clone for SourceOp {
    fn clone(&self) -> Self {
        Self(self.0.boxed())
    }
}

impl PartialEq for SourceOp {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(other.0.as_ref())
    }
}

impl fmt::Debug for SourceOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for SourceOp {
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
