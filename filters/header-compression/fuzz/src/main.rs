//! Fuzz targets of header-compression; the command line is the [driver](fuzz_driver)'s.

mod seeds;
mod targets;

use std::process::ExitCode;

use fuzz_driver::Fuzz;

const FUZZ: Fuzz = Fuzz { targets: targets::TARGETS, tokens: seeds::TOKENS, folder: env!("CARGO_MANIFEST_DIR") };

fn main() -> ExitCode {
    FUZZ.main()
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_was_found_before_is_not_found_again() {
        super::FUZZ.repeat();
    }
}
