//! Integers mod 2^k on `u64` lanes, fixed point, k-bit packing for the wire and
//! AES-CTR randomness: the arithmetic every other crate stands on.

pub mod aes128;
pub mod bits;
pub mod cpu;
pub mod fixed;
pub mod helpers;
pub mod host;
pub mod lane;
pub mod modulus;
#[cfg(any(test, feature = "testing"))]
pub mod mutate;
pub mod pack;
pub mod plane;
pub mod prg;
pub mod random;
pub mod simd;
pub mod wipe;
pub mod word;

pub use bits::Bits;
pub use fixed::Fixed;
pub use lane::Lane;
pub use modulus::Modulus;
pub use prg::{Prg, Seed};
pub use random::Random;
pub use wipe::Wiped;
