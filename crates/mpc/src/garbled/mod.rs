//! Functions of shares by garbled circuits: the client garbles, the server evaluates.
//!
//! | | |
//! |---|---|
//! | In | shares of `x` mod 2^n or mod p; a prepared batch of circuits ([`prepare`]) |
//! | Out | shares of `f(x)` mod 2^m or mod q |
//! | Reveals | the server's share less a uniform mask; labels |
//! | Security | semi-honest, given the OTs; hash of gates as in `ot::gates` |
//! | Cost | online the bits of x to the client, 128 bits for each of them back: 2 rounds, server first ([`Garbled::cost`]); in preprocessing [`prepare_cost`] |
//! | Paper | FALCON (Li et al., 2018), sections 5.3 and 5.4; Zahur, Rosulek, Evans (EUROCRYPT 2015); Ball, Malkin, Rosulek (CCS 2016) |
//!
//! The evaluator's input is a mask `r` that the server draws in preprocessing, uniform in the ring,
//! and whose labels it gets then as well. Online it sends `d = x_s - r`; the client's
//! input is `x_c + d`, so that the circuit adds up `(x_c + d) + r = x`. Labels of the
//! client's bits are all that is sent then, and no OT is left for the online phase.
//! Tables need nothing of the online phase, and are most of the bytes: where circuits are prepared within a run, they
//! are sent aside while the client waits ([`prepare_aside`]).
//! The outputs come as shares straight from the garbling, without gates. The client knows
//! its own share of every result beforehand.

pub mod checked;
mod online;
mod plan;
mod preprocess;
mod shape;

pub use crate::correlations::{Circuits, Prepared};
pub use gc::Ring;
pub use online::{run, run_all};
pub use plan::Garbled;
pub use preprocess::{prepare, prepare_aside, prepare_aside_costs, prepare_cost};
pub use shape::{Clip, Function};

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
