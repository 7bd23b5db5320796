//! How the door of a fleet vouches for the address of a client that it passes on.

use std::net::SocketAddr;

use crate::fleet::secret::Secret;
use crate::fleet::ticket::Id;

const PURPOSE: &str = "tacit voucher v1";
/// Seconds for which a voucher is good, either way of the server's clock.
const FRESH: u64 = 60;

/// A voucher of this number for a client from `source` that goes to a run of a server.
pub(crate) fn seal(
    secret: &Secret,
    id: &Id,
    server: &[u8; 16],
    source: SocketAddr,
    now: u64,
) -> Vec<u8> {
    let time = now.to_le_bytes();
    let code = secret.code(PURPOSE, &[id, server, source.to_string().as_bytes(), &time]);
    [&id[..], &time, &code].concat()
}

/// The number of a voucher that `secret` made for this run of a server, not long ago.
pub(crate) fn open(
    voucher: &[u8],
    secret: &Secret,
    server: &[u8; 16],
    source: SocketAddr,
    now: u64,
) -> Option<Id> {
    let (id, rest) = voucher.split_first_chunk::<16>()?;
    let (time, code) = rest.split_first_chunk::<8>()?;
    let source = source.to_string();
    let parts: [&[u8]; 4] = [id, server, source.as_bytes(), time];
    let fresh = u64::from_le_bytes(*time).abs_diff(now) <= FRESH;
    (secret.verifies(PURPOSE, &parts, code) && fresh).then_some(*id)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_voucher_is_for_one_address_one_server_and_a_short_time() {
        let (secret, source) = (Secret::of([1; 32]), SocketAddr::from(([10, 0, 0, 1], 80)));
        let voucher = seal(&secret, &[2; 16], &[3; 16], source, 1000);
        let at = |server: u8, source, now| open(&voucher, &secret, &[server; 16], source, now);
        assert_eq!(at(3, source, 1030), Some([2; 16]));
        assert_eq!(at(4, source, 1030), None);
        assert_eq!(at(3, SocketAddr::from(([10, 0, 0, 2], 80)), 1030), None);
        assert_eq!(at(3, source, 1061), None);
        for at in 0..voucher.len() {
            let mut spoilt = voucher.clone();
            spoilt[at] ^= 1;
            assert_eq!(open(&spoilt, &secret, &[3; 16], source, 1000), None);
            assert_eq!(open(&voucher[..at], &secret, &[3; 16], source, 1000), None);
        }
    }
}
