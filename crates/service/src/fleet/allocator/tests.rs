//! Browsers at a door, over sockets.

use std::io::{Read, Write};
use std::net::Shutdown;

use runtime::{PROTOCOL, Reveal};
use wire::fleet::{Amount, Ticket};
use wire::{Origins, decode_frame, tags};

use super::*;
use crate::fleet::talk::{Beat, Join, ModelNews};
use crate::options::WebSocketOptions;
use crate::tokens::hexadecimal;

const RUN: [u8; 16] = [7; 16];

/// A door that runs until it is dropped, for pages of one origin.
struct Running {
    allocator: Arc<Allocator>,
    thread: Option<thread::JoinHandle<Result<()>>>,
    _folder: tempfile::TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.allocator.stop();
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

fn running(relay: Relay) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let listen = || "127.0.0.1:0".to_string();
    let origins = Origins::new(&["https://shop.org".into()]).unwrap();
    let allocator = Allocator::bind(AllocatorOptions {
        listen: listen(),
        websocket: Some(WebSocketOptions { listen: listen(), origins }),
        control: listen(),
        access: Access::Plaintext,
        control_tls: None,
        secret: folder.path().join("secret"),
        policy: Policy::default(),
        relay,
        queue: 0,
        ticket_seconds: 30,
        metrics: None,
    });
    let allocator = Arc::new(allocator.unwrap());
    let door = allocator.clone();
    let thread = Some(thread::spawn(move || door.run()));
    Running { allocator, thread, _folder: folder }
}

impl Running {
    /// Has a server join whose WebSockets are at this address.
    fn join(&self, websocket: Option<&str>) {
        let model = ModelNews {
            name: "a".into(),
            graph_digest: String::new(),
            values: 4,
            batch: 1,
            reveals: vec![Reveal::Output],
            budget: None,
        };
        let join = Join {
            server: "one".into(),
            run: hexadecimal(&RUN),
            address: "10.0.0.1:7000".into(),
            websocket: websocket.map(Into::into),
            models: vec![model],
            limit: 4,
            kept: Vec::new(),
        };
        let mut floor = self.allocator.hall.floor();
        floor.roster.join(join, Instant::now()).unwrap();
        let beat = Beat { allowed: 4, ..Beat::default() };
        floor.roster.beat("one", &RUN, beat, Instant::now()).unwrap();
    }

    /// What the door answers to these bytes, until it ends the connection.
    fn answers(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.allocator.websocket_address().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(bytes).unwrap();
        let mut got = Vec::new();
        // A door that has said what it says may reset the connection.
        let _ = stream.read_to_end(&mut got);
        let _ = stream.shutdown(Shutdown::Both);
        got
    }

    /// The payload of the first frame of what the door answers to this message of a browser.
    fn says(&self, message: &[u8]) -> Vec<u8> {
        let got =
            self.answers(&[request("https://shop.org").into_bytes(), frame(message)].concat());
        let opened = got.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        let (head, frames) = got.split_at(opened);
        assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(head));
        let (length, rest) = match frames {
            [0x82, 126, a, b, rest @ ..] => (usize::from(u16::from_be_bytes([*a, *b])), rest),
            [0x82, short, rest @ ..] => (usize::from(*short), rest),
            other => panic!("another frame: {:?}", other.get(..20)),
        };
        rest[..length].to_vec()
    }
}

fn request(origin: &str) -> String {
    format!(
        "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

/// A frame of a browser, whose mask changes nothing.
fn frame(payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
    [&[0x82, 0x80 | 126, length[0], length[1], 0, 0, 0, 0], payload].concat()
}

fn asking(protocol: u32) -> Vec<u8> {
    let (model, token, kept) = ([0; 32], [0; 32], [0; 32]);
    let wanted = DoorRequest { protocol, model, token, kept, amount: Amount::Values(4) };
    encode_frame(&wanted, 0).unwrap()
}

fn refusal(payload: &[u8]) -> String {
    let (admission, rest) = decode_frame::<Admission>(payload, 0, &()).unwrap().unwrap();
    assert!(rest.is_empty());
    admission.outcome().unwrap_err().to_string()
}

#[test]
fn a_browser_gets_a_ticket_for_where_its_server_takes_websockets() {
    let door = running(Relay::Old);
    assert!(refusal(&door.says(&asking(PROTOCOL))).contains("full"), "there is no server yet");
    door.join(None);
    assert!(refusal(&door.says(&asking(PROTOCOL))).contains("--websocket"));
    door.join(Some("one.example.org:7443"));
    // What follows the request is the session's, and none of the door's business.
    for more in [&b""[..], &[0xee; 5000]] {
        let payload = door.says(&[&asking(PROTOCOL), more].concat());
        let (ticket, _) = decode_frame::<Ticket>(&payload, 0, &()).unwrap().unwrap();
        assert_eq!(ticket.address, "one.example.org:7443");
    }
    assert_eq!(door.allocator.state()["tickets"]["out"], 2);
    assert!(refusal(&door.says(&asking(PROTOCOL - 1))).contains("release"));
}

#[test]
fn what_follows_no_doors_and_what_is_no_request_is_refused() {
    for relay in [Relay::Old, Relay::Never] {
        let door = running(relay);
        door.join(Some("one.example.org:7443"));
        let begins = refusal(&door.says(&[&[tags::HELLO][..], &[0; 100]].concat()));
        assert!(begins.contains("--relay always"), "{begins}");
        for garbage in [
            &[0xee; 200][..],
            &[tags::DOOR_REQUEST, 0xff, 0xff, 0xff, 0xff],
            &[tags::SHOWN_TICKET; 9],
        ] {
            let opened = request("https://shop.org").into_bytes();
            let got = door.answers(&[opened, frame(garbage)].concat());
            assert!(!got.windows(2).any(|two| two == [tags::TICKET, 0]), "{got:?}");
        }
        assert_eq!(door.allocator.state()["tickets"]["issued"], 0);
    }
}

#[test]
fn requests_of_other_pages_and_without_end_are_refused_and_told() {
    let door = running(Relay::Old);
    let status = |bytes: &[u8]| String::from_utf8(door.answers(bytes)).unwrap()[..13].to_string();
    assert_eq!(status(request("https://evil.org").as_bytes()), "HTTP/1.1 403 ");
    assert_eq!(status(&[b"GET / HTTP/1.1\r\nHost: ", &[b'a'; 9000][..]].concat()), "HTTP/1.1 431 ");
    assert_eq!(status(&[0xff; 64]), "HTTP/1.1 400 ");
    let mut told = Vec::new();
    while told.len() < 3 {
        let event = door.allocator.next_event(Duration::from_secs(30)).unwrap();
        assert_eq!(event["event"], "failed");
        told.push(event["error"].as_str().unwrap().to_string());
    }
    assert!(told[0].contains("another origin"), "{told:?}");
}
