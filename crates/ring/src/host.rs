//! What the host tells a party of time and processes, also where there is no operating system.

/// A monotonic clock: that of the operating system, or `performance.now` in a browser and in Node.
pub use web_time::Instant;

/// Returns the number of this process; zero where a program is never forked (`wasm32`).
pub fn process() -> u32 {
    if cfg!(target_arch = "wasm32") { 0 } else { std::process::id() }
}

/// Returns how many threads a process may start to some use; zero where it cannot start any
/// (`wasm32`).
pub fn threads() -> usize {
    if cfg!(target_arch = "wasm32") {
        return 0;
    }
    std::thread::available_parallelism().map_or(1, usize::from)
}
