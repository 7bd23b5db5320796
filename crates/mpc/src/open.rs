//! Opening a result to the client.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^bits |
//! | Out | `x` for the client, nothing for the server |
//! | Reveals | `x`, to the client: only for exactly truncated values and labels |
//! | Security | the server's share is all that crosses |
//! | Cost | `bits` a value, one message from the server |
//! | Paper | ARCHITECTURE, session diagram |

use wire::{Channel, Cost, Packed, Result, Role, Segment, tags};

use crate::share::Share;

type Opening = Packed<{ tags::RESULT }>;

/// Returns what [`to_client`] costs.
pub fn cost(count: usize, bits: u32) -> Cost {
    Cost::message(Role::Server, Opening::body_len(&[Segment { count, bits }]))
}

/// Gives the client the words of `x` mod 2^bits; the server gets an empty list.
///
/// # Errors
/// [`wire::Error::Peer`], [`wire::Error::Transport`].
pub fn to_client(channel: &mut Channel, x: &Share) -> Result<Vec<u64>> {
    match channel.role() {
        Role::Server => {
            channel.send(&Opening::one(x.words().to_vec(), x.bits()))?;
            Ok(Vec::new())
        }
        Role::Client => {
            let shape = vec![Segment { count: x.len(), bits: x.bits() }];
            let theirs: Opening = channel.receive(&shape)?;
            let theirs = Share::new(theirs.concat(), x.bits());
            Ok(x.add_scaled(&theirs, 1).words().to_vec())
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::testing::split;
    use ring::Random;
    use wire::testing::run_pair;

    #[test]
    fn only_the_client_learns_the_value() {
        let (client, server) = split(&mut Random::seeded(9), &[5, -3], 7);
        let (c, s) = run_pair(|ch| to_client(ch, &client), |ch| to_client(ch, &server));
        assert_eq!(c.value.unwrap(), [5, 125]);
        assert!(s.value.unwrap().is_empty());
        assert_eq!(c.cost, cost(2, 7));
    }
}
