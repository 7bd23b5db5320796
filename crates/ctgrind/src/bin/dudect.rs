//! `dudect [SECONDS [FILTER [LEVEL]]]`: takes the time of every kernel with fixed secrets and with
//! random ones in turns, for so many seconds a case, and prints Welch's t.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ctgrind::case::Case;
use ctgrind::run::Run;
use ctgrind::statistics::{Classes, Measured};
use ctgrind::{cases, level};
use ring::Random;

/// Secrets of the fixed class.
const FIXED: u64 = 0xf1_8ed;
/// Runs that only warm up.
const WARMUP: usize = 5;

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "dudect: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> io::Result<()> {
    let seconds: u64 = match arguments.first() {
        Some(seconds) => seconds.parse().map_err(io::Error::other)?,
        None => 5,
    };
    let filter = arguments.get(1).map_or("", String::as_str);
    let levels = level::all();
    let level = arguments.get(2).or(levels.last()).map_or("portable", String::as_str);
    if !level::choose(level) {
        return Err(io::Error::other(format!("this machine has no level {level}")));
    }
    let mut out = io::stdout();
    writeln!(out, "level {level}, {seconds} s a case; |t| above 4.5 is suspicious")?;
    writeln!(out, "runs with fixed secrets, with random ones; the medians of both")?;
    for case in cases::matching(filter) {
        for (part, classes) in measure(&case, Duration::from_secs(seconds))? {
            let Measured { counts, medians, t, kept } = classes.measured();
            let name = format!("{}: {} ({part})", case.group, case.name);
            let micros = medians.map(|nanos| nanos / 1000.0);
            writeln!(
                out,
                "{name:<64} {:>6} {:>6} {:>10.1} {:>10.1} us  |t| {:>7.2} of {kept} %{}",
                counts[0],
                counts[1],
                micros[0],
                micros[1],
                t.abs(),
                if case.leaky { "  (control)" } else { "" },
            )?;
        }
    }
    Ok(())
}

/// The times of each part of a case, by class.
fn measure(case: &Case, patience: Duration) -> io::Result<Vec<(&'static str, Classes)>> {
    let mut rng = Random::from_os().map_err(io::Error::other)?;
    let mut parts: Vec<(&'static str, Classes)> = Vec::new();
    let start = Instant::now();
    let mut runs = 0;
    while runs < 2 * WARMUP || start.elapsed() < patience {
        let random = rng.word() & 1 == 1;
        let mut run = Run::timed(if random { rng.word() } else { FIXED });
        (case.run)(&mut run);
        runs += 1;
        if runs <= WARMUP {
            continue;
        }
        for (part, time) in run.into_times() {
            let known = parts.iter().position(|(name, _)| *name == part);
            let at = known.unwrap_or_else(|| {
                parts.push((part, Classes::default()));
                parts.len() - 1
            });
            parts[at].1.add(random, time.as_nanos() as f64);
        }
    }
    Ok(parts)
}
