//! Ledgers in folders and databases that go with the test.

#![allow(clippy::unwrap_used, clippy::panic)]

/// Makes two tests of each function, which gets an empty ledger: one in a file, and one in PostgreSQL.
macro_rules! both {
    ($($test:ident),+ $(,)?) => {
        $(mod $test {
            #[test]
            fn sqlite() {
                super::$test(&super::desk());
            }

            #[test]
            fn postgresql() {
                if let Some(cluster) = super::cluster() {
                    super::$test(&super::desk_at(cluster));
                }
            }
        })+
    };
}

#[path = "../../tests/postgresql/mod.rs"]
mod cluster;
mod databases;
mod files;
mod limits;
mod operators;
mod tickets;

use std::path::PathBuf;
use std::time::Duration;

use self::cluster::{Cluster, cluster};
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

/// A ledger in a folder or a database that goes with the test.
struct Desk {
    folder: tempfile::TempDir,
    place: PathBuf,
    cluster: Option<&'static Cluster>,
    ledger: Ledger,
}

/// A ledger in a file.
fn desk() -> Desk {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("l.db");
    Desk { ledger: Ledger::open(&place).unwrap(), folder, place, cluster: None }
}

/// A ledger in a database of its own.
fn desk_at(cluster: &'static Cluster) -> Desk {
    let folder = tempfile::tempdir().unwrap();
    let place = PathBuf::from(cluster.database());
    Desk { ledger: Ledger::open(&place).unwrap(), folder, place, cluster: Some(cluster) }
}

impl Desk {
    fn path(&self) -> PathBuf {
        self.place.clone()
    }

    /// Where there is no ledger yet.
    fn another(&self) -> PathBuf {
        let file = || self.folder.path().join("other.db");
        self.cluster.map_or_else(file, |cluster| cluster.database().into())
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
