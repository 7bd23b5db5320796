//! Private neural-network inference between two parties. A client holds an input,
//! a server holds the weights; the client learns the result, the server nothing.
//!
//! [`compile`] turns an imported network into a [`Model`] of integers, [`simulate`]
//! runs its integers in the clear, [`serve`] and [`predict`] run it privately,
//! [`session`](fn@session) stays open between inputs.
//! [`bench`](fn@bench) measures single operations, [`budget`] counts what each client asks.

mod access;
mod again;
mod bench;
pub mod budget;
mod card;
mod compare;
mod door;
mod follow;
mod inspect;
mod membership;
mod model;
mod place;
mod planning;
mod refused;
mod revealed;
mod serving;
mod session;
mod trees;
mod trust;
mod warnings;

pub use access::TlsFiles;
pub use bench::{BenchServer, bench};
pub use card::{Card, make_signer};
pub use compare::{Suited, compare_suites};
pub use door::{DoorOptions, Doorway, door};
pub use graph::Conv;
pub use graph::Encoding;
pub use graph::{
    Calibration, FloatTensor, Floats, Means, Model, Options as CompileOptions, Ranges, Rounding,
    load, load_committed, save, save_with,
};
pub use inspect::{Inspection, TensorDescription, inspect};
pub use lab::{
    Calibrated, Compared, CotSource, Counted, Measured, Operation, Told, Took, Wanted, calibrated,
    compare, count, wanted,
};
pub use model::{
    Description, PlanOptions, Planned, compile, describe, plan, simulate, suited_batch,
};
pub use place::LedgerPlace;
pub use runtime::files::{
    Correspondent, Evaluator, KeyFiles, generate_keys, open_secret, planned_shape, public_plan,
    seal_secret,
};
pub use runtime::planner::{Alternative, Conditions, Planning, Rates, Widths};
pub use runtime::{
    Answer, KeptKeys, Offered, PROTOCOL, Plan, Provenance, Report, Reveal, Session, Settings,
    check_suite, consent,
};
pub use service::{Allocator, End, Event, Relay, Server};
pub use serving::{ModelOptions, Offering, ServeOptions, Welcome, serve};
pub use session::{Passphrase, Patience, PredictOptions, Progress, predict, session};
pub use trees::compile_trees;
pub use wire::{Error, Link, PageFile, Pages, Pin, Result, TransportError, TransportKind};
