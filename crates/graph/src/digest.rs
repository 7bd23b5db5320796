//! What both parties may call a network, whatever the link it is offered for.

use crate::ir::Graph;
use crate::lower::without_widths;
use sha2::{Digest, Sha256};

/// Returns the SHA-256 of the public graph as [`Graph::public_json`] has it, but for share widths
/// and the extensions between them. It is the same for a compiled model and for every graph in
/// which a server offers it, whatever the link.
pub fn digest(graph: &Graph) -> [u8; 32] {
    Sha256::digest(without_widths(graph).public_json().as_bytes()).into()
}
