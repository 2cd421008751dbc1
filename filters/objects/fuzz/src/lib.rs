//! Fuzz targets of objects: what the cache reads of foreign bytes. `fuzz_targets/` hands them to cargo-fuzz, and the test
//! replays their inputs on stable Rust.

mod seeds;
pub mod targets;

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
    fn the_seeds_of_the_rules_are_stored() {
        assert!(super::seeds::rules().iter().all(|seed| super::targets::read_rules(seed)));
    }

    #[test]
    fn the_seeds_of_heads_are_read() {
        assert!(super::seeds::head().iter().all(|seed| super::targets::read_head(seed)));
        assert!(
            super::seeds::head().iter().all(|seed| super::targets::read_head(&super::targets::sealed(&seed[24..])))
        );
    }
}
