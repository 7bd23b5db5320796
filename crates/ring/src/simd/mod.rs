//! The vector instructions of this machine, found once at run time. Code that
//! uses them is chosen by a [`Level`], which exists only where they do; tests
//! run every level the machine has.

#![allow(unsafe_code)]

use std::sync::OnceLock;

pub(crate) mod bits;
pub(crate) mod plane;

/// Vector instructions a [`Level`] stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Portable code.
    Scalar,
    /// AVX2, AES-NI and PCLMULQDQ.
    Avx2,
    /// AVX-512 F, BW, DQ and VL, and all of [`Width::Avx2`]. Code for it keeps to
    /// 256 bits: wider vectors slow the clock of the whole core on many machines.
    Avx512,
    /// 128-bit vectors of WebAssembly.
    #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
    Simd128,
}

/// A set of instructions that this machine has: there is no other way to get a
/// level than to detect it, so that code for it may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    width: Width,
    vaes: bool,
}

/// The level that all kernels of this process use unless they are given one.
static BEST: OnceLock<Level> = OnceLock::new();

impl Level {
    /// Portable code.
    pub const SCALAR: Self = Self { width: Width::Scalar, vaes: false };

    /// The best level of this machine.
    pub fn best() -> Self {
        *BEST.get_or_init(detect)
    }

    /// Makes this the best level of the process, in the place of what the machine has: false, and
    /// nothing done, when [`Level::best`] was asked for before.
    #[cfg(any(test, feature = "testing"))]
    pub fn make_best(self) -> bool {
        BEST.set(self).is_ok()
    }

    /// Every level of this machine, portable code first.
    #[cfg(not(target_arch = "x86_64"))]
    pub fn available() -> Vec<Self> {
        let mut all = vec![Self::SCALAR];
        all.extend(Some(detect()).filter(|best| *best != Self::SCALAR));
        all
    }

    /// Every level of this machine, portable code first.
    #[cfg(target_arch = "x86_64")]
    pub fn available() -> Vec<Self> {
        let best = detect();
        let below = |width| match best.width {
            Width::Avx512 => true,
            Width::Avx2 => width != Width::Avx512,
            Width::Scalar => false,
        };
        let wide = [Width::Avx2, Width::Avx512].into_iter().filter(|width| below(*width));
        let wide = wide.flat_map(|width| [false, true].map(|vaes| Self { width, vaes }));
        [Self::SCALAR].into_iter().chain(wide.filter(|level| best.vaes || !level.vaes)).collect()
    }

    /// Vector instructions.
    pub const fn width(self) -> Width {
        self.width
    }

    /// Whether AES and carry-less products work on 256-bit vectors (VAES and VPCLMULQDQ); never for
    /// portable code.
    pub const fn vaes(self) -> bool {
        self.vaes
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("aes")
        && is_x86_feature_detected!("pclmulqdq");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    let width = match (avx2, avx512) {
        (false, _) => Width::Scalar,
        (true, false) => Width::Avx2,
        (true, true) => Width::Avx512,
    };
    let paired = is_x86_feature_detected!("vaes") && is_x86_feature_detected!("vpclmulqdq");
    Level { width, vaes: avx2 && paired }
}

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
const fn detect() -> Level {
    Level { width: Width::Simd128, vaes: false }
}

#[cfg(not(any(target_arch = "x86_64", all(target_arch = "wasm32", target_feature = "simd128"))))]
const fn detect() -> Level {
    Level::SCALAR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_level_is_the_last_available() {
        let all = Level::available();
        assert_eq!((all[0], all.last()), (Level::SCALAR, Some(&Level::best())));
        assert!(all.iter().all(|level| level.width() != Width::Scalar || !level.vaes()));
    }

    #[test]
    fn the_best_level_does_not_change_once_it_was_used() {
        let best = Level::best();
        assert!(!Level::SCALAR.make_best());
        assert_eq!(Level::best(), best);
    }
}
