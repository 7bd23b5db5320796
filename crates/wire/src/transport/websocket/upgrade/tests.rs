use super::*;

const KEY: &str = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";

fn request(lines: &[&str]) -> Vec<u8> {
    let usual = ["GET / HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket", KEY];
    let all: Vec<&str> =
        usual.iter().chain(&["Sec-WebSocket-Version: 13"]).chain(lines).copied().collect();
    format!("{}\r\n\r\n", all.join("\r\n")).into_bytes()
}

fn upgrade(origins: &[&str], local: bool, bytes: &[u8]) -> Upgraded {
    let named: Vec<String> = origins.iter().map(|origin| (*origin).to_string()).collect();
    let mut upgrade = Upgrade::new(Origins::new(&named).unwrap(), local);
    bytes.iter().find_map(|byte| upgrade.advance(&[*byte])).unwrap()
}

fn refused(origins: &[&str], local: bool, bytes: &[u8]) -> String {
    let (response, error) = upgrade(origins, local, bytes).unwrap_err();
    let response = String::from_utf8(response).unwrap();
    assert!(matches!(error, Error::Peer { .. }) && response.contains(&error.to_string()));
    response
}

#[test]
fn requests_of_programs_and_own_pages_are_accepted() {
    for lines in [
        vec!["Host: example.org:7000"],
        vec!["Host: example.org:7000", "Origin: https://example.org"],
        vec!["host: Example.org", "origin: https://example.ORG:8443"],
    ] {
        let (response, rest) = upgrade(&[], false, &request(&lines)).unwrap();
        let response = String::from_utf8(response).unwrap().to_lowercase();
        assert!(response.starts_with("http/1.1 101 ") && response.ends_with("\r\n\r\n"));
        assert!(response.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="));
        assert!(rest.is_empty());
    }
}

#[test]
fn what_follows_a_request_is_kept() {
    let bytes = [request(&["Host: a"]), vec![0x82, 0]].concat();
    let mut upgrade = Upgrade::new(Origins::default(), false);
    let (_, rest) = upgrade.advance(&bytes).unwrap().unwrap();
    assert_eq!(*rest, [0x82, 0]);
}

#[test]
fn other_pages_are_refused() {
    let page = |origin: &str| request(&["Host: example.org", &format!("Origin: {origin}")]);
    for origin in ["https://evil.org", "https://example.org.evil.org", "null", "", "example.org"] {
        assert!(refused(&[], false, &page(origin)).starts_with("HTTP/1.1 403 "), "{origin}");
    }
    let named = ["https://shop.org", "https://test.org:8443"];
    assert!(upgrade(&named, false, &page("https://shop.org")).is_ok());
    assert!(upgrade(&named, false, &page("https://test.org:8443")).is_ok());
    for origin in ["https://example.org", "http://shop.org", "https://test.org"] {
        assert!(refused(&named, false, &page(origin)).contains("--origin"), "{origin}");
    }
    let twice = request(&["Host: a", "Origin: https://a", "Origin: https://b"]);
    assert!(refused(&[], false, &twice).contains("several"));
}

#[test]
fn in_plaintext_only_this_machine_is_named() {
    for host in ["localhost:7000", "127.0.0.1", "[::1]:80", "127.8.0.1:1"] {
        assert!(upgrade(&[], true, &request(&[&format!("Host: {host}")])).is_ok(), "{host}");
    }
    for host in ["evil.org:7000", "localhost.evil.org", "10.0.0.1", "127.0.0.1.evil.org"] {
        let page = request(&[&format!("Host: {host}"), &format!("Origin: http://{host}")]);
        assert!(refused(&[], true, &page).contains("localhost"), "{host}");
    }
}

#[test]
fn garbage_is_answered() {
    for garbage in [&b"\x16\x03\x01 hello"[..], b"POST\n\n\n", b"GET / HTTP/9.9\r\n\r\n"] {
        assert!(refused(&[], false, garbage).starts_with("HTTP/1.1 400 "));
    }
    let browsing = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert!(refused(&[], false, browsing).starts_with("HTTP/1.1 426 "));
    let posting = String::from_utf8(request(&["Host: a"])).unwrap().replace("GET", "POST");
    assert!(refused(&[], false, posting.as_bytes()).starts_with("HTTP/1.1 400 "));
    assert!(refused(&[], false, &request(&[])).contains("without a host"));
    let endless = [b"GET / HTTP/1.1\r\nHost: ".to_vec(), vec![b'a'; MOST_REQUEST]].concat();
    assert!(refused(&[], false, &endless).starts_with("HTTP/1.1 431 "));
    let headers = vec!["a: b"; 200];
    assert!(refused(&[], false, &request(&headers)).starts_with("HTTP/1.1 400 "));
}

#[test]
fn origins_are_checked() {
    for origin in ["example.org", "https://", "https://a/path", "*", "https://a b", "ftp://a"] {
        assert!(matches!(Origins::new(&[origin.into()]), Err(Error::Misuse(_))), "{origin}");
    }
    assert!(Origins::new(&["http://[::1]:80".into(), "https://a-b.c".into()]).is_ok());
}
