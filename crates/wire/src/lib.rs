//! Typed messages over framed, blocking, metered channels.

mod channel;
mod cost;
mod error;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
mod lanes;
mod link;
mod memory;
mod message;
mod meter;
mod pin;
pub mod tags;
mod tcp;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod tls;

pub use channel::{Channel, MOST_BODY, Transport};
pub use cost::{Cost, HEADER_LEN, Role};
pub use error::{Error, Result};
pub use lanes::{Lane, Lanes, Values};
pub use link::Link;
pub use memory::memory_pair;
pub use message::{Message, Packed, Segment};
pub use meter::{Entry, Meter, Phase};
pub use pin::Pin;
pub use tcp::{Timeouts, connect, plaintext};
pub use tls::{ClientTls, Identity, ServerTls, Trust};
