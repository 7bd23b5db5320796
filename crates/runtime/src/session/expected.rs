//! What a request says of the session that a client expects (`known.rs` says when it does).

use zeroize::Zeroize;

/// The largest number of inputs of one session.
pub const MOST_INPUTS: u32 = 1_000_000;
/// Most bytes that a client sends on before the server has answered.
pub(crate) const MOST_AHEAD: u32 = 4 << 20;

/// What a request says of the session that the client expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Zeroize)]
pub(crate) struct Expected {
    /// The digest of the offer.
    pub(crate) digest: [u8; 32],
    /// How many inputs there are, 1 to [`MOST_INPUTS`].
    pub(crate) inputs: u32,
    /// Bytes that follow the request, headers included.
    pub(crate) ahead: u32,
}

impl Expected {
    /// Bytes in a request; all zero where nothing is expected.
    pub(crate) const LEN: usize = 32 + 4 + 4;

    pub(crate) fn encode(expected: Option<Self>, out: &mut Vec<u8>) {
        let Self { digest, inputs, ahead } =
            expected.unwrap_or(Self { digest: [0; 32], inputs: 0, ahead: 0 });
        out.extend(digest);
        out.extend(inputs.to_le_bytes());
        out.extend(ahead.to_le_bytes());
    }

    /// What was encoded; `None` for bytes that nothing is encoded as.
    pub(crate) fn decode(bytes: &[u8; Self::LEN]) -> Option<Option<Self>> {
        if *bytes == [0; Self::LEN] {
            return Some(None);
        }
        let (digest, rest) = bytes.split_first_chunk()?;
        let (inputs, ahead) = rest.split_first_chunk()?;
        let inputs = u32::from_le_bytes(*inputs);
        let ahead = u32::from_le_bytes(ahead.try_into().ok()?);
        let is_legal = *digest != [0; 32]
            && (1..=MOST_INPUTS).contains(&inputs)
            && (1..=MOST_AHEAD).contains(&ahead);
        is_legal.then_some(Some(Self { digest: *digest, inputs, ahead }))
    }
}
