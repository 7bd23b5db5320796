//! Ledgers in folders that go with the test.

#![allow(clippy::unwrap_used, clippy::panic)]

mod files;
mod limits;
mod operators;
mod tickets;

use std::time::Duration;

use super::*;

const DAY: u64 = 24 * 3600;
/// Some day at 19:00.
const EVENING: u64 = 20_000 * DAY + 19 * 3600;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

fn ward() -> Client {
    Client::Token("ward-3".into())
}

fn total(inputs: u64) -> Budget {
    Budget { total: Some(inputs), ..Budget::default() }
}

fn per_day(inputs: u64) -> Budget {
    Budget { per_day: Some(inputs), ..Budget::default() }
}

fn per_minute(inputs: u64) -> Budget {
    Budget { per_minute: Some(inputs), ..Budget::default() }
}

/// A ledger in a folder that goes with the test.
struct Desk {
    folder: tempfile::TempDir,
    ledger: Ledger,
}

fn desk() -> Desk {
    let folder = tempfile::tempdir().unwrap();
    Desk { ledger: Ledger::open(folder.path().join("l.db")).unwrap(), folder }
}

impl Desk {
    fn path(&self) -> PathBuf {
        self.folder.path().join("l.db")
    }

    /// Charges ward-3 for inputs of mnist.
    fn charge(&self, inputs: u64, budget: &Budget, now: u64) -> Result<Charged> {
        self.ledger.charge(&ward(), "mnist", inputs, budget, at(now))
    }

    /// The refusal of a charge.
    fn refused(&self, inputs: u64, budget: &Budget, now: u64) -> Refused {
        match self.charge(inputs, budget, now) {
            Err(Error::Refused(refused)) => refused,
            other => panic!("{other:?}"),
        }
    }

    fn rows(&self, now: u64) -> Vec<Row> {
        self.ledger.show(&Chosen::default(), at(now)).unwrap()
    }
}
