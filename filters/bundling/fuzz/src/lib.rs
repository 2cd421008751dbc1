//! Fuzz targets of bundling. `fuzz_targets/` hands them to cargo-fuzz, and the test replays their inputs on stable Rust.

mod seeds;
pub mod targets;
mod world;

use fuzz_driver::Fuzz;

/// The targets and their inputs.
pub const FUZZ: Fuzz = Fuzz { targets: targets::TARGETS, tokens: seeds::TOKENS, folder: env!("CARGO_MANIFEST_DIR") };

#[cfg(test)]
mod tests {
    use super::FUZZ;

    #[test]
    fn no_seed_and_no_regression_breaks_a_law() {
        FUZZ.replay();
    }

    #[test]
    fn a_good_response_gets_through_and_a_private_one_does_not() {
        let through: Vec<bool> =
            super::seeds::objects().iter().map(|seed| super::targets::fetched(seed).2.is_some()).collect();
        assert_eq!(through, [true, false, false, false]);
    }
}
