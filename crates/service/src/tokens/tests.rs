//! Files of tokens, their mistakes, and new tokens.

#![allow(clippy::unwrap_used)]

use super::*;

/// A file with this text.
fn written(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

fn hash(token: &str) -> String {
    hexadecimal(&Sha256::digest(token))
}

#[test]
fn tokens_are_identified_by_their_hash() {
    let (first, second) = (hash("one"), hash("two"));
    let text = format!("# wards\n\n  ward-1:{first}\nward-2 : {second} : reveal=label\n");
    let file = written(&text);
    let tokens = Tokens::from_file(file.path()).unwrap();
    assert_eq!(tokens.entries().len(), 2);
    let one = tokens.identify(b"one").unwrap();
    assert_eq!((one.name(), one.reveal()), ("ward-1", None));
    let two = tokens.identify(b"two").unwrap();
    assert_eq!((two.client().key().as_str(), two.reveal()), ("token:ward-2", Some(Reveal::Label)));
    for none in [&b""[..], b"three", b"one ", first.as_bytes()] {
        assert_eq!(tokens.identify(none), None);
    }
}

#[test]
fn mistakes_name_the_file_and_the_line() {
    let good = hash("one");
    let other = hash("two");
    let cases = [
        ("ward", "line 2: a line is NAME:HASH"),
        (&format!("ward 3:{other}"), "line 2: a name has"),
        (":0", "line 2: a name has"),
        ("b:secret-by-mistake", "line 2: the hash is no SHA-256"),
        (&format!("b:+{}", &other[1..]), "line 2: the hash is no SHA-256"),
        (&format!("a:{other}"), "line 2: `a` is in line 1 already"),
        (&format!("b:{good}"), "line 2: the token is that of line 1"),
        (
            &format!("b:{other}:reveal=all"),
            "reveal is output, label, probability or bucket, not `all`",
        ),
        (&format!("b:{other}:reveal"), "reveal is output"),
        (&format!("b:{other}:limit=3"), "line 2: `limit` is no setting"),
        (&format!("b:{other}:reveal=label reveal=label"), "`reveal` is given twice"),
    ];
    for (line, expected) in cases {
        let file = written(&format!("a:{good}\n{line}\n"));
        let error = Tokens::from_file(file.path()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("/"), "{line}: {error}");
        assert!(!error.contains("secret-by-mistake"));
    }
    let empty = written("# nobody\n");
    assert!(Tokens::from_file(empty.path()).unwrap_err().to_string().contains("has no token"));
    assert!(Tokens::from_file("/nowhere").unwrap_err().to_string().contains("/nowhere"));
}

#[test]
fn new_tokens_are_accepted_and_differ() {
    let made = [
        generate_token("a", None).unwrap(),
        generate_token("b", Some(Reveal::Output)).unwrap(),
        generate_token("c", Some(Reveal::Probability)).unwrap(),
    ];
    let lines: Vec<&str> = made.iter().map(|new| new.line.as_str()).collect();
    let tokens = Tokens::from_file(written(&lines.join("\n")).path()).unwrap();
    let names = made.iter().map(|new| tokens.identify(new.token.as_bytes()).unwrap().name());
    assert_eq!(names.collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(tokens.entries()[2].reveal(), Some(Reveal::Probability));
    assert!(!format!("{:?}", made[0]).contains(made[0].token.as_str()));
    assert!(generate_token("a:b", None).unwrap_err().to_string().contains("cannot name a token"));
}

#[cfg(unix)]
#[test]
fn files_open_to_others_are_told() {
    use std::os::unix::fs::PermissionsExt;
    let file = written(&format!("a:{}", hash("one")));
    for (mode, readable, writable) in
        [(0o600, false, false), (0o640, false, false), (0o644, true, false), (0o660, false, true)]
    {
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        let tokens = Tokens::from_file(file.path()).unwrap();
        let told = (tokens.readable_by_others(), tokens.writable_by_others());
        assert_eq!(told, (readable, writable), "{mode:o}");
    }
}
