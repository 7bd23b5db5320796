//! What a planner chose for single steps, where that is not the default.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use mpc::compare::Radix;
use mpc::linear::coefficient::{MOST_FOLDINGS, MOST_PACKINGS};
use serde::{Deserialize, Serialize};
use wire::{Error, Result};

/// How a step runs, part by part; what is not set is left at the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StepOptions {
    /// The protocol of the products of a linear layer.
    pub products: Option<Products>,
    /// Whether the layer runs on a mask before, together with all others that do.
    pub preprocessed: bool,
    /// Runs whose masks such a layer encrypts together, where those are several; the first of them prepares all.
    pub runs: Option<NonZeroU32>,
    /// The protocol of a function, or of the exact rounding of a linear layer.
    pub function: Option<Function>,
    /// Whether a function's parts are begun by whoever spoke last, wherever either party may begin. An
    /// extension, which has one part, is begun by the server. The exact rounding of a linear layer with
    /// chained digits takes one message each way, the client's first.
    pub turns: bool,
    /// Whether a softmax in turns has its maxima and tables in fewer rounds and more bytes, or a smooth
    /// function in turns its table.
    pub shallow: bool,
    /// Whether maxima of a shallow softmax are those that take the least time between parties that are
    /// near: more rounds and fewer bytes.
    pub near: bool,
}

/// The protocols that multiply a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Products {
    /// Under encryption in this packing, counted from 1, of those from few bytes to little
    /// work.
    Packing(usize),
    /// Under encryption with inputs that come folded, 2^m polynomials in a ciphertext: m from 1 on
    /// at the first degree, then m from 1 on at the next.
    Folded(usize),
    /// By OTs that choose by the bits of the weights.
    Ot,
}

/// The protocols that a function of each value can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Function {
    /// By OT, its comparisons in digits of this width or chained.
    Digits(Radix),
    /// A ReLU or GELU by OT with chained digits that the client begins, for behind a preprocessed layer.
    OnMask,
    /// By garbled circuits; of layer norms and softmaxes what is computed once a row.
    Circuits,
    /// By circuits what is computed once a row, the rest by OT, its comparisons in
    /// digits of this width.
    Rows(Radix),
    /// Decision trees compare their tests in stages, each of the subtree that is reached, by OT in digits
    /// of this width.
    Stages(Radix),
    /// By one table of all values.
    Table,
    /// By OT, narrow tables as well, which circuits of AND gates look up otherwise where that takes
    /// fewer bytes; comparisons in digits of this width.
    Tables(Radix),
}

impl StepOptions {
    /// Garbled circuits for what is not linear.
    pub const CIRCUITS: Self = Self::function(Function::Circuits);

    /// Options that choose a function and leave the rest at the default.
    pub const fn function(function: Function) -> Self {
        Self {
            products: None,
            preprocessed: false,
            runs: None,
            function: Some(function),
            turns: false,
            shallow: false,
            near: false,
        }
    }

    /// Options that choose digits of this width and leave the rest at the default.
    pub const fn digits(radix: Radix) -> Self {
        Self::function(Function::Digits(radix))
    }

    /// Returns whether its products are computed on a mask, before the input is there.
    pub fn is_early(self) -> bool {
        self.preprocessed || self.products == Some(Products::Ot)
    }

    /// Returns the number of runs whose masks are encrypted together.
    pub fn runs(self) -> usize {
        self.runs.map_or(1, |runs| runs.get() as usize)
    }

    /// Returns whether everything is left at the default.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }

    /// The options of both; those of `other` win where both choose.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            products: other.products.or(self.products),
            preprocessed: self.preprocessed || other.preprocessed,
            runs: other.runs.or(self.runs),
            function: other.function.or(self.function),
            turns: self.turns || other.turns,
            shallow: self.shallow || other.shallow,
            near: self.near || other.near,
        }
    }
}

impl fmt::Display for Products {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packing(place) => write!(f, "packing{place}"),
            Self::Folded(place) => write!(f, "folded{place}"),
            Self::Ot => f.write_str("transfers"),
        }
    }
}

/// Most runs whose masks a layer encrypts together.
pub(crate) const MOST_RUNS: u32 = 64;

/// A function and its digits, as in `rows4` or `rows-chain`.
fn digits(f: &mut fmt::Formatter<'_>, function: &str, radix: Radix) -> fmt::Result {
    match radix.digit_bits() {
        Some(bits) => write!(f, "{function}{bits}"),
        None => write!(f, "{function}-{}", radix.name().unwrap_or_default()),
    }
}

/// The digits that end the name of a function.
fn radix(digits: &str) -> Option<Radix> {
    match digits.strip_prefix('-') {
        Some(name) => Radix::named(name),
        None => Radix::of_bits(digits.parse().ok()?).ok(),
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Digits(radix) => match radix.name() {
                Some(name) => f.write_str(name),
                None => digits(f, "digits", *radix),
            },
            Self::OnMask => f.write_str("masked"),
            Self::Circuits => f.write_str("circuits"),
            Self::Rows(radix) => digits(f, "rows", *radix),
            Self::Stages(radix) => digits(f, "stages", *radix),
            Self::Table => f.write_str("table"),
            Self::Tables(radix) => digits(f, "tables", *radix),
        }
    }
}

