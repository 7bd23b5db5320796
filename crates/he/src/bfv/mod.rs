//! Slot-packed encryption: BFV with residue numbers.
//!
//! A plaintext has N slots mod a prime p, two rows of N/2, that are added and multiplied
//! one by one; rotations turn both rows. A ciphertext has a modulus q, the product of a
//! few primes below 2^50, and phase round(q*m/p) + noise. The client encrypts, the server
//! adds, multiplies by plaintexts and rotates, and answers with [`Ciphertext::respond`].
//!
//! # Security
//! Semi-honest, under RLWE with ternary secret and deviation 3.2 ([`params::TABLE`]), and
//! circular security for the rotation keys. The server sees encryptions. The client, who
//! holds the key, sees slots plus a uniform mask, and noise that is flooded by
//! [`noise::FLOODING`] to [`noise::MOST_FLOODING`] bits, as many as the modulus has room for.
//! Source: Fan and Vercauteren, "Somewhat practical fully homomorphic encryption" (2012);
//! Juvekar, Vaikuntanathan, Chandrakasan, "GAZELLE" (USENIX Security 2018), section 3, for
//! packed linear algebra with rotations.

mod blinding;
mod cipher;
mod encoder;
mod extension;
mod key;
pub mod noise;
pub mod params;
mod product;
mod radix;
mod response;
mod ring;
mod rotation;
mod scalar;
mod switch;
mod values;
mod wide;

pub use blinding::Blinding;
pub use cipher::{Accumulator, Ciphertext, Fresh};
pub use encoder::{Encoder, PLAIN_BITS, Plain};
pub use key::{PublicKey, SecretKey};
pub use params::{Params, Switching};
pub use product::{Multiplier, RelinearizationKey};
pub use response::Response;
pub use rotation::{Hoisted, RotationKeys};
pub use scalar::Scalar;

#[cfg(test)]
pub(crate) use params::is_prime;
#[cfg(test)]
mod levels;
#[cfg(test)]
mod privacy;
