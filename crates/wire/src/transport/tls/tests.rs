//! Both ends of a TLS connection on the loopback interface.

use super::*;
use crate::error::TransportKind;
use crate::message::Packed;
use crate::tags;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::kx_group;
use std::net::TcpListener;
use std::thread;

type Test = Packed<{ tags::TESTS }>;

/// Why the connection failed.
fn kind(error: Error) -> TransportKind {
    match error {
        Error::Transport(error) => error.kind,
        other => panic!("{other}"),
    }
}

fn meet(pin: Option<Pin>) -> (Result<Channel>, Result<Channel>) {
    let identity = Identity::ephemeral().unwrap();
    let pin = pin.unwrap_or(identity.pin().unwrap());
    meet_as(identity, &Trust::Pin(pin))
}

fn meet_as(identity: Identity, trust: &Trust) -> (Result<Channel>, Result<Channel>) {
    meet_with([provider(), provider()], identity, trust)
}

/// With the key exchanges of the client's provider and of the server's.
fn meet_with(
    [ours, theirs]: [CryptoProvider; 2],
    identity: Identity,
    trust: &Trust,
) -> (Result<Channel>, Result<Channel>) {
    let tls = ServerTls::with(theirs, identity, None).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let timeouts = Timeouts { connect: Duration::from_secs(5), ..Timeouts::default() };
    let server = thread::spawn(move || tls.channel(listener.accept().unwrap().0, timeouts));
    let tls = ClientTls::with(ours, trust, None).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    (tls.channel("localhost", stream, timeouts), server.join().unwrap())
}

#[test]
fn the_pinned_key_is_accepted_and_large_messages_pass_both_ways() {
    let (client, server) = meet(None);
    let (mut client, mut server) = (client.unwrap(), server.unwrap());
    let big = Test::one(vec![9; 1_000_000], 64);
    let layout = vec![big.0.first().unwrap().0];
    let (ours, shape) = (big.clone(), layout.clone());
    let peer = thread::spawn(move || {
        server.send(&ours).unwrap();
        let got = server.receive::<Test>(&shape).unwrap();
        server.flush().unwrap();
        got
    });
    client.send(&big).unwrap();
    assert!(client.receive::<Test>(&layout).unwrap() == big);
    assert!(peer.join().unwrap() == big);
    let end = client.receive::<Test>(&layout).unwrap_err();
    assert!(end.to_string().contains("closed"), "{end}");
}