impl fmt::Display for StepOptions {
    /// Its parts, as in `packing2+ahead+digits4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.runs.map(|runs| runs.to_string()).unwrap_or_default();
        let preprocessed = self.preprocessed.then(|| format!("ahead{runs}"));
        let parts = [
            self.products.map(|products| products.to_string()),
            preprocessed,
            self.function.map(|function| function.to_string()),
            self.turns.then(|| "turns".to_owned()),
            self.shallow.then(|| "shallow".to_owned()),
            self.near.then(|| "near".to_owned()),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        f.write_str(&if parts.is_empty() { "plain".into() } else { parts.join("+") })
    }
}

impl FromStr for StepOptions {
    type Err = Error;

    /// One or more of `packing1` to `packing4`, `folded1` to `folded8` or `transfers`, `ahead` or
    /// `ahead2` to `ahead64`, and `digits1` to `digits8`, `chain`, `ripple`, `masked`, `circuits`, `table`, or
    /// `rows1` to `rows8`, `stages1` to `stages8` or `tables1` to `tables8`, or these with `-chain` or `-ripple` in
    /// place of the number, `turns`, `shallow`, and `near`, in this order, with `+` between.
    fn from_str(text: &str) -> Result<Self> {
        let unknown = || {
            Error::misuse(
                "a step option that is none of packing1 to packing4, folded1 to folded8, transfers, \
                 ahead, ahead2 to ahead64, digits1 to digits8, chain, ripple, masked, circuits, rows1 to rows8, \
                 stages1 to stages8, tables1 to tables8, these with -chain or -ripple in place of the number, \
                 table, turns, shallow, near",
            )
        };
        let mut options = Self::default();
        for part in text.split('+') {
            let number = |name: &str| part.strip_prefix(name)?.parse::<u32>().ok();
            let packing = number("packing").map(|place| place as usize);
            let packing = packing.filter(|place| (1..=MOST_PACKINGS).contains(place));
            let folded = number("folded").map(|place| place as usize);
            let folded = folded.filter(|place| (1..=MOST_FOLDINGS).contains(place));
            let runs = number("ahead").filter(|runs| (2..=MOST_RUNS).contains(runs));
            let compares = |name| part.strip_prefix(name).and_then(radix);
            let digits = ["digits", "rows", "stages", "tables"].into_iter().find_map(compares);
            let named = Radix::named(part);
            match (part, packing, digits) {
                ("transfers", ..) => options.products = Some(Products::Ot),
                (_, Some(place), _) => options.products = Some(Products::Packing(place)),
                _ if folded.is_some() => options.products = folded.map(Products::Folded),
                ("ahead", ..) => options.preprocessed = true,
                _ if runs.is_some() => {
                    options.preprocessed = true;
                    options.runs = runs.and_then(NonZeroU32::new);
                }
                ("turns", ..) => options.turns = true,
                ("shallow", ..) => options.shallow = true,
                ("near", ..) => options.near = true,
                _ if named.is_some() => options.function = named.map(Function::Digits),
                ("masked", ..) => options.function = Some(Function::OnMask),
                ("circuits", ..) => options.function = Some(Function::Circuits),
                ("table", ..) => options.function = Some(Function::Table),
                (.., Some(radix)) if part.starts_with("rows") => {
                    options.function = Some(Function::Rows(radix));
                }
                (.., Some(radix)) if part.starts_with("stages") => {
                    options.function = Some(Function::Stages(radix));
                }
                (.., Some(radix)) if part.starts_with("tables") => {
                    options.function = Some(Function::Tables(radix));
                }
                (.., Some(radix)) => options.function = Some(Function::Digits(radix)),
                _ => return Err(unknown()),
            }
        }
        // Each value has one text.
        if options.to_string() == text { Ok(options) } else { Err(unknown()) }
    }
}

impl TryFrom<String> for StepOptions {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        // The text may be a peer's, so it is not quoted.
        text.parse().map_err(|_| "an unknown step option".into())
    }
}

/// The options of a plan, by index of the step; both parties have the same, as the server
/// offers them with the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<usize, String>", into = "BTreeMap<usize, String>")]
pub struct OptionsByStep(BTreeMap<usize, StepOptions>);

impl OptionsByStep {
    /// Returns whether everything is left at the default.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the options that were chosen for a step.
    pub fn of(&self, step: usize) -> StepOptions {
        self.0.get(&step).copied().unwrap_or_default()
    }

