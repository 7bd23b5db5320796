//! The module `tacit._core`: converts, releases the interpreter lock, raises.

mod bench;
mod budget;
mod door;
mod errors;
mod files;
mod model;
mod server;
mod session;

use pyo3::prelude::*;

use errors::{
    BusyError, MisuseError, PeerError, RefusedError, TacitError, TransportError, UnsupportedError,
};

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("PROTOCOL", tacit::PROTOCOL)?;
    module.add("TacitError", py.get_type::<TacitError>())?;
    module.add("MisuseError", py.get_type::<MisuseError>())?;
    module.add("PeerError", py.get_type::<PeerError>())?;
    module.add("TransportError", py.get_type::<TransportError>())?;
    module.add("BusyError", py.get_type::<BusyError>())?;
    module.add("RefusedError", py.get_type::<RefusedError>())?;
    module.add("UnsupportedError", py.get_type::<UnsupportedError>())?;
    module.add_function(wrap_pyfunction!(model::compile, module)?)?;
    module.add_function(wrap_pyfunction!(model::compile_trees, module)?)?;
    module.add_function(wrap_pyfunction!(model::check_suite, module)?)?;
    module.add_function(wrap_pyfunction!(model::describe, module)?)?;
    module.add_function(wrap_pyfunction!(model::inspect, module)?)?;
    module.add_function(wrap_pyfunction!(model::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(model::plan, module)?)?;
    module.add_function(wrap_pyfunction!(model::suited_batch, module)?)?;
    module.add_function(wrap_pyfunction!(model::compare_suites, module)?)?;
    module.add_function(wrap_pyfunction!(model::link, module)?)?;
    module.add_function(wrap_pyfunction!(session::predict, module)?)?;
    module.add_function(wrap_pyfunction!(bench::bench, module)?)?;
    module.add_function(wrap_pyfunction!(bench::wanted, module)?)?;
    module.add_function(wrap_pyfunction!(bench::calibrated, module)?)?;
    module.add_function(wrap_pyfunction!(bench::compare, module)?)?;
    module.add_function(wrap_pyfunction!(bench::count, module)?)?;
    module.add_function(wrap_pyfunction!(files::public_plan, module)?)?;
    module.add_function(wrap_pyfunction!(files::plan_shape, module)?)?;
    module.add_function(wrap_pyfunction!(files::generate_keys, module)?)?;
    module.add_function(wrap_pyfunction!(files::encrypt, module)?)?;
    module.add_function(wrap_pyfunction!(files::evaluate_encrypted, module)?)?;
    module.add_function(wrap_pyfunction!(files::decrypt, module)?)?;
    module.add_function(wrap_pyfunction!(files::make_signer, module)?)?;
    module.add_function(wrap_pyfunction!(files::sign_card, module)?)?;
    module.add_function(wrap_pyfunction!(files::verified_card, module)?)?;
    module.add_function(wrap_pyfunction!(budget::client_key, module)?)?;
    module.add_function(wrap_pyfunction!(budget::ledger_name, module)?)?;
    module.add_function(wrap_pyfunction!(budget::show_budgets, module)?)?;
    module.add_function(wrap_pyfunction!(budget::set_budget, module)?)?;
    module.add_function(wrap_pyfunction!(budget::unset_budget, module)?)?;
    module.add_function(wrap_pyfunction!(budget::reset_budgets, module)?)?;
    module.add_function(wrap_pyfunction!(budget::generate_token, module)?)?;
    module.add_class::<bench::BenchServer>()?;
    module.add_class::<door::Door>()?;
    module.add_class::<session::KeptKeys>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<server::Server>()
}