/// The groups that both ends say they exchanged keys in, when one party has only `groups`.
fn exchanged(
    groups: &[&'static dyn SupportedKxGroup],
    clients: bool,
) -> (Result<Option<&'static str>>, Result<Option<&'static str>>) {
    let few = CryptoProvider { kx_groups: groups.to_vec(), ..provider() };
    let providers = if clients { [few, provider()] } else { [provider(), few] };
    let identity = Identity::ephemeral().unwrap();
    let trust = Trust::Pin(identity.pin().unwrap());
    let (client, server) = meet_with(providers, identity, &trust);
    let group = |end: Channel| end.key_exchange();
    (client.map(group), server.map(group))
}

#[test]
fn keys_are_exchanged_by_both_kinds_and_classical_peers_still_connect() {
    let both = |name| (Ok(Some(name)), Ok(Some(name)));
    for clients in [true, false] {
        assert_eq!(exchanged(&provider().kx_groups, clients), both("X25519MLKEM768"));
        assert_eq!(exchanged(&[kx_group::X25519], clients), both("X25519"));
        assert_eq!(exchanged(&[kx_group::SECP256R1], clients), both("secp256r1"));
        // ML-KEM alone is not among the groups, since it would hold by itself only.
        let (client, server) = exchanged(&[kx_group::MLKEM768], clients);
        assert!(client.is_err() && server.is_err());
    }
}

#[test]
fn another_key_is_refused_by_name() {
    let (client, server) = meet(Some(Pin([1; 32])));
    let error = client.unwrap_err();
    assert!(error.to_string().contains("not the pinned one"), "{error}");
    assert_eq!(kind(error), TransportKind::NotAuthentic);
    assert_eq!(kind(server.unwrap_err()), TransportKind::Refused);
}

/// The words of a client that takes the server's own certificate for that of an authority.
fn mistaken(name: &str, authority: bool) -> (String, Pin) {
    let file =
        std::env::temp_dir().join(format!("tacit-{name}-{authority}-{}.pem", std::process::id()));
    let key = rcgen::KeyPair::generate().unwrap();
    let mut about = rcgen::CertificateParams::new(vec![name.to_string()]).unwrap();
    if authority {
        about.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    }
    let certificate = about.self_signed(&key).unwrap();
    std::fs::write(&file, certificate.pem()).unwrap();
    let chain = vec![certificate.der().clone()];
    let identity = Identity { chain, key: PrivateKeyDer::try_from(key.serialize_der()).unwrap() };
    let pin = identity.pin().unwrap();
    let trust = Trust::Authority(file.to_str().unwrap().into());
    let (client, server) = meet_as(identity, &trust);
    std::fs::remove_file(&file).unwrap();
    assert!(server.is_err());
    let error = client.unwrap_err();
    let words = error.to_string();
    assert_eq!(kind(error), TransportKind::NotAuthentic);
    (words, pin)
}

#[test]
fn a_self_signed_certificate_is_no_authority_and_its_pin_is_told() {
    for (name, authority) in [("localhost", true), ("elsewhere", true), ("elsewhere", false)] {
        let (words, pin) = mistaken(name, authority);
        assert!(words.contains(&format!("--pin {pin}")), "{name}, {authority}: {words}");
        assert!(words.contains(".pem` holds the server's own certificate"), "{words}");
    }
}

#[test]
fn a_goodbye_tells_the_end_from_an_accident() {
    let patience = Duration::from_secs(5);
    let (client, server) = meet(None);
    let (mut client, mut server) = (client.unwrap(), server.unwrap());
    client.close().unwrap();
    drop(client);
    assert_eq!(server.closed(patience), Ok(()));
    drop(server);

    let (client, server) = meet(None);
    let mut server = server.unwrap();
    drop(client);
    let gone = server.closed(patience).unwrap_err();
    assert_eq!(kind(gone), TransportKind::Closed);

    let (client, server) = meet(None);
    let (mut client, mut server) = (client.unwrap(), server.unwrap());
    client.send(&Test::one(vec![1], 8)).unwrap();
    assert!(matches!(server.closed(patience), Err(Error::Peer { .. })));
    let began = Instant::now();
    let (_silent, server) = meet(None);
    let limit = Duration::from_millis(300);
    let open = server.unwrap().closed(limit).unwrap_err();
    assert!(began.elapsed() >= limit && open.to_string().contains("limit"), "{open}");
}

/// A record that never ends, a byte at a time, does not outlast the session.
#[test]
fn a_dripping_peer_meets_the_session_limit() {
    let identity = Identity::ephemeral().unwrap();
    let pin = identity.pin().unwrap();
    let tls = ServerTls::new(identity, None).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut drip = stream.try_clone().unwrap();
    let total = Duration::from_millis(700);
    let timeouts = Timeouts { total, ..Timeouts::default() };
    let server = thread::spawn(move || {
        let mut channel = tls.channel(listener.accept().unwrap().0, timeouts).unwrap();
        let began = Instant::now();
        let layout = vec![crate::Segment { count: 1, bits: 8 }];
        (channel.receive::<Test>(&layout).map(drop).unwrap_err(), began.elapsed())
    });
    let client = ClientTls::new(&Trust::Pin(pin), None).unwrap();
    let _open = client.channel("localhost", stream, Timeouts::default()).unwrap();
    drip.write_all(&[23, 3, 3, 0x40, 0]).unwrap();
    while !server.is_finished() {
        // The server may hang up between two bytes.
        let _ = drip.write_all(&[0]);
        thread::sleep(Duration::from_millis(50));
    }
    let (error, took) = server.join().unwrap();
    assert!(error.to_string().contains("time limit"), "{error}");
    assert_eq!(kind(error), TransportKind::TimedOut);
    assert!(took > total / 2 && took < Duration::from_secs(8), "{took:?}");
}