    /// The options of a step that runs with `host`, if it does: none where they are the host's.
    pub(crate) fn beside(&self, step: usize, host: Option<usize>) -> StepOptions {
        let own = self.of(step);
        match host.map(|host| self.of(host)) {
            Some(its) if its == own => StepOptions::default(),
            _ => own,
        }
    }

    /// Sets the options of a step.
    pub fn set(&mut self, step: usize, options: StepOptions) {
        match options.is_none() {
            false => self.0.insert(step, options),
            true => self.0.remove(&step),
        };
    }

    /// The most runs for which a step prepares.
    pub(crate) fn most_runs(&self) -> usize {
        self.0.values().map(|options| options.runs()).max().unwrap_or(1)
    }

    /// Whether they are for a graph of so many nodes; what ends a plan has their number.
    ///
    /// # Errors
    /// [`Error::Misuse`] where they are not.
    pub(crate) fn check(&self, nodes: usize) -> Result<()> {
        match self.0.keys().next_back() {
            Some(last) if *last > nodes => Err(Error::misuse("options for a step there is not")),
            _ => Ok(()),
        }
    }
}

impl TryFrom<BTreeMap<usize, String>> for OptionsByStep {
    type Error = String;

    fn try_from(named: BTreeMap<usize, String>) -> std::result::Result<Self, String> {
        let read = named.into_iter().map(|(step, text)| Ok((step, StepOptions::try_from(text)?)));
        read.collect::<std::result::Result<_, String>>().map(Self)
    }
}

impl From<OptionsByStep> for BTreeMap<usize, String> {
    fn from(by_step: OptionsByStep) -> Self {
        by_step.0.into_iter().map(|(step, options)| (step, options.to_string())).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read_back_and_others_refused() {
        let mut by_step = OptionsByStep::default();
        let digits = StepOptions::digits(Radix::of_bits(7).unwrap());
        by_step.set(3, digits);
        by_step.set(5, StepOptions::CIRCUITS);
        by_step.set(
            7,
            StepOptions { products: Some(Products::Packing(2)), preprocessed: true, ..digits },
        );
        by_step.set(8, StepOptions { products: Some(Products::Ot), ..StepOptions::default() });
        by_step.set(9, StepOptions::default());
        by_step.set(10, "rows5".parse().unwrap());
        let folded = StepOptions { products: Some(Products::Folded(4)), ..StepOptions::default() };
        by_step.set(11, StepOptions { preprocessed: true, ..folded });
        by_step.set(12, "packing2+stages4".parse().unwrap());
        by_step.set(13, "ahead+chain".parse().unwrap());
        by_step.set(14, "rows-chain".parse().unwrap());
        by_step.set(15, "stages-chain".parse().unwrap());
        by_step.set(16, "tables3".parse().unwrap());
        by_step.set(17, "tables-chain".parse().unwrap());
        by_step.set(18, "masked".parse().unwrap());
        by_step.set(19, "turns".parse().unwrap());
        by_step.set(20, "rows-chain+turns".parse().unwrap());
        by_step.set(21, "rows-chain+turns+shallow".parse().unwrap());
        by_step.set(23, "chain+turns+shallow+near".parse().unwrap());
        by_step.set(22, "folded2+ahead32".parse().unwrap());
        assert_eq!(by_step.most_runs(), 32);
        let json = serde_json::to_string(&by_step).unwrap();
        let all = r#"{"3":"digits7","5":"circuits","7":"packing2+ahead+digits7","8":"transfers","10":"rows5","11":"folded4+ahead","12":"packing2+stages4","13":"ahead+chain","14":"rows-chain","15":"stages-chain","16":"tables3","17":"tables-chain","18":"masked","19":"turns","20":"rows-chain+turns","21":"rows-chain+turns+shallow","22":"folded2+ahead32","23":"chain+turns+shallow+near"}"#;
        assert_eq!(json, all);
        assert_eq!(serde_json::from_str::<OptionsByStep>(&json).unwrap(), by_step);
        for bad in [
            "digits9",
            "digits0",
            "digits-chain",
            "rowschain",
            "chain1",
            "rows9",
            "stages0",
            "stages9",
            "tables9",
            "packing0",
            "packing5",
            "packing02",
            "folded0",
            "folded9",
            "folded1+packing1",
            "plain",
            "",
            "+",
            "ahead+ahead",
            "ahead0",
            "ahead1",
            "ahead65",
            "ahead2+ahead3",
            "circuits+ahead",
            "transfers+packing1",
            "digits3+digits3",
            "turns+chain",
            "turns+turns",
            "shallow+turns",
        ] {
            let json = format!(r#"{{"3":"{bad}"}}"#);
            assert!(serde_json::from_str::<OptionsByStep>(&json).is_err(), "{bad}");
        }
        for bad in [r#"{"x":"circuits"}"#, "[]"] {
            assert!(serde_json::from_str::<OptionsByStep>(bad).is_err(), "{bad}");
        }
        assert!(by_step.check(23).is_ok() && by_step.check(22).is_err());
    }
}
