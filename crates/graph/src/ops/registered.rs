//! A registered operator as a value in a graph.

use super::operator::Operator;
use super::registry::find;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::fmt;

/// An operator that was registered: anything that can be copied, compared and written.
pub struct Registered(Box<dyn Operator>);

impl Registered {
    /// The operator.
    pub fn operator(&self) -> &dyn Operator {
        self.0.as_ref()
    }

    /// The operator of that name, out of its fields.
    pub(super) fn read<E: serde::de::Error>(
        name: &str,
        fields: impl FnOnce() -> Result<serde_json::Value, E>,
    ) -> Result<Self, E> {
        let Some(registration) = find(name) else {
            let name: String = name.chars().take(64).collect();
            return Err(E::custom(format!(
                "there is no operator `{name}`; one of another program has to be registered first"
            )));
        };
        let wrong = |why| E::custom(format!("operator `{name}`: {why}"));
        (registration.read)(fields()?).map(Self).map_err(wrong)
    }
}

impl From<Box<dyn Operator>> for Registered {
    fn from(operator: Box<dyn Operator>) -> Self {
        Self(operator)
    }
}

impl Clone for Registered {
    fn clone(&self) -> Self {
        Self(self.0.boxed())
    }
}

impl PartialEq for Registered {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(other.operator())
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Registered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = self.0.to_json().map_err(serde::ser::Error::custom)?;
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.0.kind(), &fields)?;
        map.end()
    }
}
