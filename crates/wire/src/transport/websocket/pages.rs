//! Files that a server shows to browsers which ask for a page instead of a WebSocket: a table that is made
//! when the server starts. What a browser says is looked up in it and reaches no file system.

use std::collections::HashMap;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// Headers of a request, at most.
const HEADERS: usize = 64;
/// Bytes that are written at a time.
const PIECE: usize = 1 << 14;
/// What every response says: the page is cross-origin isolated (shared memory needs that), runs nothing but its own
/// files, talks to its own server alone, and is shown in no frame. Browsers ask again whether a file is as it was.
const HEAD: &str = "Connection: close\r\nCache-Control: no-cache\r\nVary: Accept-Encoding\r\n\
    Cross-Origin-Opener-Policy: same-origin\r\nCross-Origin-Embedder-Policy: require-corp\r\n\
    Cross-Origin-Resource-Policy: same-origin\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; \
    connect-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self' blob:; base-uri 'none'; \
    form-action 'none'; frame-ancestors 'none'\r\n\
    Permissions-Policy: camera=(self), microphone=(), geolocation=()\r\n\
    Referrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n";

/// One file of a page.
#[derive(Clone, Debug)]
pub struct PageFile {
    /// Where it is asked for, such as `/main.js`.
    pub path: String,
    /// Its media type.
    pub kind: String,
    /// Its bytes.
    pub body: Vec<u8>,
    /// The same, compressed by gzip, for browsers that say they take it.
    pub packed: Option<Vec<u8>>,
}

/// The files that a server shows.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    files: Arc<HashMap<String, Shown>>,
}

/// A file as it is sent.
#[derive(Debug)]
struct Shown {
    kind: String,
    tag: String,
    body: Arc<[u8]>,
    packed: Option<Arc<[u8]>>,
}

impl Pages {
    /// Makes the table of `files`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for a path or a media type that cannot stand in HTTP, and for two files of one path.
    pub fn new(files: Vec<PageFile>) -> Result<Self> {
        let mut table = HashMap::new();
        for PageFile { path, kind, body, packed } in files {
            let is_plain =
                path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#%".contains(&byte));
            if !path.starts_with('/') || !is_plain {
                return Err(Error::misuse(format!("`{path}` is no path of a page")));
            }
            if !kind.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
                return Err(Error::misuse(format!("`{kind}` is no media type")));
            }
            let digest = Sha256::digest(&body);
            let tag = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
            let shown = Shown { kind, tag, body: body.into(), packed: packed.map(Into::into) };
            if table.insert(path.clone(), shown).is_some() {
                return Err(Error::misuse(format!("two files of a page are called `{path}`")));
            }
        }
        Ok(Self { files: Arc::new(table) })
    }

    /// What to send to a request for a page; `None` for one that is not whole, has another method, asks for a
    /// WebSocket, or does not name a host that `knows` takes.
    pub(crate) fn answer(&self, bytes: &[u8], knows: impl Fn(&str) -> bool) -> Option<Sending> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut request = httparse::Request::new(&mut headers);
        if !matches!(request.parse(bytes), Ok(httparse::Status::Complete(_))) {
            return None;
        }
        let header = |name: &str| {
            let mut all = request.headers.iter().filter(|one| one.name.eq_ignore_ascii_case(name));
            let value = all.next().and_then(|one| std::str::from_utf8(one.value).ok());
            value.filter(|_| all.next().is_none())
        };
        let has_body = request.method == Some("GET");
        if header("upgrade").is_some()
            || !(has_body || request.method == Some("HEAD"))
            || !header("host").is_some_and(knows)
        {
            return None;
        }
        let path = request.path?.split('?').next().unwrap_or_default();
        let Some(file) = self.files.get(path) else {
            return Some(Sending::text(
                "404 Not Found",
                "this server has no such file\n",
                has_body,
            ));
        };
        let takes = |name| move |one: &str| one.split(';').next().map(str::trim) == Some(name);
        let unpacks =
            header("accept-encoding").is_some_and(|all| all.split(',').any(takes("gzip")));
        let packed = file.packed.as_ref().filter(|_| unpacks);
        let (body, coding) = match packed {
            Some(packed) => (packed, "Content-Encoding: gzip\r\n"),
            None => (&file.body, ""),
        };
        let tag = format!("\"{}{}\"", file.tag, if packed.is_some() { "-gzip" } else { "" });
        let known = header("if-none-match").is_some_and(|all| {
            all.split(',').any(|one| one.trim().trim_start_matches("W/") == tag)
        });
        if known {
            let head = format!("HTTP/1.1 304 Not Modified\r\nETag: {tag}\r\n{HEAD}\r\n");
            return Some(Sending::new(head, Arc::default()));
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {}\r\nContent-Length: {}\r\n{coding}ETag: {tag}\r\n{HEAD}\r\n",
            file.kind,
            body.len()
        );
        Some(Sending::new(head, if has_body { body.clone() } else { Arc::default() }))
    }
}

/// A response that is being sent.
pub(crate) struct Sending {
    head: Vec<u8>,
    body: Arc<[u8]>,
    sent: usize,
}

impl Sending {
    fn new(head: String, body: Arc<[u8]>) -> Self {
        Self { head: head.into_bytes(), body, sent: 0 }
    }

    fn text(status: &str, text: &str, has_body: bool) -> Self {
        let kind = "text/plain; charset=utf-8";
        let length = text.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{HEAD}\r\n"
        );
        Self::new(head, if has_body { text.as_bytes().into() } else { Arc::default() })
    }

    /// The bytes that come next; none when all are sent.
    pub(crate) fn next(&self) -> &[u8] {
        let body = self.sent.checked_sub(self.head.len());
        let rest = match body {
            None => self.head.get(self.sent..),
            Some(sent) => self.body.get(sent..),
        };
        let rest = rest.unwrap_or_default();
        rest.get(..PIECE).unwrap_or(rest)
    }

    /// Notes that the first `count` of them are on their way.
    pub(crate) const fn pass(&mut self, count: usize) {
        self.sent += count;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;
