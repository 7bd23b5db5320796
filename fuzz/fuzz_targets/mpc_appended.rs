#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mpc::fuzzing::masked_factors(data));
