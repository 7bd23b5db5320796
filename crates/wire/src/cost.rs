//! What a step costs on the wire.

use std::ops::Not;

/// Which of the two parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Holds the input and learns the result.
    Client,
    /// Holds the weights.
    Server,
}

impl Not for Role {
    type Output = Self;

    fn not(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// Bytes of tag and length in front of every message body.
pub const HEADER_LEN: u64 = 5;

/// Traffic of one step or of many in sequence. Bytes include frame headers.
///
/// A *round* is a maximal run of messages in one direction, as the client sees
/// them; [`Cost::then`] joins runs, so that sums over steps are exact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Bytes the client sends.
    pub client_to_server: u64,
    /// Bytes the server sends.
    pub server_to_client: u64,
    /// Runs of messages in one direction.
    pub rounds: u64,
    /// Who sends the first message (of `None`: nothing is sent).
    pub first: Option<Role>,
    /// Who sends the last message.
    pub last: Option<Role>,
}

impl Cost {
    /// Nothing is sent.
    pub const NONE: Self =
        Self { client_to_server: 0, server_to_client: 0, rounds: 0, first: None, last: None };

    /// Makes one message with a body of `body` bytes.
    pub const fn message(from: Role, body: u64) -> Self {
        let bytes = HEADER_LEN + body;
        let (client_to_server, server_to_client) = match from {
            Role::Client => (bytes, 0),
            Role::Server => (0, bytes),
        };
        Self { client_to_server, server_to_client, rounds: 1, first: Some(from), last: Some(from) }
    }

    /// This step, then `next`.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let joined = u64::from(self.last.is_some() && self.last == next.first);
        Self {
            client_to_server: self.client_to_server + next.client_to_server,
            server_to_client: self.server_to_client + next.server_to_client,
            rounds: self.rounds + next.rounds - joined,
            first: self.first.or(next.first),
            last: next.last.or(self.last),
        }
    }

    /// Returns the number of bytes in both directions.
    pub const fn bytes(&self) -> u64 {
        self.client_to_server + self.server_to_client
    }
}

impl FromIterator<Self> for Cost {
    fn from_iter<I: IntoIterator<Item = Self>>(steps: I) -> Self {
        steps.into_iter().fold(Self::NONE, Self::then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_in_one_direction_are_one_round() {
        let up = Cost::message(Role::Client, 10);
        let down = Cost::message(Role::Server, 1);
        assert_eq!(up.then(up).then(down).then(up).rounds, 3);
        assert_eq!(up.then(down).then(down.then(up)).rounds, 3);
        assert_eq!(Cost::NONE.then(up), up);
        assert_eq!(up.then(Cost::NONE), up);
        assert_eq!([up, down].into_iter().collect::<Cost>().bytes(), 21);
    }
}
