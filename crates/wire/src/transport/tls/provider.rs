//! The cryptography of TLS: that of AWS-LC, and the groups that keys are exchanged in.

use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{default_provider, kx_group};

/// The hybrid key exchange first; classical ones are for peers that have no other, such as balancers
/// and probes, since a party of this release always offers the first.
pub(super) fn provider() -> CryptoProvider {
    let kx_groups =
        vec![kx_group::X25519MLKEM768, kx_group::X25519, kx_group::SECP256R1, kx_group::SECP384R1];
    CryptoProvider { kx_groups, ..default_provider() }
}
