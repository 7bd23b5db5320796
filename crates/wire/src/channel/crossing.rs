//! Messages of both parties that do not wait for each other.

use super::Channel;
use crate::error::Result;

impl Channel {
    /// Runs `exchange`, in which what each party says does not depend on what it hears, so that both may send and
    /// receive in any order. Its messages are counted as one run of the server's and then one of the client's.
    ///
    /// # Errors
    /// The errors of `exchange`.
    pub fn crossing<T>(&mut self, exchange: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.meter.cross();
        let done = exchange(self);
        self.meter.crossed();
        done
    }

    /// Returns whether something can be received without waiting, or the connection is gone. A transport that
    /// cannot know says that it can.
    pub fn is_ready(&mut self) -> bool {
        self.transport.is_ready()
    }
}
