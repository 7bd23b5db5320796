//! What carries bytes between the parties, and links that are imitated.
//!
//! Sockets, TLS and files of keys are for programs; in a browser (`wasm32`) the page has the
//! connection, and a transport of its own passes bytes to it.

pub(crate) mod following;
#[cfg_attr(target_arch = "wasm32", allow(dead_code, reason = "only sockets are shaped"))]
pub(crate) mod link;
pub(crate) mod memory;

#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod authority;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod certificate;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod incoming;
#[cfg(not(target_arch = "wasm32"))]
mod key_file;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod pin;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod proxy;
#[cfg(not(target_arch = "wasm32"))]
mod revocation;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod tcp;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod tls;
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod websocket;

/// What other crates see of sockets and TLS.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) mod sockets {
    pub use super::following::following;
    pub use super::incoming::{Arrival, Incoming};
    pub use super::pin::Pin;
    pub use super::proxy::proxy_header;
    pub use super::tcp::{Timeouts, connect, plaintext};
    pub use super::tls::{ClientTls, Identity, Members, ServerTls, Trust};
    pub use super::websocket::{Origins, PageFile, Pages};
}
