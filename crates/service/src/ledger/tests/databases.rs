//! What is particular to ledgers in PostgreSQL: URLs, schemas that are refused, servers that go away.

use super::*;

impl Desk {
    /// The name of the database.
    fn database(&self) -> String {
        self.path().to_str().unwrap().rsplit('/').next().unwrap().into()
    }
}

/// A ledger's error in words, which never have the password.
fn refusal(url: &str) -> Error {
    let error = Ledger::open(url).unwrap_err();
    for text in [error.to_string(), format!("{error:?}")] {
        assert!(!text.contains("pass#word") && !text.contains("pass%23word"), "{text}");
    }
    error
}

#[test]
fn urls_are_shown_without_the_password() {
    for (url, shown) in [
        ("ledger.db", "ledger.db"),
        ("postgresql://a:pass%23word@h:1/d?sslmode=disable", "postgresql://a@h:1/d"),
        ("postgres://a:pass%23word@h,i/d", "postgresql://a@h,i/d"),
        ("postgresql:///d?host=/run/p&password=pass%23word", "postgresql://%2Frun%2Fp/d"),
        ("postgresql://a:pass?word@h/d", "postgresql://USER@HOST:PORT/DATABASE"),
    ] {
        assert_eq!(ledger_name(url), shown);
    }
}

#[test]
fn urls_that_say_too_little_or_would_go_in_the_clear_are_refused() {
    let text = |url: &str| match refusal(url) {
        Error::Misuse(text) => text,
        other => panic!("{other:?}"),
    };
    assert!(text("postgresql://a:pass%23word@h/d?nothing=1").contains("cannot be read"));
    assert!(text("postgresql:///d?password=pass%23word").contains("names no host"));
    for url in [
        "postgresql://a:pass%23word@10.0.0.1/d",
        "postgresql://a:pass%23word@localhost,example.org/d",
        "postgresql://a:pass%23word@localhost/d?hostaddr=10.0.0.1",
        "postgresql://a:pass%23word@localhost/d?sslmode=require",
        "postgresql://a:pass%23word@%2Frun/d?sslmode=verify-full",
    ] {
        assert!(text(url).contains("add ?sslrootcert=FILE"), "{url}");
    }
    let file = "sslrootcert=%2Fnone%2Fca.pem";
    assert!(text(&format!("postgresql://a@h/d?{file}")).contains("/none/ca.pem"));
    for url in ["postgresql://a@h/d?sslmode=disable", "postgresql:///d?host=/run"] {
        assert!(text(&format!("{url}&{file}")).contains("asks for TLS"));
    }
    assert!(text("postgresql://a@h/d?sslmode=maybe").contains("sslmode is one of"));
    let nobody = refusal("postgresql://a:pass%23word@127.0.0.1:1/d");
    assert!(matches!(nobody, Error::Unusable { .. }), "{nobody}");
}

#[test]
fn schemas_that_are_no_ledgers_are_refused_and_stay() {
    let Some(cluster) = cluster() else { return };
    let url = cluster.database();
    let name = url.rsplit('/').next().unwrap();
    let path = PathBuf::from(ledger_name(&url));
    let absent = Ledger::open_existing(&url).unwrap_err();
    assert!(matches!(&absent, Error::Misuse(text) if text.ends_with("does not exist")), "{absent}");
    let mut other = cluster.client(name);
    other.batch_execute("CREATE SCHEMA tacit; CREATE TABLE tacit.other (x INT)").unwrap();
    assert_eq!(refusal(&url), Error::Foreign { path: path.clone() });
    other.batch_execute("DROP TABLE tacit.other").unwrap();
    assert!(Ledger::open_existing(&url).is_err());
    // A schema that an administrator has made for a role that may make none.
    drop(Ledger::open(&url).unwrap());
    drop(Ledger::open_existing(&url).unwrap());

    other.batch_execute("UPDATE tacit.ledger SET version = 7").unwrap();
    assert_eq!(refusal(&url), Error::Newer { path: path.clone(), found: 7, known: 1 });
    other.batch_execute("UPDATE tacit.ledger SET version = 0").unwrap();
    assert!(matches!(refusal(&url), Error::Damaged { .. }));
    other.batch_execute("UPDATE tacit.ledger SET version = 1").unwrap();
    other.batch_execute("ALTER TABLE tacit.usage RENAME last TO first").unwrap();
    let damaged = refusal(&url).to_string();
    assert!(damaged.contains("rename its schema `tacit` to begin"), "{damaged}");
}

