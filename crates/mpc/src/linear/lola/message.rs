//! The messages of a network under encryption.

use wire::{Packed, tags};

/// The bodies of one key that the server evaluates with.
pub type Bodies = Packed<{ tags::LOLA_KEYS }>;
/// Ciphertexts of a request: seed and body of each.
pub type Request = Packed<{ tags::LOLA_REQUEST }>;
/// Responses of an answer: c1 and c0 of each.
pub type Answer = Packed<{ tags::LOLA_ANSWER }>;
