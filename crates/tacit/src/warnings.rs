//! What an operator should know of a server's options before clients come.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use graph::Model;
use runtime::Reveal;
use service::{Access, Policy};
use wire::{Identity, Result};

use crate::serving::{ModelOptions, ServeOptions};

/// A certificate that ends sooner than this is worth a warning.
const SOON: Duration = Duration::from_secs(30 * DAY);
const DAY: u64 = 24 * 3600;

/// What is legal and yet seldom meant, in whole sentences.
///
/// # Errors
/// [`wire::Error::Misuse`] for a certificate that cannot be read.
pub(crate) fn of(
    options: &ServeOptions,
    models: &[(Model, ModelOptions)],
    policy: &Policy,
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let Some(files) = &options.tls else { return Ok(found) };
    if let (Some(certificate), Some(key)) = (&files.certificate, &files.key) {
        let expiry = Identity::from_files(certificate, key)?.expiry();
        found.extend(expiry.and_then(|end| ending(certificate, end, SystemTime::now())));
        found.extend(open_to_others(key));
    }
    if let Some(tokens) = &policy.tokens {
        let file = options.tokens.as_deref().unwrap_or_default();
        if tokens.writable_by_others() {
            found.push(format!("others may write `{file}` and so admit clients: chmod 600"));
        } else if tokens.readable_by_others() {
            found.push(format!("others may read in `{file}` who the clients are: chmod 600"));
        }
    }
    let shows_all = |own: &ModelOptions| own.reveal.unwrap_or(options.reveal) == Reveal::Output;
    let copied = policy.ledger.is_none() && !options.once;
    if copied && models.iter().any(|(_, own)| shows_all(own)) {
        found.push(
            "clients get all outputs and may ask without end, which suffices to copy a model: \
             see --reveal label, and --ledger with --budget"
                .into(),
        );
    }
    Ok(found)
}

/// Revocation lists of which one is over soon: nobody is admitted then.
pub(crate) fn revocation(access: &Access) -> Option<String> {
    let Access::Tls(tls) = access else { return None };
    let left = tls.revocation_expiry()?.duration_since(SystemTime::now()).unwrap_or_default();
    let hours = left.as_secs() / 3600;
    (left < Duration::from_secs(DAY)).then(|| {
        format!(
            "a revocation list of clients is over in {hours} hour(s), and nobody is admitted then: \
             put the next one in its place and send SIGHUP"
        )
    })
}

/// A certificate whose time is over, or nearly.
fn ending(file: &str, end: SystemTime, now: SystemTime) -> Option<String> {
    match end.duration_since(now) {
        Ok(left) if left > SOON => None,
        Ok(left) => {
            let days = left.as_secs() / DAY;
            Some(format!("the certificate in `{file}` expires in {days} day(s)"))
        }
        Err(_) => Some(format!("the certificate in `{file}` has expired: clients refuse it")),
    }
}

/// A private key that others than its owner may read.
fn open_to_others(file: &str) -> Option<String> {
    let mode = fs::metadata(file).ok()?.permissions().mode();
    (mode & 0o077 != 0).then(|| format!("others may read the private key in `{file}`: chmod 600"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_are_told_of_when_they_end_soon() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 * DAY);
        let after = |days: u64| ending("c.pem", now + Duration::from_secs(days * DAY), now);
        assert_eq!(after(31), None);
        assert_eq!(after(3).unwrap_or_default(), "the certificate in `c.pem` expires in 3 day(s)");
        let over = ending("c.pem", now - Duration::from_secs(1), now).unwrap_or_default();
        assert!(over.contains("has expired"), "{over}");
    }
}
