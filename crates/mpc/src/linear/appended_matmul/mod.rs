//! Products with a matrix that keeps its entries from run to run and gets a new one in each.
//!
//! | | |
//! |---|---|
//! | In | shares mod 2^P or wider of `a`, row-major `[batch, rows, inner]`, and of `b`, `[batch, inner, columns]`. Along one axis `b` has entries that the server knows, then a window of those of the last runs, of which the last is new; before the first run they are zeros |
//! | Out | shares mod 2^out of `a*b / 2^shift`, row-major `[batch, rows, columns]`, off by less than [`noise::stochastic_error`](he::rlwe::noise::stochastic_error) except with probability 2^-40 |
//! | Reveals | to both: `a` and each entry of `b` less masks that are uniform mod 2^P |
//! | Security | semi-honest, under RLWE: masks of `a` are used once, those of an entry mask that entry alone, in all runs that read it |
//! | Cost | online P/8 bytes for each value of `a` and of the new entry, each way, 2 rounds ([`Layer::cost`]); before, for all masks of several runs, [`Layer::products`] |
//! | Paper | Beaver, "Efficient multiparty protocols using circuit randomization" (CRYPTO 1991); one mask for each value that is multiplied often: SPDZ-style fixed triples, as in CrypTen (NeurIPS 2021) |
//!
//! With `a = A + R` and `b = B + M`, where `A` and `B` were opened and `R` and `M` are sums of both
//! parties' masks, `a*b = A*(B + M) + R*B + R*M`. Shares of `R*M` come from one product of
//! shared matrices for several runs together: left factors of all runs below each other, times
//! all entries that any of them reads. Each party computes the rest in the clear. An entry is
//! opened once, in the run that appends it; parties keep the difference while runs read it.
//!
//! Entries that the server knows are its masks, and nothing of them is opened.

mod draw;
mod plan;
mod run;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;

pub use draw::{Drawn, Memory, Prepared};
pub use plan::{Axis, Layer, Shape};
