#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bundling_fuzz::targets::encoder(data));
