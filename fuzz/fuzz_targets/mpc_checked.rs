#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mpc::fuzzing::checked_network(data));
