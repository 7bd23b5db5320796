//! Coefficient-packed RLWE over Z_q\[X\]/(X^N + 1) with q = 2^K.
//!
//! The client encrypts its share under its own secret key, the server adds its
//! own share, multiplies by plain weights and answers with a re-randomised,
//! uniformly masked and shortened ciphertext. The client's phase and the
//! server's mask are then additive shares of the result.
//!
//! # Sharing convention
//! Let `v` be the result mod 2^P (P = `plain_bits`), `R` the server's mask mod
//! 2^K ([`Ciphertext::respond`]) and `p` the client's phase mod 2^K'
//! ([`SecretKey::decrypt`]). Then, mod 2^K,
//!
//! `v * 2^(K-P) = p * 2^(K-K') - R + noise`,
//!
//! with |noise| bounded by [`noise`]. [`rescale`] turns `p` and `-R` into shares
//! mod 2^out of `v / 2^(P-out)`.
//!
//! # Security
//! Semi-honest, under RLWE with ternary secret and deviation 3.2 ([`Params`]).
//! The client sees `c1 + pk_a*u + e1` and `c0 + pk_b*u + e0 + R`: the first is
//! pseudo-random because `u`, `e1` are fresh, the second uniform because `R` is. The noise is in
//! neither, but in the sum of both parties' shares: nothing of it is left after an exact rescale; after a
//! stochastic one it is a hint about `u` and `e1`, which `e0` makes coarse (Hint-RLWE; claims and
//! numbers in docs/protocols/circuit-privacy.md).
//! Source: Huang, Lu, Hong, Ding, "Cheetah" (USENIX Security 2022), section 3;
//! re-randomisation in place of noise flooding.

mod batch;
mod cipher;
pub mod committed;
mod compact;
pub mod direct;
mod gadget;
mod key;
pub mod noise;
mod ntt;
mod params;
pub mod rescale;
mod response;
pub(crate) mod sample;
mod unfold;

pub use batch::{Batch, Row};
pub use cipher::{Accumulator, Ciphertext, Fresh, Operand, Weights};
pub use direct::Direct;
pub use gadget::MOST_LEVELS;
pub use key::{PublicKey, SecretKey};
pub use params::{LEAST_MODULUS_BITS, Params, TABLE};
pub use rescale::EXACT_BITS;
pub use response::Response;
pub use unfold::UnfoldKey;
