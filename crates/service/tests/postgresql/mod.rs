//! A PostgreSQL that goes with the process of a test.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use postgres::{Client, NoTls};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/postgresql/cluster.sh");

/// A server that runs as long as its input is open, so that it ends however this process does.
pub(crate) struct Cluster {
    pub(crate) folder: String,
    pub(crate) port: u16,
    _process: Child,
}

/// The server of this process, or `None` with a word about it where PostgreSQL is not installed.
pub(crate) fn cluster() -> Option<&'static Cluster> {
    static CLUSTER: OnceLock<Option<Cluster>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(start).as_ref();
    if cluster.is_none() {
        eprintln!("skipped: PostgreSQL (initdb, postgres, psql) is not installed");
    }
    cluster
}

fn start() -> Option<Cluster> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new("sh");
    command.args([SCRIPT, &port.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let mut folder = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut folder).unwrap();
    let folder = folder.trim().to_owned();
    if folder.starts_with('/') {
        return Some(Cluster { folder, port, _process: process });
    }
    process.wait().unwrap();
    assert_eq!(folder, "absent", "PostgreSQL is installed and does not start: see {SCRIPT}");
    None
}

impl Cluster {
    /// The URL of a new database, by the socket.
    pub(crate) fn database(&self) -> String {
        static DATABASES: AtomicUsize = AtomicUsize::new(0);
        let name = format!("d{}", DATABASES.fetch_add(1, Ordering::SeqCst));
        let mut client = self.client("postgres");
        client.batch_execute(&format!("CREATE DATABASE {name} OWNER tacit")).unwrap();
        self.url(&name)
    }

    /// The URL of a database, by the socket.
    pub(crate) fn url(&self, database: &str) -> String {
        let folder = self.folder.replace('/', "%2F");
        format!("postgresql://tacit@{folder}:{}/{database}", self.port)
    }

    /// A connection to a database.
    pub(crate) fn client(&self, database: &str) -> Client {
        Client::connect(&self.url(database), NoTls).unwrap()
    }
}
