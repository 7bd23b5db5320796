//! Both parties on small rings, exhaustively, and at the bounds.
