//! Circuits against integers, garbled circuits against clear ones.

mod arithmetic;
mod garbled;
