//! Fuzz targets of bundling; the command line is the [driver](fuzz_driver)'s.

mod seeds;
mod targets;
mod world;

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

    #[test]
    fn a_good_answer_gets_through_and_a_private_one_does_not() {
        let through: Vec<bool> =
            super::seeds::objects().iter().map(|seed| super::targets::fetched(seed).2.is_some()).collect();
        assert_eq!(through, [true, false, false, false]);
    }
}
