//! Runs of many seeds keep every law, and a seed repeats its run.

#![allow(clippy::panic, clippy::unwrap_used)]

use pair_simulation::{draw, run, shrink};

/// Orders of one run.
const ORDERS: usize = 40;

/// Runs one seed. A run that breaks a law is shrunk, and told with what repeats it.
fn keep_the_laws(seed: u64) -> pair_simulation::Done {
    let (set_up, orders) = draw(seed, ORDERS);
    match run(seed, &set_up, &orders) {
        Ok(done) => done,
        Err(broken) => {
            let is_same = |fewer: &[_]| run(seed, &set_up, fewer).is_err_and(|other| other.law() == broken.law());
            let shortest = shrink(orders.clone(), 300, is_same);
            let why = run(seed, &set_up, &shortest).unwrap_err();
            panic!(
                "LONGHAUL_SEED={seed} breaks: {}\n{}\nset-up: {set_up:?}\nshortest orders: {shortest:#?}",
                why.law(),
                why.seen()
            );
        }
    }
}

#[test]
fn a_thousand_bad_days() {
    let one = std::env::var("LONGHAUL_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let count = std::env::var("LONGHAUL_RUNS").ok().and_then(|runs| runs.parse::<u64>().ok()).unwrap_or(60);
    let seeds = one.map_or(0..count, |seed| seed..seed + 1);
    let (mut steps, mut simulated_ms, mut responses, mut failed, mut flights, mut packed, mut deltas) =
        (0, 0, 0, 0, 0, 0, 0);
    for seed in seeds {
        let done = keep_the_laws(seed);
        steps += done.steps;
        simulated_ms += done.simulated_ms;
        responses += done.responses;
        failed += done.failed;
        flights += done.from_flights;
        packed += done.packed;
        deltas += done.deltas;
    }
    println!(
        "{steps} steps, {} hours, {responses} responses, {failed} failed, {flights} from flights, {packed} packed, {deltas} deltas",
        simulated_ms / 3_600_000
    );
}

#[test]
fn a_seed_repeats_its_run() {
    for seed in 0..5 {
        let (set_up, orders) = draw(seed, ORDERS);
        assert_eq!(run(seed, &set_up, &orders).unwrap(), run(seed, &set_up, &orders).unwrap());
    }
}
