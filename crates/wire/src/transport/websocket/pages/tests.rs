use super::*;

fn pages() -> Pages {
    let file = |path: &str, kind: &str, body: &[u8], packed: Option<&[u8]>| PageFile {
        path: path.into(),
        kind: kind.into(),
        body: body.to_vec(),
        packed: packed.map(<[u8]>::to_vec),
    };
    let long = vec![7; 3 * PIECE + 1];
    Pages::new(vec![
        file("/", "text/html; charset=utf-8", b"<!doctype html>", None),
        file("/long.wasm", "application/wasm", &long, Some(b"packed")),
    ])
    .unwrap()
}

fn asked(request: &str) -> Option<(String, Vec<u8>)> {
    let mut sending = pages().answer(request.as_bytes(), |host| host == "localhost")?;
    let mut all = Vec::new();
    while !sending.next().is_empty() {
        let count = sending.next().len().min(1000);
        all.extend_from_slice(&sending.next()[..count]);
        sending.pass(count);
    }
    let end = all.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let body = all.split_off(end);
    Some((String::from_utf8(all).unwrap(), body))
}

fn get(path: &str, more: &str) -> (String, Vec<u8>) {
    asked(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n")).unwrap()
}

#[test]
fn files_are_sent_whole_and_isolated() {
    let (head, body) = get("/", "");
    assert!(head.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"));
    assert!(head.contains("Content-Length: 15\r\n") && body == b"<!doctype html>");
    for line in [
        "Cross-Origin-Opener-Policy: same-origin\r\n",
        "Cross-Origin-Embedder-Policy: require-corp\r\n",
        "Content-Security-Policy: default-src 'none';",
        "X-Content-Type-Options: nosniff\r\n",
    ] {
        assert!(head.contains(line), "{line}");
    }
    assert_eq!(get("/long.wasm?v=1", "").1, vec![7; 3 * PIECE + 1]);
}

#[test]
fn browsers_that_unpack_get_packed_files() {
    for said in ["gzip", "br, gzip;q=0.5"] {
        let (head, body) = get("/long.wasm", &format!("Accept-Encoding: {said}\r\n"));
        assert!(head.contains("Content-Encoding: gzip\r\nETag") && body == b"packed");
    }
    assert!(!get("/long.wasm", "Accept-Encoding: br\r\n").0.contains("Encoding: gzip"));
    assert!(!get("/", "Accept-Encoding: gzip\r\n").0.contains("Encoding: gzip"));
}

#[test]
fn files_that_are_known_are_not_sent_again() {
    let (head, _) = get("/", "");
    let tag = head.split("ETag: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let (head, body) = get("/", &format!("If-None-Match: \"other\", W/{tag}\r\n"));
    assert!(head.starts_with("HTTP/1.1 304 ") && body.is_empty());
    assert!(get("/", "If-None-Match: \"other\"\r\n").0.starts_with("HTTP/1.1 200 "));
}

#[test]
fn other_paths_are_not_found() {
    for path in ["/x", "/../etc/passwd", "//", "/long.wasm/", "/%2e%2e/", "/LONG.wasm"] {
        assert!(get(path, "").0.starts_with("HTTP/1.1 404 "), "{path}");
    }
}

#[test]
fn heads_come_without_bodies() {
    let (head, body) = asked("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert!(head.contains("200 OK") && head.contains("Content-Length: 15") && body.is_empty());
    let (head, body) = asked("HEAD /x HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    assert!(head.contains("404") && body.is_empty());
}

#[test]
fn other_requests_are_not_for_pages() {
    let host = "Host: localhost\r\n";
    for request in [
        format!("POST / HTTP/1.1\r\n{host}\r\n"),
        format!("GET / HTTP/1.1\r\n{host}Upgrade: websocket\r\n\r\n"),
        format!("GET / HTTP/1.1\r\n{host}"),
        format!("GET / HTTP/1.1\r\n{host}{host}\r\n"),
        "GET / HTTP/1.1\r\nHost: evil.org\r\n\r\n".into(),
        "GET / HTTP/1.1\r\n\r\n".into(),
        format!("GET / HTTP/1.1\r\n{host}{}\r\n", "a: b\r\n".repeat(HEADERS)),
        "\r\n".into(),
    ] {
        assert!(asked(&request).is_none(), "{request}");
    }
}

#[test]
fn tables_that_cannot_be_are_refused() {
    let file = |path: &str, kind: &str| PageFile {
        path: path.into(),
        kind: kind.into(),
        body: Vec::new(),
        packed: None,
    };
    for path in ["", "x", "/a b", "/a\r\nb", "/?", "/é"] {
        assert!(Pages::new(vec![file(path, "text/css")]).is_err(), "{path}");
    }
    assert!(Pages::new(vec![file("/", "text/css\r\nSet-Cookie: a")]).is_err());
    assert!(Pages::new(vec![file("/", "a"), file("/", "b")]).is_err());
}

proptest::proptest! {
    #[test]
    fn no_bytes_are_too_strange(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300), at in 0..60_usize) {
        let pages = pages();
        let _ = pages.answer(&bytes, |_| true);
        let mut request = b"GET /long.wasm HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n".to_vec();
        request.splice(at..at, bytes);
        if let Some(sending) = pages.answer(&request, |_| true) {
            proptest::prop_assert!(sending.next().starts_with(b"HTTP/1.1 "));
        }
    }
}
