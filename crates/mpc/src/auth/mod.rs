//! Values of a client that it cannot change: bits committed by correlated OT, integers with tags, and
//! the check of linear relations among them.
//!
//! | | |
//! |---|---|
//! | In | correlated OTs with the server as their sender; the client's bits; the server's `gc::tagged::MacKeys` |
//! | Out | the client's integers `v` with tags `m = alpha*v + beta` mod 2^(k+40); the server's `beta` |
//! | Reveals | corrections, masked by random choices; in the check 64 masked combinations, and whether tags are equal |
//! | Security | against a client that sends anything and a server that is semi-honest; a server that sends anything learns one bit at most, which is whether the check holds |
//! | Cost | [`commit_cost`], [`tag_cost`], [`check_cost`] |
//! | Paper | Cramer, Damgard, Escudero, Scholl, Xing, SPDZ2k, CRYPTO 2018; Lehmkuhl, Mishra, Srinivasan, Popa, Muse, USENIX Security 2021 (the setting) |
//!
//! Tags are linear: what both parties apply to their parts ([`Values::linear`], [`Keys::linear`])
//! gives the result's tags without a message. Phases of RLWE are linear in the secret key, to which
//! the client commits (`lattice`). Whole networks run on these in [`crate::checked`].

mod check;
mod combine;
mod commit;
#[cfg(any(test, feature = "testing"))]
mod insist;
mod lattice;
mod shifted;
mod tag;
mod values;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

pub use check::{
    BOUND, COMBINATIONS, COVER_BITS, SmallKeys, SmallValues, check_client, check_cost,
    check_server, cover_planes,
};
pub(crate) use commit::commit_with;
pub use commit::{ClientBits, ServerBits, accept, accept_random, commit, commit_cost, random};
#[cfg(any(test, feature = "testing"))]
pub use insist::insist_client;
pub use lattice::{
    AcceptedKey, ClientKey, CommittedKey, KeyTags, ServerKey, TaggedKey, accept_key, commit_key,
    key_costs, key_ots,
};
pub use shifted::{ClientShift, ServerShift, Shifted};
pub use tag::{tag_client, tag_cost, tag_server};
pub use values::{Keys, Values};
