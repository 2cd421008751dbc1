#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| objects_fuzz::targets::head(data));
