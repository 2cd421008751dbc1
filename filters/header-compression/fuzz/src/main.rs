//! Fuzz targets of header-compression; the command line is the [driver](fuzz_driver)'s.

mod seeds;
mod targets;

use fuzz_driver::Fuzz;

fuzz_driver::program!(Fuzz { targets: targets::TARGETS, tokens: seeds::TOKENS, folder: env!("CARGO_MANIFEST_DIR") });
