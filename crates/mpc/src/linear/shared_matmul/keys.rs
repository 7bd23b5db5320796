//! What the server needs of the client's keys.

use he::rlwe::{PublicKey, UnfoldKey};

/// The client's keys on the server.
#[derive(Clone, Copy, Debug)]
pub struct ServerKeys<'a> {
    /// A key of the degree of the layer.
    pub public: &'a PublicKey,
    /// The key for layers that are folded.
    pub unfold: Option<&'a UnfoldKey>,
}

impl<'a> From<&'a PublicKey> for ServerKeys<'a> {
    fn from(public: &'a PublicKey) -> Self {
        Self { public, unfold: None }
    }
}
