//! HTTP for those who watch a server: a few paths, no keep-alive, nothing that a stranger could
//! make large or slow.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Error, Result};

/// Requests that are answered at the same time.
const THREADS: usize = 4;
/// Time for a request and its answer together.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest request, headers included.
const LONGEST: usize = 8192;
const HEADERS: usize = 64;

/// What is answered to a path.
pub(crate) struct Answer {
    pub(crate) status: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn text(status: &'static str, body: impl Into<String>) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: body.into() }
    }
}

/// A listener that answers until it is dropped.
pub(crate) struct Http {
    address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Http {
    /// Answers paths at `listen` (HOST:PORT; port 0 takes any free one).
    ///
    /// # Errors
    /// [`Error::Misuse`] for an address that cannot be bound.
    pub(crate) fn start(
        listen: &str,
        answer: impl Fn(&str) -> Answer + Send + Sync + 'static,
    ) -> Result<Self> {
        let failed = |e| Error::misuse(format!("cannot listen on `{listen}` for metrics: {e}"));
        let listener = TcpListener::bind(listen).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (over, answer) = (Arc::new(AtomicBool::new(false)), Arc::new(answer));
        for _ in 0..THREADS {
            let (listener, over) = (listener.try_clone().map_err(failed)?, over.clone());
            let answer = answer.clone();
            let run = move || {
                while !over.load(Ordering::SeqCst) {
                    match listener.accept() {
                        // A watcher that leaves early misses its answer, and nothing else happens.
                        Ok((stream, _)) => drop(attend(stream, &*answer)),
                        Err(e) if e.kind() == ErrorKind::Interrupted => {}
                        // Out of descriptors, perhaps.
                        Err(_) => thread::sleep(Duration::from_millis(100)),
                    }
                }
            };
            thread::Builder::new().name("tacit-watch".into()).spawn(run).map_err(failed)?;
        }
        Ok(Self { address, over })
    }

    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        for _ in 0..THREADS {
            // Each connection wakes a thread, which sees that it is over.
            drop(TcpStream::connect_timeout(&self.address, PATIENCE));
        }
    }
}

/// Reads one request and answers it.
fn attend(mut stream: TcpStream, answer: &dyn Fn(&str) -> Answer) -> std::io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    let answer = loop {
        if let Some(answer) = respond(&request, answer) {
            break answer;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break Answer::text("408 Request Timeout", "the request took too long\n");
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(()),
            Ok(read) => request.extend_from_slice(part.get(..read).unwrap_or_default()),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(e) => return Err(e),
        }
    };
    let Answer { status, kind, body } = answer;
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

/// What to say to a request as far as it has arrived; nothing while more must come.
fn respond(request: &[u8], answer: &dyn Fn(&str) -> Answer) -> Option<Answer> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    match parsed.parse(request) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if request.len() < LONGEST => return None,
        _ => return Some(Answer::text("400 Bad Request", "this is not a request for metrics\n")),
    }
    if parsed.method != Some("GET") {
        return Some(Answer::text("405 Method Not Allowed", "there is only GET\n"));
    }
    let path = parsed.path.unwrap_or_default();
    Some(answer(path.split('?').next().unwrap_or_default()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn echo(path: &str) -> Answer {
        Answer::text("200 OK", path)
    }

    fn said(request: &[u8]) -> Option<(&'static str, String)> {
        respond(request, &echo).map(|answer| (answer.status, answer.body))
    }

    #[test]
    fn requests_are_answered_when_they_are_whole() {
        let whole = b"GET /metrics?x=1 HTTP/1.1\r\nhost: a\r\n\r\n";
        for length in 0..whole.len() {
            assert_eq!(said(&whole[..length]), None, "{length}");
        }
        assert_eq!(said(whole).unwrap(), ("200 OK", "/metrics".into()));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        assert_eq!(said(b"POST / HTTP/1.1\r\n\r\n").unwrap().0, "405 Method Not Allowed");
        assert_eq!(said(&[0x16, 3, 1, 0, 0]).unwrap().0, "400 Bad Request");
        let endless = [b"GET /", vec![b'a'; LONGEST].as_slice()].concat();
        assert_eq!(said(&endless).unwrap().0, "400 Bad Request");
        let many = [b"GET / HTTP/1.1\r\n".to_vec(), b"a: b\r\n".repeat(HEADERS + 1)].concat();
        assert_eq!(said(&many).unwrap().0, "400 Bad Request");
    }

    #[test]
    fn slow_and_silent_watchers_hold_nobody_up_for_long() {
        let http = Http::start("127.0.0.1:0", echo).unwrap();
        let silent: Vec<_> = (0..2).map(|_| TcpStream::connect(http.address()).unwrap()).collect();
        let mut stream = TcpStream::connect(http.address()).unwrap();
        stream.write_all(b"GET /x HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n/x"));
        let mut late = String::new();
        (&silent[0]).read_to_string(&mut late).unwrap();
        assert!(late.starts_with("HTTP/1.1 408"), "{late}");
    }
}
