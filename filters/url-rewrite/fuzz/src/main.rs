//! Fuzz targets of url-rewrite on stable Rust; the command line is the [driver](fuzz_driver)'s.

use std::process::ExitCode;
use url_rewrite_fuzz::FUZZ;

fn main() -> ExitCode {
    FUZZ.main()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_before_is_not_found_again() {
        FUZZ.repeat();
    }
}
