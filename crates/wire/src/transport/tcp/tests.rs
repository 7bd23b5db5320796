//! Both ends of a connection on the loopback interface.

use std::io::Write;

use super::*;
use crate::message::Packed;
use crate::tags;
use std::net::TcpListener;

type Test = Packed<{ tags::TESTS }>;

/// Why the connection failed.
fn kind(error: Error) -> TransportKind {
    match error {
        Error::Transport(error) => error.kind,
        other => panic!("{other}"),
    }
}

fn pair(idle: Duration) -> (Channel, Channel) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let timeouts = Timeouts { idle, ..Timeouts::default() };
    let address = listener.local_addr().unwrap().to_string();
    let client = connect(&address, timeouts).unwrap();
    let server = listener.accept().unwrap().0;
    (
        plaintext(Role::Client, client, timeouts).unwrap(),
        plaintext(Role::Server, server, timeouts).unwrap(),
    )
}

#[test]
fn two_large_sends_do_not_block_each_other() {
    let (mut client, mut server) = pair(Duration::from_secs(20));
    let big = Test::one(vec![5; 4_000_000], 64);
    let layout = vec![big.0.first().unwrap().0];
    let expected = big.clone();
    let peer = thread::spawn(move || {
        server.send(&big).unwrap();
        server.receive::<Test>(&layout).unwrap()
    });
    client.send(&expected).unwrap();
    let got: Test = client.receive(&vec![expected.0.first().unwrap().0]).unwrap();
    assert!(got == expected && peer.join().unwrap() == expected);
    assert_eq!(client.meter().total(None).cost.rounds, 2);
}

#[test]
fn a_peer_that_computes_may_be_silent_and_one_that_is_done_may_not() {
    let (mut client, mut server) = pair(Duration::from_millis(200));
    let layout = vec![crate::Segment { count: 1, bits: 8 }];
    let asked = layout.clone();
    let peer = thread::spawn(move || {
        let got: Test = server.receive(&asked).unwrap();
        thread::sleep(Duration::from_millis(600));
        server.send(&got).unwrap();
        thread::sleep(Duration::from_millis(600));
    });
    client.send(&Test::one(vec![7], 8)).unwrap();
    client.expect_silence(true).unwrap();
    client.receive::<Test>(&layout).unwrap();
    client.expect_silence(false).unwrap();
    let error = client.receive::<Test>(&layout).unwrap_err();
    assert!(error.to_string().contains("0.2 s"), "{error}");
    peer.join().unwrap();
}

#[test]
fn time_in_which_this_process_was_stopped_is_not_held_against_the_peer() {
    let patience = Duration::from_millis(64);
    let mut waits = 0;
    let ended = awake_for(patience, |step| {
        waits += 1;
        // Stopped in the first wait, for longer than the patience.
        thread::sleep(if waits == 1 { 2 * patience } else { step });
        if waits < 3 { Err(RecvTimeoutError::Timeout) } else { Ok(waits) }
    });
    assert_eq!(ended, Ok(3));
    let began = Instant::now();
    let never = awake_for::<()>(patience, |step| {
        thread::sleep(step);
        Err(RecvTimeoutError::Timeout)
    });
    assert!(never == Err(RecvTimeoutError::Timeout) && began.elapsed() >= patience);
}

#[test]
fn a_shaped_link_takes_no_less_than_its_closed_form() {
    let (mut client, mut server) = pair(Duration::from_secs(20));
    let link = Link::new(0.02, 80e6).unwrap();
    client.shape(link).unwrap();
    server.shape(link).unwrap();
    let peer = thread::spawn(move || {
        for bytes in [1, 1, 1, 1, 1_000_000] {
            let got: Test =
                server.receive(&vec![crate::Segment { count: bytes, bits: 8 }]).unwrap();
            server.send(&got).unwrap();
        }
        server.flush().unwrap();
    });
    for (bytes, there_and_back) in [(1, 0.02); 4].into_iter().chain([(1_000_000, 0.22)]) {
        let began = Instant::now();
        client.send(&Test::one(vec![7; bytes], 8)).unwrap();
        let layout = vec![crate::Segment { count: bytes, bits: 8 }];
        let _: Test = client.receive(&layout).unwrap();
        let took = began.elapsed().as_secs_f64();
        // How much more is the machine's affair; the schedule is exact, see `link`.
        assert!(took >= there_and_back, "{bytes}: {took}");
    }
    peer.join().unwrap();
}

#[test]
fn a_silent_or_absent_peer_is_named() {
    let (mut client, server) = pair(Duration::from_millis(200));
    let layout = vec![crate::Segment { count: 1, bits: 8 }];
    let silent = client.receive::<Test>(&layout).unwrap_err();
    assert!(silent.to_string().contains("sent nothing"), "{silent}");
    assert_eq!(kind(silent), TransportKind::TimedOut);
    drop(server);
    let gone = client.receive::<Test>(&layout).unwrap_err();
    assert!(gone.to_string().contains("closed"), "{gone}");
    assert_eq!(kind(gone), TransportKind::Closed);
    let nobody = connect("127.0.0.1:1", Timeouts::default()).unwrap_err();
    assert!(nobody.to_string().contains("no server answers"), "{nobody}");
    assert_eq!(kind(nobody), TransportKind::Refused);
}

/// A peer that says more is coming and hangs up in the middle of it.
#[test]
fn a_peer_that_closes_in_the_middle_of_a_message_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let stream = listener.accept().unwrap().0;
    let mut server = plaintext(Role::Server, stream, Timeouts::default()).unwrap();
    peer.write_all(&[tags::TESTS, 4, 0, 0, 0, 1, 2]).unwrap();
    drop(peer);
    let layout = vec![crate::Segment { count: 4, bits: 8 }];
    let cut = server.receive::<Test>(&layout).unwrap_err();
    assert_eq!(kind(cut), TransportKind::Closed);
}