#[test]
fn a_ledger_that_is_damaged_while_it_is_open_answers_nobody() {
    let Some(cluster) = cluster() else { return };
    let desk = desk_at(cluster);
    desk.charge(1, &total(9), EVENING).unwrap();
    let mut other = cluster.client(&desk.database());
    other.batch_execute("DROP TABLE tacit.tickets").unwrap();
    let error = desk.charge(1, &total(9), EVENING).unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert_eq!(desk.rows(EVENING)[0].used, 1, "nothing of the charge was done");
}

#[test]
fn a_connection_that_died_is_made_anew() {
    let Some(cluster) = cluster() else { return };
    let desk = desk_at(cluster);
    desk.charge(1, &total(9), EVENING).unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = $1 AND pid <> pg_backend_pid()";
    let name = desk.database();
    cluster.client("postgres").query(end, &[&name]).unwrap();
    assert_eq!(desk.charge(1, &total(9), EVENING).unwrap().used, 2);
}

#[test]
fn a_lock_that_another_process_keeps_is_waited_for_no_longer_than_patience() {
    let Some(cluster) = cluster() else { return };
    let desk = desk_at(cluster);
    let name = desk.database();
    let mut other = cluster.client(&name);
    other.batch_execute("BEGIN; LOCK TABLE tacit.usage IN ACCESS EXCLUSIVE MODE").unwrap();
    let error = desk.charge(1, &total(9), EVENING).unwrap_err();
    assert!(error.to_string().ends_with("another process holds it for more than 10 s"), "{error}");
    other.batch_execute("ROLLBACK").unwrap();
    assert_eq!(desk.charge(1, &total(9), EVENING).unwrap().used, 1);
}

#[test]
fn commits_wait_for_the_disk_whatever_the_database_says() {
    let Some(cluster) = cluster() else { return };
    let url = cluster.database();
    let name = url.rsplit('/').next().unwrap();
    let off = format!("ALTER DATABASE {name} SET synchronous_commit TO off");
    cluster.client("postgres").batch_execute(&off).unwrap();
    let ledger = Ledger::open(&url).unwrap();
    let setting = |transaction: &mut dyn Transaction| {
        let sql = "SELECT current_setting('synchronous_commit')";
        transaction.query(sql, &[]).map(|rows| rows[0].text(0).unwrap().unwrap())
    };
    assert_eq!(ledger.write(setting).unwrap(), "on");
    assert_eq!(ledger.write_soon(setting).unwrap(), "off");
    assert_eq!(ledger.write(setting).unwrap(), "on");
}

#[test]
fn passwords_and_authorities_are_checked() {
    let Some(cluster) = cluster() else { return };
    let database = cluster.database();
    let name = database.rsplit('/').next().unwrap();
    let grant = format!("GRANT CREATE ON DATABASE {name} TO secret");
    cluster.client("postgres").batch_execute(&grant).unwrap();
    let url = |password: &str, host: &str, options: &str| {
        format!("postgresql://secret:{password}@{host}:{}/{name}{options}", cluster.port)
    };
    drop(Ledger::open(url("pass%23word", "127.0.0.1", "")).unwrap());
    let authority = format!("?sslrootcert={}/ca.pem", cluster.folder);
    let ledger = Ledger::open(url("pass%23word", "localhost", &authority)).unwrap();
    let encrypted = ledger.write(|transaction| {
        let sql = "SELECT CAST(ssl AS TEXT) FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
        transaction.query(sql, &[]).map(|rows| rows[0].text(0).unwrap().unwrap())
    });
    assert_eq!(encrypted.unwrap(), "true");
    let wrong = refusal(&url("pass%23word2", "localhost", &authority));
    assert!(wrong.to_string().contains("password authentication failed"), "{wrong}");
    // The certificate is for another name, or of another authority.
    let name = refusal(&url("pass%23word", "127.0.0.1", &authority));
    assert!(name.to_string().contains("not valid for name"), "{name}");
    let stranger = tempfile::tempdir().unwrap();
    let pem = stranger.path().join("ca.pem");
    let own = std::process::Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"])
        .args(["-subj", "/CN=stranger", "-keyout", "/dev/null", "-out"])
        .arg(&pem)
        .output()
        .unwrap();
    assert!(own.status.success());
    let options = format!("?sslmode=verify-full&sslrootcert={}", pem.display());
    let stranger = refusal(&url("pass%23word", "localhost", &options));
    assert!(matches!(stranger, Error::Unusable { .. }), "{stranger}");
}
