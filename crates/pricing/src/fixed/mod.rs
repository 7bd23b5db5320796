//! Prices that both parties agree on without measuring.
//!
//! Both parties derive parts of a plan from its public sizes: digits of comparisons, parameter
//! sets of correlations, packings of ciphertexts, widths of shares. They come to the same plan
//! only if they estimate with the same prices, so the constants of this module are part of the
//! protocol: changing one changes bytes on the wire, and none is ever calibrated. They were
//! rounded from measurements on machines other than the one of [`crate::Rates::reference`];
//! tests hold them within a stated factor of its rates.
//!
//! A round is priced twice, as time ([`link::ROUND_TRIP_NANOSECONDS`]) where plans save time, and
//! as bytes ([`message::ROUND_BYTES`]) where they save bytes.

pub mod lattice;
pub mod link;
pub mod message;
pub mod ot;
pub mod slots;

#[cfg(test)]
mod tests;
