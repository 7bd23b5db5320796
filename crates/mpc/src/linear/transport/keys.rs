//! What the server needs of the client's keys.

use std::sync::Arc;

use he::rlwe::{Params, PublicKey, UnfoldKey};

/// The client's keys on the server.
#[derive(Clone, Copy, Debug)]
pub struct ServerKeys<'a> {
    /// A key of the degree of the layer.
    pub public: &'a PublicKey,
    /// The key for layers that are folded.
    pub unfold: Option<&'a UnfoldKey>,
}

impl ServerKeys<'_> {
    /// Whether they can answer a layer of `params` whose inputs are folded `levels` times.
    pub(in crate::linear) fn fit(&self, params: Params, levels: usize) -> bool {
        let unfolds = match self.unfold {
            Some(key) => key.params() == params && key.levels() >= levels,
            None => false,
        };
        params.within(&self.public.params()) && (levels == 0 || unfolds)
    }
}

impl<'a> From<&'a PublicKey> for ServerKeys<'a> {
    fn from(public: &'a PublicKey) -> Self {
        Self { public, unfold: None }
    }
}

/// The client's keys on the server, for work that outlives a call.
#[derive(Clone, Debug)]
pub struct SharedKeys {
    /// A key of the degree of the layer.
    pub public: Arc<PublicKey>,
    /// The key for layers that are folded.
    pub unfold: Option<Arc<UnfoldKey>>,
}

impl SharedKeys {
    /// The keys as products take them.
    pub(in crate::linear) fn keys(&self) -> ServerKeys<'_> {
        ServerKeys { public: &self.public, unfold: self.unfold.as_deref() }
    }
}
