//! One imported operator with its tensors.

use super::op::SourceOp;
use super::registry::find;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;

/// One operator: its inputs are tensors, its weights are fields of the operator.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceNode {
    /// Unique name, used in error messages.
    pub name: String,
    /// Names of the tensors that the node reads, in order.
    pub inputs: Vec<String>,
    /// Name of the tensor that the node writes.
    pub output: String,
    /// What to compute; its fields stand next to the ones above, tagged `op`.
    pub op: SourceOp,
}

/// A node as JSON has it.
#[derive(Serialize)]
struct Written<'a> {
    name: &'a str,
    inputs: &'a [String],
    output: &'a str,
    #[serde(flatten)]
    op: &'a SourceOp,
}

impl Serialize for SourceNode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { name, inputs, output, op } = self;
        Written { name, inputs, output, op }.serialize(serializer)
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
        let op = read(fields);
        Ok(Self {
            name: serde_json::from_value(name).map_err(D::Error::custom)?,
            inputs: serde_json::from_value(inputs).map_err(D::Error::custom)?,
            output: serde_json::from_value(output).map_err(D::Error::custom)?,
            op: op.map_err(D::Error::custom)?,
        })
    }
}

/// The operator out of its name and fields.
fn read(mut fields: serde_json::Map<String, Value>) -> serde_json::Result<SourceOp> {
    let name = fields.remove("op").ok_or_else(|| serde_json::Error::missing_field("op"))?;
    let registration = find(&String::deserialize(name)?)?;
    (registration.read)(Value::Object(fields)).map(SourceOp::from)
}
