//! The server's choices for a session, which the client must agree to.

use std::num::{NonZeroU32, NonZeroU64};

use ot::{BaseOts, Source, Sourcing};
use serde::{Deserialize, Serialize};
use wire::Link;

/// What the client learns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reveal {
    /// Every output value.
    #[default]
    Output,
    /// Only the position of the largest.
    Label,
    /// That, and its probability by softmax.
    Probability,
    /// The band of a score between edges, of a graph that ends with them.
    Bucket,
}

/// The server's choices that the client must agree to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What the client learns.
    #[serde(default)]
    pub reveal: Reveal,
    /// Decimals that a revealed probability is right to, 1 to 6; 4 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<NonZeroU32>,
    /// Where correlated OTs come from.
    #[serde(default, with = "source")]
    pub ot: Source,
    /// Bits per second of the link that `auto` is planned for; 400 Mbit/s when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<NonZeroU64>,
    /// Whether the plan was chosen for a link that was measured when the client connected.
    #[serde(default, skip_serializing_if = "is_false")]
    pub measured: bool,
    /// Runs prepared before their inputs, linear layers too; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offline: Option<NonZeroU32>,
    /// Inputs of one run, 1 to 64, which share rounds and ciphertexts; one when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<NonZeroU32>,
    /// Inputs of a run of several that follow each other, 2 to 64, of a model that keeps states; there
    /// are no such runs when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pass: Option<NonZeroU32>,
    /// Whether the plan is that of passes, which is part of another: nobody offers it.
    #[serde(skip)]
    pub passing: bool,
    /// Whether new base OTs rest on ML-KEM-768 as well as on Diffie-Hellman.
    #[serde(default, skip_serializing_if = "is_false")]
    pub post_quantum: bool,
}

impl Settings {
    /// Runs that a session prepares ahead.
    pub(crate) fn store(self) -> usize {
        self.offline.map_or(0, |store| store.get() as usize)
    }

    /// Decimals of a probability.
    pub(crate) fn digits(self) -> u32 {
        self.digits.map_or(4, NonZeroU32::get)
    }

    /// Returns the number of inputs of one run.
    pub fn batch(self) -> usize {
        self.batch.map_or(1, |batch| batch.get() as usize)
    }

    /// Returns the number of inputs of a run of several that follow each other, if there are such runs.
    pub fn pass(self) -> Option<usize> {
        self.pass.map(|pass| pass.get() as usize)
    }

    /// The settings of the plan of such runs; `None` where there are none, or where these are they.
    pub(crate) fn of_pass(self) -> Option<Self> {
        let inputs = self.pass.filter(|_| !self.passing)?;
        Some(Self { batch: Some(inputs), passing: true, ..self })
    }

    /// With the bandwidth of `link`, if there is one.
    pub fn planned_for(self, link: Option<Link>) -> Self {
        let bandwidth = link.and_then(|link| NonZeroU64::new(link.figures().1 as u64));
        Self { bandwidth: bandwidth.or(self.bandwidth), ..self }
    }

    /// What both parties' correlations follow from.
    pub fn sourcing(self) -> Sourcing {
        let base = if self.post_quantum { BaseOts::Hybrid } else { BaseOts::Classical };
        Sourcing { source: self.ot, bandwidth: self.bandwidth, base }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A [`Source`] by its name.
mod source {
    use ot::Source;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(source: &Source, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(source)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Source, D::Error> {
        let name = String::deserialize(from)?;
        name.parse().map_err(|_| D::Error::custom("an unknown source of transfers"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn settings_name_a_link_only_where_there_is_one() {
        let plain = Settings::default();
        let json = |settings| serde_json::to_string(&settings).unwrap();
        assert_eq!(json(plain), r#"{"reveal":"output","ot":"auto"}"#);
        assert_eq!(plain.planned_for(None), plain);
        let wan = plain.planned_for(Some(Link::WAN));
        assert_eq!(json(wan), r#"{"reveal":"output","ot":"auto","bandwidth":400000000}"#);
        assert_eq!(serde_json::from_str::<Settings>(&json(wan)).unwrap(), wan);
        let both = Settings { post_quantum: true, ..plain };
        assert_eq!(json(both), r#"{"reveal":"output","ot":"auto","post_quantum":true}"#);
        assert_eq!(serde_json::from_str::<Settings>(&json(both)).unwrap(), both);
        for bandwidth in ["0", "-1", "1.5", "18446744073709551616"] {
            let text = format!(r#"{{"bandwidth":{bandwidth}}}"#);
            assert!(serde_json::from_str::<Settings>(&text).is_err());
        }
    }
}
