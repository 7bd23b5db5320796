//! What plans that save bytes estimate with: bits and bytes on the wire.
//!
//! Share widths are chosen when a model is compiled, before any protocol exists whose exact cost
//! could be asked for. Their prices are estimates, close enough to choose by: frames,
//! correlations and the few bits of masks are left out.

/// Bytes that a round is worth: what passes in half a round trip of 20 ms at 80 Mbit/s.
pub const ROUND_BYTES: u64 = 100_000;

/// Bits that the two rounds of an extension are worth where products are under encryption.
pub const EXTENSION_BITS: usize = 1 << 22;

/// Bits that two ciphertexts grow by for each input value of a product under encryption, when the
/// product gets a bit wider.
pub const INPUT_BITS: usize = 5;

/// Bits that a comparison sends for each bit that is compared.
pub const COMPARED_BITS: usize = 7;

/// Rounds of a comparison beside one for each doubling of its width.
pub const COMPARISON_ROUNDS: usize = 4;

/// Bits that an extension by a known sign sends beside the bits that it adds.
pub const EXTENDED_BITS: usize = 4;

/// Rounds of an extension by a known sign.
pub const EXTENSION_ROUNDS: usize = 2;
