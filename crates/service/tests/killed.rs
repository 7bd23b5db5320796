//! A server that is killed at any moment has never given an answer that was not charged, and two
//! processes together never give more than a budget.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod postgresql;

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use tacit_service::{Budget, Charged, Chosen, Client, Error, Ledger};

/// Names the folder of a child of these tests.
const FOLDER: &str = "TACIT_TEST_KILLED";
/// Names its ledger.
const LEDGER: &str = "TACIT_TEST_LEDGER";
const MODEL: &str = "mnist";
/// Inputs in all, where no test sets another limit.
const TOTAL: u64 = 300;
const PATIENCE: Duration = Duration::from_secs(10);

/// Charges one input.
fn charge(ledger: &Ledger) -> Result<Charged, Error> {
    let default = Budget { total: Some(TOTAL), ..Budget::default() };
    ledger.charge(&client(), MODEL, 1, &default, SystemTime::now())
}

fn client() -> Client {
    Client::Token("ward-3".into())
}

/// Answers inputs one at a time until the budget is used up: charges, then writes a byte in the
/// place of the answer. Does nothing unless another test here started it as a process.
#[test]
fn server_process() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = Path::new(&folder);
    let answers = folder.join(format!("answers-{}", std::process::id()));
    let mut answers = OpenOptions::new().create(true).append(true).open(answers).unwrap();
    let ledger = Ledger::open(std::env::var(LEDGER).unwrap()).unwrap();
    loop {
        match charge(&ledger) {
            Ok(_) => answers.write_all(b".").unwrap(),
            Err(Error::Refused(_)) => return,
            Err(error) => panic!("{error}"),
        }
    }
}

fn start(folder: &Path, ledger: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "server_process", "--nocapture"]);
    command.env(FOLDER, folder).env(LEDGER, ledger);
    command.stdout(Stdio::null()).spawn().unwrap()
}

/// Answers that left any process.
fn answered(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let answers = files.filter(|file| file.file_name().to_str().unwrap().starts_with("answers-"));
    answers.map(|file| file.metadata().unwrap().len()).sum()
}

fn used(ledger: &Ledger) -> u64 {
    let rows = ledger.show(&Chosen::default(), SystemTime::now()).unwrap();
    rows.first().map_or(0, |row| row.used)
}

fn allow(ledger: &Ledger, total: u64) {
    let budget = Budget { total: Some(total), ..Budget::default() };
    ledger.set(&client(), MODEL, &budget).unwrap();
}

/// Waits until more than `before` answers have left.
fn wait_for_answers(folder: &Path, before: u64) {
    let deadline = Instant::now() + PATIENCE;
    while answered(folder) <= before {
        assert!(Instant::now() < deadline, "no answer in {} s", PATIENCE.as_secs());
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Runs a test with a folder and the place of a ledger: a file, and a database of PostgreSQL.
macro_rules! both {
    ($($test:ident),+) => {
        $(mod $test {
            #[test]
            fn sqlite() {
                let folder = tempfile::tempdir().unwrap();
                super::$test(folder.path(), &folder.path().join("ledger"));
            }

            #[test]
            fn postgresql() {
                if let Some(cluster) = super::postgresql::cluster() {
                    let folder = tempfile::tempdir().unwrap();
                    super::$test(folder.path(), cluster.database().as_ref());
                }
            }
        })+
    };
}

both!(
    no_answer_is_free_when_the_server_is_killed,
    processes_and_threads_that_race_never_exceed_a_budget
);

fn no_answer_is_free_when_the_server_is_killed(folder: &Path, file: &Path) {
    const KILLS: u64 = 30;
    allow(&Ledger::open(file).unwrap(), 1_000_000);
    for kill in 1..=KILLS {
        let before = answered(folder);
        let mut server = start(folder, file);
        // Some die before they answer, while they open the ledger.
        if kill % 3 != 0 {
            wait_for_answers(folder, before);
        }
        let mut random = [0; 2];
        getrandom::fill(&mut random).unwrap();
        std::thread::sleep(Duration::from_micros(u64::from(u16::from_le_bytes(random))));
        server.kill().unwrap();
        server.wait().unwrap();
        let (used, answered) = (used(&Ledger::open(file).unwrap()), answered(folder));
        // What each kill may cost the client is the one input that was on its way.
        assert!((answered..=answered + kill).contains(&used), "{used} used, {answered} answered");
    }
    let ledger = Ledger::open(file).unwrap();
    let most = used(&ledger) + 25;
    allow(&ledger, most);
    for _ in 0..2 {
        assert!(start(folder, file).wait().unwrap().success());
        let answered = answered(folder);
        assert_eq!(used(&ledger), most);
        assert!((most - KILLS..=most).contains(&answered), "{answered} of {most}");
    }
}

fn processes_and_threads_that_race_never_exceed_a_budget(folder: &Path, file: &Path) {
    // They also race for who makes the file.
    let servers = [start(folder, file), start(folder, file)];
    let ledger = Ledger::open(file).unwrap();
    let charge_all = || (0..).take_while(|_: &u64| charge(&ledger).is_ok()).count() as u64;
    let mine: u64 = std::thread::scope(|scope| {
        let threads = [scope.spawn(charge_all), scope.spawn(charge_all)];
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    for mut server in servers {
        assert!(server.wait().unwrap().success());
    }
    assert_eq!((mine + answered(folder), used(&ledger)), (TOTAL, TOTAL));
}
