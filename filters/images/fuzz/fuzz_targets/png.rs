#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| images_fuzz::targets::png(data));
