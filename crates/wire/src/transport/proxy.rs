//! The header by which a load balancer says whose connection it passes on: version 2 of the PROXY
//! protocol (haproxy.org, doc/proxy-protocol.txt, section 2.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::error::{Error, Result};

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Signature, version and command, family, length.
const HEAD: usize = 16;
/// Longest remainder: addresses, and additions that are skipped.
const LONGEST: usize = 2048;

/// Type of an addition by which a fleet vouches for a header: the first that the protocol leaves to
/// applications (section 2.2.7).
const VOUCHER: u8 = 0xe0;

/// Returns the header of a connection from `source` that is passed on to `destination`, with a
/// `voucher` of up to 255 bytes. Addresses of two families are both written as IPv6.
pub fn proxy_header(source: SocketAddr, destination: SocketAddr, voucher: &[u8]) -> Vec<u8> {
    let mut rest = Vec::new();
    let family = match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            rest.extend(from.octets());
            rest.extend(to.octets());
            0x11
        }
        (from, to) => {
            let wide = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            rest.extend(wide(from).octets());
            rest.extend(wide(to).octets());
            0x21
        }
    };
    rest.extend(source.port().to_be_bytes());
    rest.extend(destination.port().to_be_bytes());
    let voucher = voucher.get(..voucher.len().min(255)).unwrap_or_default();
    rest.extend([VOUCHER, 0, voucher.len() as u8]);
    rest.extend(voucher);
    let length = (rest.len() as u16).to_be_bytes();
    [&SIGNATURE[..], &[0x21, family], &length, &rest].concat()
}

/// A header as far as it has arrived.
#[derive(Debug, Default)]
pub(crate) struct Preamble(Vec<u8>);

/// Whose connection it is: an address, or the balancer's own where none is said.
pub(crate) type Source = Option<SocketAddr>;

impl Preamble {
    /// Bytes that are missing; what follows them is no part of the header.
    ///
    /// # Errors
    /// [`Error::Peer`] for what is no such header.
    pub(crate) fn missing(&self) -> Result<usize> {
        let known = self.0.len().min(SIGNATURE.len());
        if self.0.get(..known) != SIGNATURE.get(..known) {
            let what = "what a client sends to a server that is not behind one";
            return Err(Error::peer("a PROXY v2 header of the load balancer", what));
        }
        let Some(head) = self.0.first_chunk::<HEAD>() else { return Ok(HEAD - self.0.len()) };
        let rest = usize::from(u16::from_be_bytes([head[14], head[15]]));
        if rest > LONGEST {
            let most = format!("a PROXY header of at most {LONGEST} bytes");
            return Err(Error::peer(most, format!("{rest} bytes")));
        }
        Ok((HEAD + rest).saturating_sub(self.0.len()))
    }

    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// What the sender of a whole header added to vouch for it, if anything.
    pub(crate) fn voucher(&self) -> Option<&[u8]> {
        let addresses = match self.0.get(13)? {
            0x11 => 12,
            0x21 => 36,
            _ => return None,
        };
        let mut rest = self.0.get(HEAD + addresses..)?;
        while let Some(([kind, high, low], more)) = rest.split_first_chunk::<3>() {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            let (value, next) = more.split_at_checked(length)?;
            if *kind == VOUCHER {
                return Some(value);
            }
            rest = next;
        }
        None
    }

