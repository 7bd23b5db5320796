//! From phases and masks to shares, each party alone.
//!
//! See the sharing convention in [`super`]. P is the plaintext's width.

use ring::word::mask;

use crate::error::{Error, Result};

/// Bits that both parties keep below a value in [`exact_client`].
pub const EXACT_BITS: u32 = 4;

/// Stochastic rescale, client: the top `out_bits` of each phase mod
/// 2^phase_bits, rounded down.
///
/// # Errors
/// [`Error::Shape`] unless 1 <= out_bits <= phase_bits <= 64.
pub fn client(phases: &[u64], phase_bits: u32, out_bits: u32) -> Result<Vec<u64>> {
    let drop = dropped(phase_bits, out_bits)?;
    Ok(phases.iter().map(|phase| (phase & mask(phase_bits)) >> drop).collect())
}

/// Stochastic rescale, server: minus the top `out_bits` of each mask, which is
/// `-mask` rounded up. The sum with the client's share is `v / 2^(P-out)` within
/// [`super::noise::Noise::rescale_error`], of expectation exactly that.
///
/// # Errors
/// [`Error::Shape`] unless 1 <= out_bits <= modulus_bits <= 64.
pub fn server(masks: &[u64], modulus_bits: u32, out_bits: u32) -> Result<Vec<u64>> {
    let drop = dropped(modulus_bits, out_bits)?;
    let round = |r: &u64| ((r & mask(modulus_bits)) >> drop).wrapping_neg() & mask(out_bits);
    Ok(masks.iter().map(round).collect())
}

/// Exact mode, client: shares mod 2^(P+4) with a margin of 2^3, such that the sum
/// with [`exact_server`] is `16*v + e` with `0 < e < 16`. Dropping the low
/// `4 + s` bits exactly gives floor(v / 2^s).
///
/// # Errors
/// [`Error::Shape`] unless plain_bits + 4 <= phase_bits <= 64.
pub fn exact_client(phases: &[u64], phase_bits: u32, plain_bits: u32) -> Result<Vec<u64>> {
    let bits = plain_bits + EXACT_BITS;
    let mut shares = client(phases, phase_bits, bits)?;
    let margin = 1 << (EXACT_BITS - 1);
    shares.iter_mut().for_each(|share| *share = share.wrapping_add(margin) & mask(bits));
    Ok(shares)
}

/// Exact mode, server.
///
/// # Errors
/// [`Error::Shape`] unless plain_bits + 4 <= modulus_bits <= 64.
pub fn exact_server(masks: &[u64], modulus_bits: u32, plain_bits: u32) -> Result<Vec<u64>> {
    server(masks, modulus_bits, plain_bits + EXACT_BITS)
}

fn dropped(from: u32, to: u32) -> Result<u32> {
    if (1..=from).contains(&to) && from <= 64 {
        Ok(from - to)
    } else {
        Err(Error::shape("bits to keep", format!("1 to {from}, and at most 64"), to))
    }
}
