//! Fuzz targets of url-rewrite on stable Rust; the command line is the [driver](fuzz_driver)'s.

fuzz_driver::program!(url_rewrite_fuzz::FUZZ);
