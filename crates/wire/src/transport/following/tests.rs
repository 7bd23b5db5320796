//! Whom a client meets, what it sends there, and what it makes of the answer.

use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

use super::*;
use crate::error::{Error, TransportKind};
use crate::fleet::Amount;
use crate::frame::decode_frame;
use crate::transport::memory::{Memory, transports};

const PATIENCE: Duration = Duration::from_millis(200);

fn request() -> DoorRequest {
    let amount = Amount::Values(4);
    DoorRequest { protocol: 1, model: [1; 32], token: [2; 32], kept: [3; 32], amount }
}

/// A message of a session.
struct Word([u8; 8]);

impl Message for Word {
    type Shape = ();
    const TAG: u8 = tags::HELLO;

    fn bounds((): &()) -> (u64, u64) {
        (8, 8)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0);
    }

    fn decode(body: &[u8], (): &()) -> Result<Self> {
        body.try_into().map(Self).map_err(|_| Error::peer("8 bytes", "others"))
    }
}

/// A client, the peer that it meets, servers that it dials, and the places that it was told.
struct Meeting {
    client: Channel,
    peer: Memory,
    dialled: Receiver<(String, Memory)>,
    told: Arc<Mutex<Vec<u32>>>,
}

fn meeting() -> Meeting {
    let (near, peer) = transports(PATIENCE);
    let (sender, dialled) = channel();
    let told = Arc::new(Mutex::new(Vec::new()));
    let hears = told.clone();
    let dial = move |address: &str| -> Result<Box<dyn Transport>> {
        if address == "gone:1" {
            return Err(Error::connection(TransportKind::Refused, "nobody listens"));
        }
        let (near, far) = transports(PATIENCE);
        sender.send((address.to_owned(), far)).unwrap();
        Ok(Box::new(near))
    };
    let told_place = move |before| hears.lock().unwrap().push(before);
    let way = Way { dial: Box::new(dial), told: Box::new(told_place) };
    let client = following_by(Box::new(near), way, &request()).unwrap();
    Meeting { client, peer, dialled, told }
}

/// The next message at the end of a peer.
fn next<M: Message<Shape = ()>>(peer: &mut Memory) -> M {
    let mut header = [0; HEADER_LEN as usize];
    peer.receive(&mut header).unwrap();
    let length = body_len::<M>(header, 0, &()).unwrap();
    let mut body = vec![0; length as usize];
    peer.receive(&mut body).unwrap();
    M::decode(&body, &()).unwrap()
}

fn says<M: Message>(peer: &mut Memory, message: &M, position: u64) {
    peer.send(&encode_frame(message, position).unwrap()).unwrap();
}

fn ticket(address: &str) -> Ticket {
    Ticket { address: address.into(), ticket: vec![7; 20] }
}

#[test]
fn a_session_begins_again_with_the_server_that_a_door_names() {
    let Meeting { mut client, mut peer, dialled, told } = meeting();
    client.send(&Word([5; 8])).unwrap();
    assert_eq!(next::<DoorRequest>(&mut peer).amount, Amount::Values(4));
    assert_eq!(next::<Word>(&mut peer).0, [5; 8], "it may be a server");
    for (position, before) in [2, 0].into_iter().enumerate() {
        says(&mut peer, &Admission::Waiting { before }, position as u64);
    }
    says(&mut peer, &ticket("10.0.0.2:7000"), 2);
    let server = std::thread::spawn(move || {
        let (address, mut server) = dialled.recv().unwrap();
        assert_eq!(address, "10.0.0.2:7000");
        assert_eq!(next::<ShownTicket>(&mut server).0, vec![7; 20]);
        assert_eq!(next::<Word>(&mut server).0, [5; 8]);
        says(&mut server, &Word([6; 8]), 0);
        server
    });
    assert_eq!(client.receive::<Word>(&()).unwrap().0, [6; 8]);
    let detour = client.detour().unwrap();
    assert_eq!(detour.server, "10.0.0.2:7000");
    assert_eq!(detour.sent, 2 * HEADER_LEN + 109 + 20);
    assert_eq!(*told.lock().unwrap(), [2, 0]);
    // The session goes on with that server.
    client.send(&Word([8; 8])).unwrap();
    let mut server = server.join().unwrap();
    let mut frame = [0; 13];
    server.receive(&mut frame).unwrap();
    assert!(decode_frame::<Word>(&frame, 1, &()).unwrap().is_some());
}

#[test]
fn a_server_that_is_no_door_goes_on() {
    let Meeting { mut client, mut peer, .. } = meeting();
    client.send(&Word([5; 8])).unwrap();
    says(&mut peer, &Word([6; 8]), 0);
    assert_eq!(client.receive::<Word>(&()).unwrap().0, [6; 8]);
    assert!(client.detour().is_none());
}

#[test]
fn refusals_and_servers_that_are_gone_are_errors_of_their_kinds() {
    let kind = |said: &dyn Fn(&mut Memory)| {
        let Meeting { mut client, mut peer, .. } = meeting();
        said(&mut peer);
        client.receive::<Word>(&()).err().unwrap().kind()
    };
    let busy = Admission::Busy { again: 1, why: "full".into() };
    assert_eq!(kind(&|peer| says(peer, &busy, 0)), "busy");
    assert_eq!(kind(&|peer| says(peer, &Admission::denied("no budget"), 0)), "refused");
    let late = |peer: &mut Memory| {
        says(peer, &Admission::Waiting { before: 1 }, 0);
        says(peer, &Admission::denied("no budget"), 1);
    };
    assert_eq!(kind(&late), "refused");
    assert_eq!(kind(&|peer| says(peer, &ticket("gone:1"), 0)), "transport");
    assert_eq!(kind(&|peer| says(peer, &ticket("10.0.0.2:7000"), 3)), "peer", "out of order");
    assert_eq!(kind(&|peer| peer.send(&[tags::TICKET, 0xff, 0xff, 0, 0]).unwrap()), "peer");
}

#[test]
fn what_is_known_as_a_door_is_asked_first() {
    let (near, mut door) = transports(PATIENCE);
    let told = Mutex::new(Vec::new());
    let hears = |before| told.lock().unwrap().push(before);
    says(&mut door, &Admission::Waiting { before: 3 }, 0);
    says(&mut door, &ticket("10.0.0.2:7000"), 1);
    let asked = Channel::new(Role::Client, Box::new(near));
    let (given, received) = ask_door(asked, &request(), &hears).unwrap();
    assert!(given == ticket("10.0.0.2:7000") && *told.lock().unwrap() == [3]);
    assert_eq!(next::<DoorRequest>(&mut door).kept, [3; 32]);
    assert!(door.receive(&mut [0]).is_err(), "a door gets nothing of the session");
    let (near, mut server) = transports(PATIENCE);
    let channel = Channel::new(Role::Client, Box::new(near));
    let channel = show_ticket(channel, &given, (Instant::now(), received)).unwrap();
    assert_eq!(next::<ShownTicket>(&mut server).0, given.ticket);
    assert_eq!(channel.detour().unwrap().sent, 2 * HEADER_LEN + 109 + 20);
}
