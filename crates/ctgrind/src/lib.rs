//! Measures whether kernels take a time that depends on secrets.
//!
//! A [`Case`](case::Case) makes secrets, and runs a kernel on them. It runs in two ways:
//!
//! * Under valgrind, with the secrets marked as undefined: memcheck reports each branch on them and
//!   each address made of them, on the path that was taken (Langley, "ctgrind", 2010). The binary
//!   `ctgrind` does this.
//! * Against the clock, with fixed secrets and random ones in turns: Welch's t-test says whether the
//!   two take different times (Reparaz, Balasch, Verbauwhede, "Dude, is my code constant time?",
//!   DATE 2017). The binary `dudect` does this.
//!
//! `docs/reference/constant-time.md` has the results.

pub mod case;
pub mod cases;
pub mod level;
mod request;
pub mod run;
pub mod statistics;
pub mod valgrind;