    /// The address in a header that is whole.
    ///
    /// # Errors
    /// [`Error::Peer`] for another version, an unknown command, or addresses that are cut short.
    pub(crate) fn source(&self) -> Result<Source> {
        let bad = |got: &str| Error::peer("a PROXY v2 header of a TCP connection", got);
        let (head, rest) =
            self.0.split_first_chunk::<HEAD>().ok_or_else(|| bad("a part of a header"))?;
        match (head[12], head[13]) {
            // The balancer's own connection, such as a health check.
            (0x20, _) | (0x21, 0x00) => Ok(None),
            (0x21, 0x11) => {
                let found = rest.first_chunk::<12>().ok_or_else(|| bad("a short address"))?;
                let [a, b, c, d, .., high, low, _, _] = *found;
                let port = u16::from_be_bytes([high, low]);
                Ok(Some(SocketAddr::new(Ipv4Addr::new(a, b, c, d).into(), port)))
            }
            (0x21, 0x21) => {
                let found = rest.first_chunk::<36>().ok_or_else(|| bad("a short address"))?;
                let address = found.first_chunk::<16>().copied().unwrap_or_default();
                let port = u16::from_be_bytes([found[32], found[33]]);
                // A client of IPv4 is the same client when the balancer maps it.
                let address: IpAddr = Ipv6Addr::from(address).to_canonical();
                Ok(Some(SocketAddr::new(address, port)))
            }
            (command, family) => Err(bad(&format!("command {command:#x}, family {family:#x}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = (rest.len() as u16).to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, rest].concat()
    }

    fn parsed(bytes: &[u8]) -> Result<Source> {
        let mut preamble = Preamble::default();
        let mut at = 0;
        loop {
            let missing = preamble.missing()?;
            if missing == 0 {
                break;
            }
            // A byte at a time, as slow peers send it.
            let byte = bytes.get(at).ok_or_else(|| Error::transport("the end"))?;
            preamble.extend(&[*byte]);
            at += 1;
        }
        assert_eq!(at, bytes.len());
        preamble.source()
    }

    #[test]
    fn what_is_written_is_read_with_its_voucher() {
        let addresses: [SocketAddr; 3] = [
            ([10, 1, 2, 3], 7).into(),
            ([127, 0, 0, 1], 9).into(),
            ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 80).into(),
        ];
        for source in addresses {
            for destination in addresses {
                let bytes = proxy_header(source, destination, &[7; 56]);
                assert_eq!(parsed(&bytes), Ok(Some(source)));
                let mut preamble = Preamble::default();
                preamble.extend(&bytes);
                assert_eq!(preamble.voucher(), Some(&[7; 56][..]));
            }
        }
        let mut cut = Preamble::default();
        cut.extend(&header(0x21, 0x11, &[&[0; 12][..], &[0xe0, 0, 9, 1]].concat()));
        assert_eq!(cut.voucher(), None);
    }

    #[test]
    fn addresses_are_read_and_additions_skipped() {
        let v4 = [10, 1, 2, 3, 127, 0, 0, 1, 0x12, 0x34, 0, 80];
        let found = parsed(&header(0x21, 0x11, &[&v4[..], &[4, 0, 1, 9]].concat()));
        assert_eq!(found, Ok(Some(SocketAddr::from(([10, 1, 2, 3], 0x1234)))));
        let mut v6 = [0; 36];
        v6[15] = 1;
        v6[33] = 7;
        assert_eq!(
            parsed(&header(0x21, 0x21, &v6)),
            Ok(Some(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 7)))
        );
        v6[..16].copy_from_slice(&Ipv4Addr::new(10, 1, 2, 3).to_ipv6_mapped().octets());
        assert_eq!(
            parsed(&header(0x21, 0x21, &v6)),
            Ok(Some(SocketAddr::from(([10, 1, 2, 3], 7))))
        );
        assert_eq!(parsed(&header(0x20, 0x00, b"")), Ok(None));
        assert_eq!(parsed(&header(0x21, 0x00, b"abc")), Ok(None));
    }

    #[test]
    fn what_is_no_header_is_refused_at_once() {
        for bytes in [
            &b"\x16\x03\x01"[..],
            b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n",
            &header(0x11, 0x11, &[0; 12]),
            &header(0x21, 0x12, &[0; 12]),
            &header(0x21, 0x11, &[0; 11]),
            &header(0x21, 0x21, &[0; 35]),
            &header(0x21, 0x11, &[0; LONGEST + 1]),
        ] {
            assert!(matches!(parsed(bytes), Err(Error::Peer { .. })), "{bytes:?}");
        }
    }

    #[test]
    fn no_bytes_panic() {
        let mut state = 1_u64;
        for length in 0..400 {
            let mut bytes = header(0x21, [0x11, 0x21][length % 2], &[0; 40]);
            for _ in 0..4 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (state >> 33) as usize % bytes.len();
                bytes[at] = state as u8;
            }
            bytes.truncate(length % 60);
            let mut preamble = Preamble::default();
            preamble.extend(&bytes);
            // Any answer will do.
            let _ = (preamble.missing(), preamble.source());
        }
    }
}
