//! Work that has no unit of its own, counted in units of a kind that has one.

/// Bytes of a stream ([`crate::Unit::Stream`]) that take as long as one oblivious transfer whose
/// pad is stretched to a stream: the pad is moved and expanded to a key.
pub const STREAM_BYTES_OF_TRANSFER: f64 = 75.0;

/// Elements of a local step ([`crate::Unit::Local`]) that take as long as one multiplication of a
/// layer that the server computes in the clear.
pub const LOCAL_OF_CLEAR_MULTIPLICATION: f64 = 0.1;

/// The fewest entries of a table whose pads count as [`crate::Unit::WideEntry`] instead of
/// [`crate::Unit::Entry`].
pub const WIDE_TABLE: usize = 32;
