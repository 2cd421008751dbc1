//! Runs in one process, without a child and without waiting: a thousand bad days with a seed.
//!
//! The shipped code runs as it is. [`machine`] carries its effects out in a [`world`]. The README says more.
//!
//! | module | what |
//! |---|---|
//! | `envoys` | Envoy's processes, with the rules of hot restart |
//! | `children` | CoreDNS, and a program beside Envoy |
//! | `files`, `disk` | configuration files with faults, and a disk that may be full |
//! | `orders` | a set-up and a list of orders, drawn from a seed |
//! | `laws`, `judge` | the laws that every run keeps |
//!
//! The same seed gives the same run. `swarm` lists the variables that choose the seeds.

mod children;
mod disk;
mod envoys;
mod files;
mod judge;
mod laws;
mod machine;
mod orders;
mod world;

use std::time::Instant;

use swarm::{Seeds, judged};

use machine::run;
use orders::draw;
use world::Done;

/// Seeds of a run without a variable.
const RUNS: u64 = 100;
/// Orders of one run.
const ORDERS: usize = 40;
/// Seeds that found faults. The README lists them.
const FAULTS: [u64; 16] = [3, 10, 18, 33, 43, 46, 72, 94, 231, 300, 777, 945, 1467, 2594, 2921, 3107];

/// Runs one seed, and fails with the shortest orders that break a law.
fn keep_the_laws(seed: u64) -> Done {
    let (set_up, orders) = draw(seed, ORDERS);
    judged(seed, &set_up, orders, |orders| run(&set_up, orders)).unwrap_or_else(|told| panic!("{told}"))
}

#[test]
fn a_thousand_bad_days() {
    let began = Instant::now();
    let (mut sum, mut runs) = (Done::default(), 0_u32);
    for seed in Seeds::of_environment(RUNS) {
        sum = sum + keep_the_laws(seed);
        runs += 1;
    }
    let rate = u128::from(sum.steps) * 1000 / began.elapsed().as_millis().max(1);
    println!("{runs} runs, {rate} steps a second, {} simulated hours", sum.ms / 3_600_000);
    println!("{sum:#?}");
    // A grammar that no longer reaches a part would keep all laws.
    if runs >= 100 {
        assert!(sum.steps > 100_000 && sum.applied > 0 && sum.refused > 0 && sum.unwritten > 0 && sum.unconfirmed > 0);
        assert!(sum.takeovers > 0 && sum.failed_takeovers > 0 && sum.given_up > 0 && sum.restarts > 0);
        assert!(sum.drains > 0);
    }
}

#[test]
fn seeds_that_found_faults_keep_the_laws() {
    for seed in FAULTS {
        keep_the_laws(seed);
    }
}

#[test]
fn a_seed_repeats_its_run() {
    for seed in 0..5 {
        let (set_up, orders) = draw(seed, ORDERS);
        assert_eq!(run(&set_up, &orders), run(&set_up, &orders));
    }
}
