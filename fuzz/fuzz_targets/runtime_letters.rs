#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| runtime::fuzzing::letters(data));
