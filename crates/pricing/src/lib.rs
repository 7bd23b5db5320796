//! The only price list: what work is counted in, and what a unit of it takes.
//!
//! A protocol counts its [`Work`] by [`Unit`]; [`Rates`] say how many seconds a unit takes on a
//! machine. Rates are measured, differ from machine to machine, and only guide the party that
//! makes a plan. The constants in [`fixed`] are never measured: both parties derive parts of a
//! plan from them, so they are part of the protocol. The constants in [`equivalent`] count work
//! that has no unit of its own.

pub mod equivalent;
pub mod fixed;
pub mod rates;
pub mod unit;
pub mod work;

pub use rates::Rates;
pub use unit::Unit;
pub use work::Work;
