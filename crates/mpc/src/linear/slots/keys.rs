//! The client's keys, as the server of a layer on packed slots uses them.

use he::bfv::{PublicKey, RotationKeys};

/// The client's keys that the server needs for one layer.
#[derive(Debug)]
pub struct ServerKeys {
    /// The key that re-randomises responses.
    pub public: PublicKey,
    /// Keys of at least the steps of [`Layer::rotations`](super::Layer::rotations).
    pub rotations: RotationKeys,
}
