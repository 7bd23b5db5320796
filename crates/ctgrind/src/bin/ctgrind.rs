//! `ctgrind [FILTER [LEVEL]]`: runs the cases under valgrind at each level that it has, or at one,
//! and prints a table.
//! `ctgrind list` names cases and levels. Exit code 1 for a finding that nothing explains.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use ctgrind::valgrind::{Report, inside, measure};
use ctgrind::{cases, level};

/// The levels of the machine that valgrind imitates.
const LEVELS: [&str; 2] = ["portable", "avx2"];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments.as_slice() {
        ["inside", level, filter] => run_inside(level, filter),
        ["list"] => list(),
        [] => run_all("", &LEVELS),
        [filter] => run_all(filter, &LEVELS),
        [filter, level] => run_all(filter, &[level]),
        _ => Err(io::Error::other("usage: ctgrind [FILTER [LEVEL]]")),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(io::stderr(), "ctgrind: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What valgrind runs.
fn run_inside(level: &str, filter: &str) -> io::Result<bool> {
    if !level::choose(level) {
        return Err(io::Error::other(format!("valgrind has no level {level}")));
    }
    write!(io::stdout(), "{}", inside(&cases::matching(filter))?)?;
    Ok(true)
}

fn list() -> io::Result<bool> {
    let mut out = io::stdout().lock();
    for case in cases::all() {
        writeln!(out, "{}: {}", case.group, case.name)?;
    }
    writeln!(out, "levels of this machine: {}", level::all().join(", "))?;
    Ok(true)
}

fn run_all(filter: &str, levels: &[&str]) -> io::Result<bool> {
    let program = std::env::current_exe()?;
    let folder = program.with_file_name("ctgrind-logs");
    std::fs::create_dir_all(&folder)?;
    let mut passed = true;
    for level in levels {
        let log = folder.join(format!("{level}.log"));
        let report = measure(&program, level, filter, &log)?;
        passed &= print(level, &report, &log)?;
    }
    Ok(passed)
}

fn print(level: &str, report: &Report, log: &Path) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    writeln!(out, "level {level}")?;
    for finding in &report.findings {
        let [group, name] = &finding.case;
        let verdict = match (finding.passes(), finding.leaky) {
            (true, false) => "clean",
            (true, true) => "found, as it must be",
            (false, false) => "FOUND",
            (false, true) => "NOT FOUND",
        };
        writeln!(out, "  {group:<12} {name:<44} {:>9}  {verdict}", finding.errors)?;
    }
    for (name, count) in &report.explained {
        writeln!(out, "  explained    {name:<44} {count:>9}")?;
    }
    let passed = report.findings.iter().all(|finding| finding.passes());
    if !passed {
        writeln!(out, "  where: {}", log.display())?;
    }
    Ok(passed)
}
