//! Who a client is, as far as budgets are concerned.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use crate::error::{Error, Result};

/// The prefixes of the keys, which are stored: they never change.
const CERTIFICATE: &str = "cert:";
const TOKEN: &str = "token:";
const ADDRESS: &str = "addr:";

/// Bits of an IPv6 address that name a client: one household or machine has all addresses of a
/// network of this size.
const NETWORK: u32 = 64;

/// A client as the server knows it.
///
/// [`key`](Client::key) is its stable name in a ledger, `Display` its name for people, and
/// [`parse`](str::parse) reads a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// It showed a certificate with this subject, which the server's authority signed.
    Certificate(String),
    /// It showed the token of this name.
    Token(String),
    /// It showed nothing; all that is known is where it connected from. IPv6 addresses count by
    /// their network of 64 bits, IPv4 addresses written as IPv6 as IPv4.
    Anonymous(IpAddr),
}

impl Client {
    /// Returns the name of the client in ledgers: `cert:SUBJECT`, `token:NAME`, or `addr:ADDRESS`,
    /// of IPv6 `addr:NETWORK/64`.
    pub fn key(&self) -> String {
        let prefix = match self {
            Self::Certificate(_) => CERTIFICATE,
            Self::Token(_) => TOKEN,
            Self::Anonymous(_) => ADDRESS,
        };
        format!("{prefix}{self}")
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(name) | Self::Token(name) => f.write_str(name),
            Self::Anonymous(address) => match address.to_canonical() {
                IpAddr::V4(address) => write!(f, "{address}"),
                IpAddr::V6(address) => write!(f, "{}/{NETWORK}", network(address)),
            },
        }
    }
}

impl FromStr for Client {
    type Err = Error;

    /// Reads a key as [`Client::key`] writes it. An IPv6 address may come with or without `/64`.
    ///
    /// # Errors
    /// [`Error::Misuse`] for anything else.
    fn from_str(key: &str) -> Result<Self> {
        if let Some(subject) = key.strip_prefix(CERTIFICATE).filter(|s| !s.is_empty()) {
            return Ok(Self::Certificate(subject.into()));
        }
        if let Some(name) = key.strip_prefix(TOKEN).filter(|name| is_token_name(name)) {
            return Ok(Self::Token(name.into()));
        }
        let address = key.strip_prefix(ADDRESS).and_then(|text| {
            let network = text.strip_suffix("/64").filter(|address| address.contains(':'));
            network.unwrap_or(text).parse().ok()
        });
        address.map(Self::Anonymous).ok_or_else(|| {
            Error::misuse(format!(
                "`{key}` names no client: clients are cert:SUBJECT, token:NAME, or addr:ADDRESS"
            ))
        })
    }
}

/// The first address of the network that an address is in.
fn network(address: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(address.to_bits() >> (128 - NETWORK) << (128 - NETWORK))
}

/// Whether a token may have this name: 1 to 64 letters, digits, and `.`, `_`, `-`.
pub(crate) fn is_token_name(name: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn at(address: &str) -> Client {
        Client::Anonymous(address.parse().unwrap())
    }

    #[test]
    fn keys_are_stable_and_names_are_for_people() {
        let ward = Client::Token("ward-3".into());
        let certified = Client::Certificate("CN=ward 3,O=Clinic".into());
        assert_eq!((ward.key().as_str(), ward.to_string().as_str()), ("token:ward-3", "ward-3"));
        assert_eq!(certified.key(), "cert:CN=ward 3,O=Clinic");
        assert_eq!(certified.to_string(), "CN=ward 3,O=Clinic");
        assert_eq!(at("10.0.0.5").key(), "addr:10.0.0.5");
        assert_eq!(at("::ffff:10.0.0.5").key(), "addr:10.0.0.5");
    }

    #[test]
    fn addresses_of_one_network_are_one_client() {
        assert_eq!(at("2001:db8:1:2:3:4:5:6").key(), "addr:2001:db8:1:2::/64");
        assert_eq!(at("2001:db8:1:2::1").key(), at("2001:db8:1:2:ffff::").key());
        assert_ne!(at("2001:db8:1:2::1").key(), at("2001:db8:1:3::1").key());
    }

    #[test]
    fn keys_are_read_back() {
        let clients = [
            Client::Certificate("CN=a:b".into()),
            Client::Token("a.b_c-4".into()),
            at("127.0.0.1"),
            at("2001:db8::"),
        ];
        for client in clients {
            assert_eq!(client.key().parse(), Ok(client));
        }
        assert_eq!("addr:2001:db8::7".parse::<Client>().unwrap().key(), "addr:2001:db8::/64");
        let none = ["", "ward-3", "cert:", "token:", "token:a b", "addr:", "addr:10.0.0.1/64"];
        for key in none {
            let error = key.parse::<Client>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{key}` names no client")), "{error}");
        }
    }
}
