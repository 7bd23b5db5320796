//! The messages that linear layers have in common: ciphertexts to the server, masked responses
//! back, in messages of about a megabyte.

pub(super) mod bfv;
mod chunks;
mod keys;
pub(super) mod rlwe;
mod worker;

use wire::Error;

pub(super) use chunks::{Received, chunks, seed_of, send_chunks, words_of};
pub use keys::{ServerKeys, SharedKeys};
pub use worker::Worker;

/// An error of the encryption, as an invalid call.
pub(super) fn misuse(error: he::Error) -> Error {
    Error::misuse(error.to_string())
}
