//! A machine's rates out of measurements of it: which operations to measure, and the fit.

mod fit;
mod workload;

use pricing::{Rates, Work};
use serde::{Deserialize, Serialize};
use wire::{Error, Phase, Result};

use crate::operation::Operation;
use crate::session::work_by_phase;
use fit::{Sample, fitted};
use workload::{Trial, workload};

/// An operation to measure.
#[derive(Clone, Debug, Serialize)]
pub struct Wanted {
    /// What runs.
    pub operation: Operation,
    /// Where its correlations come from.
    pub ot: String,
}

/// Seconds of one, at the client.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Took {
    /// Seconds of its setup.
    pub setup: f64,
    /// Seconds of all that follows. A party that is done with its correlations waits for the other
    /// when it is online, so that the two phases are one.
    pub run: f64,
}

/// A machine's rates, and how well they tell what they were found from.
#[derive(Clone, Debug, Serialize)]
pub struct Calibrated {
    /// Seconds of a unit of each kind of trial.
    pub rates: Rates,
    /// What was measured.
    pub samples: Vec<Told>,
    /// Median of the relative errors.
    pub median_error: f64,
}

/// A measurement and what the rates say of it.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// The operation.
    pub operation: String,
    /// setup, or run: all that follows it.
    pub phase: &'static str,
    /// The seconds that were measured.
    pub seconds: f64,
    /// The seconds that were predicted.
    pub predicted: f64,
}

/// Shortest phase that is told by a clock and not by chance.
const SHORTEST: f64 = 1e-3;

/// What to measure, every operation by two fresh processes with a thread each, over TLS and
/// loopback.
pub fn wanted() -> Vec<Wanted> {
    let all = workload().into_iter();
    all.map(|trial| Wanted { operation: trial.operation, ot: trial.settings.ot.to_string() })
        .collect()
}

/// Returns the rates that tell best what was `measured` of [`wanted`], in its order.
///
/// # Errors
/// [`Error::Misuse`] for another number of measurements.
pub fn calibrated(measured: &[Took]) -> Result<Calibrated> {
    let all = workload();
    if all.len() != measured.len() {
        let (got, wanted) = (measured.len(), all.len());
        return Err(Error::misuse(format!("{got} measurements of {wanted} operations")));
    }
    let mut samples: Vec<(String, &'static str, Sample)> = Vec::new();
    for (trial, took) in all.iter().zip(measured) {
        let work_by_phase = work_by_phase(trial.operation.clone(), trial.settings)?;
        let of = |wanted: &dyn Fn(Phase) -> bool| -> Work {
            work_by_phase.iter().filter(|(phase, _)| wanted(*phase)).map(|(_, work)| *work).sum()
        };
        let setup = Sample { work: of(&|phase| phase == Phase::Setup), seconds: took.setup };
        let run = Sample { work: of(&|phase| phase != Phase::Setup), seconds: took.run };
        if draws_little(&trial.operation) {
            samples.push((describe(trial), "setup", setup));
        }
        if took.run > SHORTEST {
            samples.push((describe(trial), "run", run));
        }
    }
    let known: Vec<Sample> = samples.iter().map(|(.., sample)| *sample).collect();
    let rates = fitted(&known, &Rates::reference());
    let told = samples.into_iter().map(|(operation, phase, Sample { work, seconds })| Told {
        operation,
        phase,
        seconds,
        predicted: rates.seconds(&work),
    });
    let samples: Vec<Told> = told.collect();
    let mut errors: Vec<f64> =
        samples.iter().map(|told| (told.predicted / told.seconds - 1.0).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let median_error = errors.get(errors.len() / 2).copied().unwrap_or_default();
    Ok(Calibrated { rates, samples, median_error })
}

/// Whether its inputs, which are drawn in the setup, are drawn in no time.
fn draws_little(operation: &Operation) -> bool {
    match operation {
        Operation::Relu { count, .. } => *count <= 1 << 12,
        Operation::Conv { height, width, input, .. } => height * width * input <= 1 << 12,
        _ => false,
    }
}

fn describe(trial: &Trial) -> String {
    let sizes = serde_json::to_string(&trial.operation).unwrap_or_default();
    format!("{sizes} {}", trial.settings.ot)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_twice_as_slow_has_rates_twice_as_large() {
        let rates = Rates::reference();
        let as_told = |factor: f64| -> Vec<Took> {
            let of = |trial: Trial| {
                let mut took = Took { setup: 0.0, run: 0.0 };
                for (phase, work) in work_by_phase(trial.operation, trial.settings).unwrap() {
                    let place = if phase == Phase::Setup { &mut took.setup } else { &mut took.run };
                    *place += factor * rates.seconds(&work);
                }
                took
            };
            workload().into_iter().map(of).collect()
        };
        let found = calibrated(&as_told(2.0)).unwrap();
        assert!(found.median_error < 0.01, "{}", found.median_error);
        assert!(found.samples.len() > wanted().len());
        let unit = Work::of(pricing::Unit::Entry, 1.0);
        let ratio = found.rates.seconds(&unit) / rates.seconds(&unit);
        assert!((ratio - 2.0).abs() < 0.1, "{ratio}");
        assert!(calibrated(&as_told(1.0)[1..]).is_err());
    }
}
