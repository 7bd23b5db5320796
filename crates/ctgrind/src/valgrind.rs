//! Runs cases under valgrind, and judges what it finds.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

use crate::case::Case;
use crate::request;
use crate::run::Run;

/// What explains the findings that are no leak, each with the public value that is branched on.
pub const SUPPRESSIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/public.supp");

/// Any number will do: memcheck does not look at values.
const SEED: u64 = 0x5eed;

/// What valgrind found in a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Group and name of the case.
    pub case: [String; 2],
    /// Whether it is a control.
    pub leaky: bool,
    /// Branches and addresses on secrets, each time that one occurs.
    pub errors: usize,
}

impl Finding {
    /// Whether this is what it ought to be: errors in a control, and nowhere else.
    pub const fn passes(&self) -> bool {
        self.leaky == (self.errors > 0)
    }
}

/// What valgrind found at a level.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Case by case.
    pub findings: Vec<Finding>,
    /// Names of suppressions and how often each was used.
    pub explained: Vec<(String, usize)>,
}

/// Runs `cases` in this process, which runs under valgrind, and returns a line for each.
///
/// # Errors
/// [`io::Error`] outside of valgrind, where nothing would be found.
pub fn inside(cases: &[Case]) -> io::Result<String> {
    if !request::running() {
        return Err(io::Error::other("not under valgrind"));
    }
    let mut lines = String::new();
    for case in cases {
        let before = request::errors();
        (case.run)(&mut Run::under_memcheck(SEED));
        let errors = request::errors() - before;
        lines += &format!("{}\t{}\t{}\t{errors}\n", case.group, case.name, case.leaky);
    }
    Ok(lines)
}

/// Runs those cases whose group and name contain `filter` under valgrind, by the program `ctgrind`
/// at `program`. Valgrind's own words go to the file `log`.
///
/// # Errors
/// [`io::Error`] when valgrind is missing, a case panics, or its report cannot be read.
pub fn measure(program: &Path, level: &str, filter: &str, log: &Path) -> io::Result<Report> {
    let output = Command::new("valgrind")
        .args([
            "--tool=memcheck",
            "--leak-check=no",
            "--error-limit=no",
            "--num-callers=24",
            "-s",
            "--expensive-definedness-checks=yes",
        ])
        .arg(format!("--suppressions={SUPPRESSIONS}"))
        .arg(format!("--log-file={}", log.display()))
        .arg(program)
        .args(["inside", level, filter])
        .output()
        .map_err(|error| io::Error::other(format!("valgrind does not run: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{} at level {level}: {said}", output.status)));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    let findings = lines.lines().map(finding).collect::<Option<Vec<_>>>();
    let findings = findings.filter(|all| !all.is_empty());
    let findings = findings.ok_or_else(|| io::Error::other(format!("no findings: {lines}")))?;
    Ok(Report { findings, explained: explained(&fs::read_to_string(log)?) })
}

fn finding(line: &str) -> Option<Finding> {
    let mut fields = line.split('\t');
    let case = [fields.next()?.to_owned(), fields.next()?.to_owned()];
    let (leaky, errors) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Finding { case, leaky, errors })
}

/// The lines `used_suppression: <count> <name> <file>` of a log.
fn explained(log: &str) -> Vec<(String, usize)> {
    let used = log.lines().filter_map(|line| line.split_once("used_suppression:"));
    let used = used.filter_map(|(_, rest)| {
        let mut words = rest.split_whitespace();
        let count = words.next()?.parse().ok()?;
        Some((words.next()?.to_owned(), count))
    });
    // The suppressions that come with valgrind are about the libraries of the system.
    used.filter(|(name, _)| name.starts_with("public:")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_controls_may_be_found() {
        let finding = |leaky, errors| Finding { case: <[String; 2]>::default(), leaky, errors };
        let cases = [finding(false, 0), finding(false, 1), finding(true, 0), finding(true, 3)];
        assert_eq!(cases.map(|case| case.passes()), [true, false, false, true]);
    }

    #[test]
    fn suppressions_are_counted_from_the_log() {
        let log = "==7== \n--7-- used_suppression:  12 public:norm x.supp:3 suppressed: 1\n\
                   --7-- used_suppression: 2 dl-hack3 /usr/x.supp:4\n";
        assert_eq!(explained(log), [("public:norm".to_owned(), 12)]);
    }

    #[test]
    fn nothing_is_said_outside_of_valgrind() {
        assert!(inside(&[]).is_err());
    }
}
