//! Requests to valgrind: a sequence of instructions that does nothing on a processor, and that
//! valgrind takes for a call. The numbers are those of `valgrind.h` and `memcheck.h`.
//!
//! The only unsafe code of this crate. The public functions are safe to call: none of the requests
//! reads or changes memory of the program.

#![allow(unsafe_code)]

const RUNNING: usize = 0x1001;
const COUNT_ERRORS: usize = 0x1201;
/// The requests of memcheck start at the letters MC.
const MEMCHECK: usize = (b'M' as usize) << 24 | (b'C' as usize) << 16;
const MAKE_UNDEFINED: usize = MEMCHECK + 1;
const MAKE_DEFINED: usize = MEMCHECK + 2;

/// Whether this process runs under valgrind.
pub(crate) fn running() -> bool {
    request(RUNNING, 0, 0) > 0
}

/// Errors that valgrind has found so far, each time that one occurs; those that a suppression
/// names are not among them.
pub(crate) fn errors() -> usize {
    request(COUNT_ERRORS, 0, 0)
}

/// Marks plain values as undefined: memcheck then reports branches on them and accesses to memory
/// at addresses made of them.
pub(crate) fn make_undefined<T: Copy>(values: &mut [T]) {
    request(MAKE_UNDEFINED, values.as_mut_ptr().expose_provenance(), size_of_val(values));
}

/// Marks plain values as defined.
pub(crate) fn make_defined<T: Copy>(values: &mut [T]) {
    request(MAKE_DEFINED, values.as_mut_ptr().expose_provenance(), size_of_val(values));
}

/// Makes a request. Its answer is 0 where there is no valgrind.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn request(number: usize, first: usize, second: usize) -> usize {
    let arguments = [number, first, second, 0, 0, 0];
    let mut answer = 0usize;
    // SAFETY: the four rotations of rdi add up to 128 bits and restore it, and rbx is exchanged
    // with itself. Valgrind reads the arguments and writes rdx; the requests above change nothing
    // of the program but what valgrind knows about its memory.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") arguments.as_ptr(),
            inout("rdx") answer,
            options(nostack),
        );
    }
    answer
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
const fn request(_: usize, _: usize, _: usize) -> usize {
    0
}
