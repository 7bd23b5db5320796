//! The metrics of all servers of a fleet as one text, each number with its server's name.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One family of numbers: what is said of it, and its samples.
#[derive(Default)]
struct Family {
    about: Vec<String>,
    samples: Vec<String>,
}

/// Joins texts in the OpenMetrics format, each with the name of its server.
pub(crate) fn joined<'a>(texts: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    for (server, text) in texts {
        let mut now = String::new();
        for line in text.lines() {
            if let Some(about) = line.strip_prefix("# ") {
                let mut words = about.splitn(3, ' ');
                if let (Some("HELP" | "TYPE" | "UNIT"), Some(name)) = (words.next(), words.next()) {
                    now = name.into();
                    let family = families.entry(now.clone()).or_default();
                    if !family.about.iter().any(|known| known == line) {
                        family.about.push(line.into());
                    }
                }
            } else if let Some(sample) = labelled(line, server) {
                families.entry(now.clone()).or_default().samples.push(sample);
            }
        }
    }
    let mut all = String::new();
    for family in families.values() {
        for line in family.about.iter().chain(&family.samples) {
            // Writing to a string does not fail.
            let _ = writeln!(all, "{line}");
        }
    }
    all + "# EOF\n"
}

/// A sample with the label of its server, which has no characters that need to be escaped.
fn labelled(line: &str, server: &str) -> Option<String> {
    let (name, rest) = line.split_at_checked(line.find(['{', ' '])?)?;
    Some(match rest.strip_prefix('{') {
        Some(labels) if labels.starts_with('}') => format!("{name}{{server=\"{server}\"{labels}"),
        Some(labels) => format!("{name}{{server=\"{server}\",{labels}"),
        None => format!("{name}{{server=\"{server}\"}}{rest}"),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn families_are_joined_and_samples_named() {
        let one =
            "# HELP a A.\n# TYPE a counter\na_total{m=\"x y\"} 1\n# TYPE b gauge\nb 2\n# EOF\n";
        let two = "# HELP a A.\n# TYPE a counter\na_total{m=\"z\"} 3\na_total{} 4\n# EOF\n";
        let all = joined([("s1", one), ("s2", two)].into_iter());
        let wanted = "# HELP a A.\n# TYPE a counter\na_total{server=\"s1\",m=\"x y\"} 1\n\
            a_total{server=\"s2\",m=\"z\"} 3\na_total{server=\"s2\"} 4\n\
            # TYPE b gauge\nb{server=\"s1\"} 2\n# EOF\n";
        assert_eq!(all, wanted);
    }
}
