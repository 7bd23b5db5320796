//! Functions of shares by garbled circuits against a client that sends anything: the server garbles,
//! and the client's results carry tags.
//!
//! | | |
//! |---|---|
//! | In | the client's committed bits of its shares mod 2^k; the server's shares and [`gc::tagged::MacKeys`] |
//! | Out | shares of `f(x)` mod 2^p; the client's are integers with tags mod 2^(p+40), the server has their keys |
//! | Reveals | nothing; labels and tables, which the client can evaluate on its committed bits alone |
//! | Security | as `gc::tagged`; that the committed bits are those of its shares is for the check to find ([`crate::auth`]) |
//! | Cost | 16 bytes, for each value 195 bits an AND gate, and `2p + 40` bits an output bit, or twice that and two more where it is clipped: 1 round ([`Checked::cost`]) |
//! | Paper | Lehmkuhl et al., Muse, USENIX Security 2021, and Chandran et al., SIMC, USENIX Security 2022 (the setting); Ball, Malkin, Rosulek, CCS 2016 |
//!
//! Truncation is free where an error of one unit is allowed: low bits of both shares are left out
//! (`skip`). No label is sent: the client's come from its commitments, the server's out of a seed.

mod ahead;
mod leaves;
mod plan;

pub use ahead::{ClientAhead, ServerAhead, client_ahead, server_ahead};
pub use leaves::Forest;
pub use plan::{Checked, client, server};
