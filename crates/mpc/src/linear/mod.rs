//! Linear layers: one module per protocol.

// coefficient
