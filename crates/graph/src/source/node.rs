//! One imported operator with its tensors.

use super::op::SourceOp;
use super::registry::find;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// One operator: its inputs are tensors, its weights are fields of the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceNode {
    /// Unique name, used in error messages.
    pub name: String,
    /// Tensors read.
    pub inputs: Vec<String>,
    /// Tensor written.
    pub output: String,
    /// What to compute; its fields stand next to the ones above, tagged `op`.
    pub op: SourceOp,
}

/// A node as JSON has it.
#[derive(Serialize)]
struct Written<'a, T: Serialize> {
    name: &'a str,
    inputs: &'a [String],
    output: &'a str,
    #[serde(flatten)]
    op: &'a T,
}

impl Serialize for SourceNode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { name, inputs, output, op } = self;
        match op {
            SourceOp::Registered(op) => Written { name, inputs, output, op }.serialize(serializer),
            op => Written { name, inputs, output, op }.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SourceNode {
    /// `flatten` would switch off the check for unknown fields, so the common
    /// fields are taken out first and the operator gets the rest.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        let mut fields = serde_json::Map::deserialize(deserializer)?;
        let mut take =
            |key: &'static str| fields.remove(key).ok_or_else(|| D::Error::missing_field(key));
        let (name, inputs, output) = (take("name")?, take("inputs")?, take("output")?);
        let registered = fields.get("op").and_then(|op| op.as_str()).and_then(find);
        let op = match registered {
            Some(registration) => {
                fields.remove("op");
                let operator = (registration.read)(serde_json::Value::Object(fields));
                operator.map(|operator| SourceOp::Registered(operator.into()))
            }
            None => serde_json::from_value(serde_json::Value::Object(fields)),
        };
        Ok(Self {
            name: serde_json::from_value(name).map_err(D::Error::custom)?,
            inputs: serde_json::from_value(inputs).map_err(D::Error::custom)?,
            output: serde_json::from_value(output).map_err(D::Error::custom)?,
            op: op.map_err(D::Error::custom)?,
        })
    }
}
