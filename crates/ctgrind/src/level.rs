//! The instructions that kernels are measured with.

use ring::simd::{Level, Width};

/// The name of a level: `portable`, `avx2`, `avx512`, with `+vaes` where vectors have AES.
pub fn name(level: Level) -> String {
    let width = match level.width() {
        Width::Scalar => "portable",
        Width::Avx2 => "avx2",
        Width::Avx512 => "avx512",
    };
    format!("{width}{}", if level.vaes() { "+vaes" } else { "" })
}

/// Makes the named level that of all kernels of this process. False when the machine, or the one
/// that valgrind imitates, has no such level, or when the process has used another.
pub fn choose(wanted: &str) -> bool {
    let level = Level::available().into_iter().find(|level| name(*level) == wanted);
    level.is_some_and(Level::make_best)
}

/// The names of all levels of this machine, portable code first.
pub fn all() -> Vec<String> {
    Level::available().into_iter().map(name).collect()
}
