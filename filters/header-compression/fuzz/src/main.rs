//! Fuzz targets of header-compression. The [driver](fuzz_driver) reads the command line.

mod seeds;
mod targets;

use fuzz_driver::Fuzz;

fuzz_driver::program!(Fuzz { targets: targets::TARGETS, tokens: seeds::TOKENS, folder: env!("CARGO_MANIFEST_DIR") });
