#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| rialto_fuzzed::targets::encoding(bytes));
