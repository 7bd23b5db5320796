//! The crate from outside: random models through every pass, the lowering, the
//! interpreter and the file, against references that share no code with it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod damage;
mod exact;
mod extra_bits;
mod few_bits;
mod files;
mod float;
mod hostile;
mod lowering;
mod models;
mod never_rescaled;
mod numbers;
mod operators;
mod registered;
mod sources;
mod states;
mod transformer;
mod widths;
mod winograd;
