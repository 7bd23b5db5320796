use std::mem::take;

use super::*;

const MASK: [u8; 4] = [7, 200, 31, 99];

/// A frame of a client.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match payload.len() {
        0..126 => out.push(0x80 | payload.len() as u8),
        126..65_536 => {
            out.push(0x80 | 126);
            out.extend((payload.len() as u16).to_be_bytes());
        }
        long => {
            out.push(0x80 | 127);
            out.extend((long as u64).to_be_bytes());
        }
    }
    out.extend(MASK);
    out.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    out
}

/// What a server reads of the bytes when they come in pieces of this length.
fn read(frames: &mut Frames, bytes: &[u8], piece: usize) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    for part in bytes.chunks(piece) {
        let mut part = part.to_vec();
        let opened = frames.open(&mut part)?;
        all.extend_from_slice(&part[..opened]);
    }
    Ok(all)
}

#[test]
fn bytes_come_through_however_they_are_cut() {
    let stream: Vec<u8> = (0..70_000_u32).map(|i| (i.wrapping_mul(i) >> 5) as u8).collect();
    let mut wire = frame(0x82, &stream[..100]);
    wire.extend(frame(0x82, &[]));
    wire.extend(frame(0x02, &stream[100..1000]));
    wire.extend(frame(0x89, b"there?"));
    wire.extend(frame(0x00, &stream[1000..1001]));
    wire.extend(frame(0x80, &stream[1001..3000]));
    wire.extend(frame(0x82, &stream[3000..]));
    for piece in [1, 3, 14, 256, 4096, wire.len()] {
        let mut frames = Frames::default();
        assert_eq!(read(&mut frames, &wire, piece).unwrap(), stream, "{piece}");
        assert_eq!(take(&mut frames.replies), [&[0x8a, 6][..], b"there?"].concat());
        assert!(take(&mut frames.replies).is_empty() && !frames.is_closed());
    }
}

#[test]
fn a_server_seals_what_it_sends() {
    assert_eq!(Frames::seal(b"abc"), [0x82, 3, b'a', b'b', b'c']);
    assert_eq!(Frames::seal(&[0; 70_000])[..10], [0x82, 127, 0, 0, 0, 0, 0, 1, 0x11, 0x70]);
}

#[test]
fn closes_are_answered_once_and_nothing_follows_them() {
    let mut frames = Frames::default();
    let wire = [frame(0x82, b"last"), frame(0x88, &1001_u16.to_be_bytes()), frame(0x82, b"more")];
    assert_eq!(read(&mut frames, &wire.concat(), 5).unwrap(), b"last");
    assert!(frames.is_closed());
    assert_eq!(take(&mut frames.replies), [0x88, 2, 3, 233]);
    assert!(frames.goodbye().is_empty());
    let mut frames = Frames::default();
    assert_eq!(frames.goodbye(), [0x88, 2, 3, 232]);
    read(&mut frames, &frame(0x88, &[]), 9).unwrap();
    assert!(frames.is_closed() && take(&mut frames.replies).is_empty());
}

#[test]
fn other_frames_are_refused() {
    let mut unmasked = frame(0x82, b"abc");
    unmasked[1] &= 0x7f;
    let long = [&[0x82, 0x80 | 127][..], &(MOST_FRAME + 1).to_be_bytes(), &MASK].concat();
    let cases = [
        ("a mask", unmasked),
        ("a text", frame(0x81, b"hello")),
        ("extension", frame(0xc2, b"abc")),
        ("another message", frame(0x80, b"abc")),
        ("another message", [frame(0x02, b"abc"), frame(0x82, b"abc")].concat()),
        ("in parts", frame(0x09, b"")),
        ("at most 125", frame(0x89, &[0; 126])),
        ("at most 16777216", long),
        ("none", frame(0x83, b"abc")),
        ("pings", frame(0x89, b"").repeat(MOST_PINGS + 1)),
    ];
    for (what, wire) in cases {
        let mut frames = Frames::default();
        let error = read(&mut frames, &wire, 64).unwrap_err();
        assert!(matches!(error, Error::Peer { .. }), "{error}");
        assert!(error.to_string().contains(what), "{what}: {error}");
        let refusal = frames.refusal(&error);
        assert!(refusal[0] == 0x88 && refusal[2..4] == BROKEN.to_be_bytes() && refusal.len() < 130);
    }
}

#[test]
fn a_length_costs_nothing() {
    let mut frames = Frames::default();
    let header = [&[0x82, 0x80 | 127][..], &MOST_FRAME.to_be_bytes(), &MASK].concat();
    read(&mut frames, &header, 20).unwrap();
    assert!(frames.header.capacity() < 64 && frames.control.capacity() == 0);
}
