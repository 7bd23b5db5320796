//! The server as operators run it: who is admitted and when, what each client may ask, and what
//! an operator sees of it. The protocols are in the crates below.

mod door;
mod event;
mod gate;
mod limits;
mod options;
mod server;
mod shared;
mod visit;

pub use event::{End, Event};
pub use limits::{Limits, free_memory, raise_descriptors};
pub use options::{Access, Options};
pub use server::Server;
pub use visit::Model;
