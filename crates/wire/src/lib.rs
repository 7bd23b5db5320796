//! Typed messages over framed, blocking, metered channels.

mod admission;
mod channel;
mod cost;
mod error;
pub mod fleet;
mod frame;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
mod lanes;
mod message;
mod meter;
pub mod tags;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod transport;

pub use admission::{Admission, Admitted};
pub use channel::{Channel, Meanwhile, Transport};
pub use cost::{Cost, HEADER_LEN, Role};
pub use error::{Error, Result, TransportError, TransportKind};
pub use fleet::Followed;
pub use frame::{MOST_BODY, decode_frame, encode_frame};
pub use lanes::{Lane, Lanes, Values};
pub use message::{Message, Packed, Segment};
pub use meter::{Entry, Meter, Phase};
pub use transport::following::{Dial, Way, ask_door, following_by, show_ticket};
pub use transport::link::Link;
pub use transport::memory::memory_pair;
#[cfg(not(target_arch = "wasm32"))]
pub use transport::sockets::*;
