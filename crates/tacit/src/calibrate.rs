//! Measuring a machine: both parties in this process, over TLS and loopback, a thread each.

use std::thread;

use runtime::bench::{Operation, efforts};
use runtime::planner::{Effort, Kernel, Rates, Sample, Work, fitted, workload};
use runtime::{Settings, Usage};
use serde::Serialize;
use wire::{Error, Result};

use crate::bench::{BenchServer, bench};
use crate::session::{PredictOptions, ServeOptions, TlsFiles};

/// A machine's rates, and how well they tell what they were found from.
#[derive(Clone, Debug, Serialize)]
pub struct Calibrated {
    /// Seconds of a unit of each kind of work.
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
    /// As measured.
    pub seconds: f64,
    /// As predicted.
    pub predicted: f64,
}

/// Shortest phase that is told by a clock and not by chance.
const SHORTEST: f64 = 1e-3;

/// Measures this machine, every operation `runs` times (the fastest counts, what else runs
/// here only slows it down). `progress` hears how many of how many operations are done.
///
/// # Errors
/// [`Error::Transport`] when there is no loopback.
pub fn calibrate(runs: usize, mut progress: impl FnMut(usize, usize)) -> Result<Calibrated> {
    let all = workload();
    let mut measured: Vec<(String, &'static str, Sample)> = Vec::new();
    for (done, work) in all.iter().enumerate() {
        let mut least = [f64::INFINITY; 2];
        for _ in 0..runs.max(1) {
            let seconds = once(work)?;
            least.iter_mut().zip(seconds).for_each(|(least, now)| *least = least.min(now));
        }
        let run = efforts(work.operation.clone(), work.settings)?.into_iter().sum();
        let name = describe(&work.operation, work.settings);
        let session = Effort::of(Kernel::Session, 1.0);
        let phases = [("setup", session), ("run", run)];
        for ((phase, effort), seconds) in phases.into_iter().zip(least) {
            // Setups of large operations draw their inputs.
            let wanted = if phase == "setup" { small(&work.operation) } else { seconds > SHORTEST };
            if wanted {
                measured.push((name.clone(), phase, Sample { effort, seconds }));
            }
        }
        progress(done + 1, all.len());
    }
    let samples: Vec<Sample> = measured.iter().map(|(.., sample)| *sample).collect();
    let rates = fitted(&samples, &Rates::reference());
    let told = measured.into_iter().map(|(operation, phase, Sample { effort, seconds })| Told {
        operation,
        phase,
        seconds,
        predicted: rates.seconds(&effort),
    });
    let samples: Vec<Told> = told.collect();
    let mut errors: Vec<f64> =
        samples.iter().map(|told| (told.predicted / told.seconds - 1.0).abs()).collect();
    errors.sort_by(f64::total_cmp);
    let median_error = errors.get(errors.len() / 2).copied().unwrap_or_default();
    Ok(Calibrated { rates, samples, median_error })
}

/// Seconds at the client: of the setup, and of all that follows. A party that is done with its
/// correlations waits for the other when it is online, so that the two phases are one.
fn once(work: &Work) -> Result<[f64; 2]> {
    let serving = ServeOptions {
        ot: work.settings.ot.to_string(),
        tls: Some(TlsFiles::default()),
        ..ServeOptions::default()
    };
    let server = BenchServer::bind(work.operation.clone(), &serving)?;
    let (address, pin) = (server.address()?.to_string(), server.pin.map(|pin| pin.to_string()));
    let other = thread::spawn(move || server.run());
    let options = PredictOptions { pin, ..PredictOptions::default() };
    let measured = bench(work.operation.clone(), work.settings, &address, &options);
    let ended = other.join().unwrap_or_else(|_| Err(Error::Internal("a bench panicked".into())));
    let phases = measured?.report.phases;
    ended?;
    let seconds = |usage: Usage| usage.seconds.unwrap_or(0.0);
    Ok([seconds(phases.setup), seconds(phases.offline) + seconds(phases.online)])
}

/// Whether its inputs are drawn in no time.
fn small(operation: &Operation) -> bool {
    matches!(operation, Operation::Relu { count, .. } if *count <= 1 << 12)
}

fn describe(operation: &Operation, settings: Settings) -> String {
    let sizes = serde_json::to_string(operation).unwrap_or_default();
    format!("{sizes} {}", settings.ot)
}
