//! What a planner chose for single steps, where that is not what everybody chooses.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use mpc::compare::Radix;
use serde::{Deserialize, Serialize};
use wire::{Error, Result};

/// How a step that is not linear, or the exact rounding of one that is, runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// By transfers, its comparisons in digits of this width.
    Digits(Radix),
    /// By garbled circuits; of layer norms and softmaxes what is computed once a row.
    Circuits,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Digits(radix) => write!(f, "digits{}", radix.bits()),
            Self::Circuits => f.write_str("circuits"),
        }
    }
}

impl FromStr for Choice {
    type Err = Error;

    /// `digits1` to `digits8`, or `circuits`.
    fn from_str(text: &str) -> Result<Self> {
        let digits = || text.strip_prefix("digits")?.parse().ok();
        match (text, digits()) {
            ("circuits", _) => Ok(Self::Circuits),
            (_, Some(bits)) => Radix::of_bits(bits).map(Self::Digits),
            _ => Err(Error::misuse("a choice that is neither digits1 to digits8 nor circuits")),
        }
    }
}

impl TryFrom<String> for Choice {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        // The text may be a peer's, so it is not quoted.
        text.parse().map_err(|_| "an unknown choice".into())
    }
}

/// The choices of a plan, by index of the step; both parties have the same, as the server
/// offers them with the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<usize, String>", into = "BTreeMap<usize, String>")]
pub struct Choices(BTreeMap<usize, Choice>);

impl Choices {
    /// Whether everything is as everybody chooses.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What was chosen for a step, if anything.
    pub fn of(&self, step: usize) -> Option<Choice> {
        self.0.get(&step).copied()
    }

    /// Chooses for a step, or leaves it to everybody's choice.
    pub fn set(&mut self, step: usize, choice: Option<Choice>) {
        match choice {
            Some(choice) => self.0.insert(step, choice),
            None => self.0.remove(&step),
        };
    }

    /// Whether they are for a graph of so many nodes; what ends a plan has their number.
    ///
    /// # Errors
    /// [`Error::Misuse`] where they are not.
    pub(crate) fn check(&self, nodes: usize) -> Result<()> {
        match self.0.keys().next_back() {
            Some(last) if *last > nodes => Err(Error::misuse("a choice for a step there is not")),
            _ => Ok(()),
        }
    }
}

impl TryFrom<BTreeMap<usize, String>> for Choices {
    type Error = String;

    fn try_from(named: BTreeMap<usize, String>) -> std::result::Result<Self, String> {
        let read = named.into_iter().map(|(step, text)| Ok((step, Choice::try_from(text)?)));
        read.collect::<std::result::Result<_, String>>().map(Self)
    }
}

impl From<Choices> for BTreeMap<usize, String> {
    fn from(choices: Choices) -> Self {
        choices.0.into_iter().map(|(step, choice)| (step, choice.to_string())).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_back_and_others_refused() {
        let mut choices = Choices::default();
        choices.set(3, Some(Choice::Digits(Radix::of_bits(7).unwrap())));
        choices.set(5, Some(Choice::Circuits));
        let json = serde_json::to_string(&choices).unwrap();
        assert_eq!(json, r#"{"3":"digits7","5":"circuits"}"#);
        assert_eq!(serde_json::from_str::<Choices>(&json).unwrap(), choices);
        for bad in [r#"{"3":"digits9"}"#, r#"{"3":"digits0"}"#, r#"{"x":"circuits"}"#, "[]"] {
            assert!(serde_json::from_str::<Choices>(bad).is_err(), "{bad}");
        }
        assert!(choices.check(5).is_ok() && choices.check(4).is_err());
    }
}
