//! Fuzz targets of bundling; the command line is the [driver](fuzz_driver)'s.

mod seeds;
mod targets;
mod world;

use fuzz_driver::Fuzz;

fuzz_driver::program!(Fuzz { targets: targets::TARGETS, tokens: seeds::TOKENS, folder: env!("CARGO_MANIFEST_DIR") });

#[cfg(test)]
mod tests {
    #[test]
    fn a_good_answer_gets_through_and_a_private_one_does_not() {
        let through: Vec<bool> =
            super::seeds::objects().iter().map(|seed| super::targets::fetched(seed).2.is_some()).collect();
        assert_eq!(through, [true, false, false, false]);
    }
}
