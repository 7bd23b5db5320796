//! A log of what was consumed, for tests that nothing is consumed twice.
//!
//! Where the environment variable `TACIT_AUDIT` names a folder when a process begins, the process makes a file of its
//! own there and appends a line for each set of correlations and each ticket that it consumes: a word for its
//! kind and the SHA-256 of its index, in hexadecimal digits. An index is public or known to both parties; values are never
//! written.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// The variable that names the folder.
const VARIABLE: &str = "TACIT_AUDIT";

static LOG: OnceLock<Option<Mutex<File>>> = OnceLock::new();

fn log() -> Option<&'static Mutex<File>> {
    let open = || {
        let folder = std::env::var_os(VARIABLE)?;
        let id = std::process::id();
        // Processes of several machines or containers may have the same number.
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos();
        let name = format!("{id}-{since}.txt");
        let path = Path::new(&folder).join(name);
        let file = OpenOptions::new().create(true).append(true).open(path).ok()?;
        Some(Mutex::new(file))
    };
    LOG.get_or_init(open).as_ref()
}

/// Returns whether this process is audited.
pub fn is_on() -> bool {
    log().is_some()
}

/// Notes correlations as consumed whose session, direction, first position and count have this digest.
pub(crate) fn correlations(places: &[u8; 32]) {
    note("cot", &[places]);
}

/// Notes base OTs of this name as used by a later session.
pub(crate) fn kept(name: &[u8; 32]) {
    note("kept", &[name]);
}

/// Notes a ticket as redeemed.
pub fn ticket(id: &[u8; 16]) {
    note("ticket", &[id]);
}

fn note(kind: &str, parts: &[&[u8]]) {
    let Some(log) = log() else { return };
    let mut digest = Sha256::new().chain_update(kind.as_bytes());
    for part in parts {
        digest.update(part);
    }
    let line = format!("{kind} {}\n", hexadecimal(&digest.finalize()));
    // A log that cannot be written shows fewer lines than the other party's, which the tests see.
    let _ = log.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
