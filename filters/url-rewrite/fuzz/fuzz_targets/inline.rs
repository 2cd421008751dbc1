#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| url_rewrite_fuzz::inline(data));
