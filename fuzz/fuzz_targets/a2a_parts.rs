#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rialto_fuzzed::targets::a2a_parts(bytes));
