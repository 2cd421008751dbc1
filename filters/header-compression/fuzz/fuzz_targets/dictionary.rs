#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| header_compression_fuzz::targets::dictionary_file(data));
