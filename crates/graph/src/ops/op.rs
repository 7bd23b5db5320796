//! An operator as a value in a graph, and how it comes out of JSON.

use super::operator::Operator;
use super::registry::{self, Registration};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::{Error as _, SerializeMap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// The JSON of an operator without fields.
const NO_FIELDS: &str = "null";

/// What a node computes, on exact integers: any [`Operator`] as a value that can be copied,
/// compared and written as JSON. Its methods are those of the operator.
///
/// The JSON is `{"relu": {"saturate": 8}}`, or `"reshape"` for an operator without fields.
pub struct Op(Box<dyn Operator>);

impl Op {
    /// Returns the operator, if it is a `T`.
    pub fn get<T: Operator>(&self) -> Option<&T> {
        self.0.as_any().downcast_ref()
    }

    /// Returns the operator to change, if it is a `T`.
    pub fn get_mut<T: Operator>(&mut self) -> Option<&mut T> {
        self.0.as_any_mut().downcast_mut()
    }

    /// Returns whether the operator is a `T`.
    pub fn is<T: Operator>(&self) -> bool {
        self.0.as_any().is::<T>()
    }
}

impl Deref for Op {
    type Target = dyn Operator;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref()
    }
}

impl DerefMut for Op {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.0.as_mut()
    }
}

impl<T: Operator> From<T> for Op {
    fn from(operator: T) -> Self {
        Self(Box::new(operator))
    }
}

impl From<Box<dyn Operator>> for Op {
    fn from(operator: Box<dyn Operator>) -> Self {
        Self(operator)
    }
}

impl Clone for Op {
    fn clone(&self) -> Self {
        Self(self.0.boxed())
    }
}

impl PartialEq for Op {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(other.0.as_ref())
    }
}

impl<T: Operator + PartialEq> PartialEq<T> for Op {
    fn eq(&self, other: &T) -> bool {
        self.get() == Some(other)
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Op {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.to_json().map_err(S::Error::custom)?;
        if fields.get() == NO_FIELDS {
            return serializer.serialize_str(self.kind());
        }
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.kind(), &fields)?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for Op {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

/// Reads an operator by its name.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Op;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operator")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Op, E> {
        read(name, NO_FIELDS)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Op, A::Error> {
        let name: String = map.next_key()?.ok_or_else(|| A::Error::custom("no operator"))?;
        let fields: Box<RawValue> = map.next_value()?;
        if map.next_key::<String>()?.is_some() {
            return Err(A::Error::custom("two operators in one node"));
        }
        read(&name, fields.get())
    }
}

/// The operator of that name, out of the JSON of its fields.
fn read<E: serde::de::Error>(name: &str, fields: &str) -> Result<Op, E> {
    let Some(Registration { read, .. }) = registry::find(name) else {
        let name: String = name.chars().take(64).collect();
        return Err(E::custom(format!(
            "there is no operator `{name}`; one of another program has to be registered first"
        )));
    };
    read(fields).map(Op).map_err(|why| E::custom(format!("operator `{name}`: {why}")))
}
