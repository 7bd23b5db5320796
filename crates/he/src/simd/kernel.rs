//! Functions of slices for every level of instructions.

/// A function of slices that runs `body` with the instructions of the level.
macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident = $body:ident($($arg:ident: $type:ty),* $(,)?)) => {
        $(#[$doc])*
        #[allow(clippy::too_many_arguments)]
        pub(crate) fn $name(level: $crate::simd::Level, $($arg: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            unsafe fn fma256($($arg: $type),*) {
                // SAFETY: the instructions are enabled.
                unsafe { $body::<std::arch::x86_64::__m256d>($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512dq")]
            #[allow(clippy::too_many_arguments)]
            unsafe fn fma512($($arg: $type),*) {
                // SAFETY: the instructions are enabled.
                unsafe { $body::<std::arch::x86_64::__m512d>($($arg),*) }
            }
            match level.0 {
                // SAFETY: a vector of one needs no instructions.
                $crate::simd::Width::Scalar => unsafe { $body::<f64>($($arg),*) },
                // SAFETY: the level says that the instructions exist.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Width::Fma256 => unsafe { fma256($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::simd::Width::Fma512 => unsafe { fma512($($arg),*) },
                #[cfg(not(target_arch = "x86_64"))]
                _ => unreachable!(),
            }
        }
    };
}
