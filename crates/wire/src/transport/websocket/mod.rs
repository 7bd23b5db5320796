//! WebSockets (RFC 6455) of browsers: a request of HTTP, and then binary frames that carry the
//! bytes of a connection.

mod frames;
mod pages;
mod upgrade;

pub(crate) use self::frames::Frames;
pub(crate) use self::pages::Sending;
pub use self::pages::{PageFile, Pages};
pub use self::upgrade::Origins;
pub(crate) use self::upgrade::Upgrade;

/// The server's end of a WebSocket, as far as it is open.
pub(crate) enum WebSocket {
    /// The request is not whole yet.
    Asked(Upgrade),
    /// Frames follow.
    Open(Frames),
    /// The browser asked for a file, which is being sent.
    Page(Sending),
}
