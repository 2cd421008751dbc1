//! Runs of many seeds keep every law, and a seed repeats its run. `swarm` lists the variables that choose the seeds.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::time::Instant;

use pair_simulation::{Done, Order, SetUp, draw, run};
use swarm::{Seeds, judged};

/// Seeds of a run without a variable: more than 10,000 steps, and every part of both ends.
const RUNS: u64 = 40;
/// Orders of one run.
const ORDERS: usize = 40;
/// Seeds that found faults, of the code or of a law's bounds. The README lists them.
const FAULTS: [u64; 8] = [4, 23, 43, 412, 1090, 1140, 1239, 1_883_097_081_577_500];

/// Runs one seed, and fails with the shortest orders that break a law.
fn keep_the_laws(seed: u64) -> Done {
    let (set_up, orders) = draw(seed, ORDERS);
    follow(seed, &set_up, orders)
}

fn follow(seed: u64, set_up: &SetUp, orders: Vec<Order>) -> Done {
    judged(seed, set_up, orders, |orders| run(seed, set_up, orders)).unwrap_or_else(|told| panic!("{told}"))
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
    println!("{runs} runs, {rate} steps a second, {:.1} simulated hours", sum.hours());
    println!("{sum:#?}");
    // A grammar that no longer reaches a protocol would keep all laws.
    if runs >= 40 {
        assert!(sum.steps > 10_000 && sum.from_flights > 0 && sum.packed > 0 && sum.deltas > 0 && sum.asked_again > 0);
        assert!(sum.told > 0 && sum.bypassed > 0 && sum.from_cache[..3].iter().all(|count| *count > 0));
        assert!(sum.failed * 10 < sum.responses, "{} of {} failed", sum.failed, sum.responses);
    }
}

#[test]
fn seeds_that_found_faults_keep_the_laws() {
    for seed in FAULTS {
        let (set_up, orders) = draw(seed, ORDERS);
        follow(seed, &set_up.without_cache(), orders);
    }
}

#[test]
fn a_seed_repeats_its_run() {
    for seed in 0..5 {
        let (set_up, orders) = draw(seed, ORDERS);
        assert_eq!(run(seed, &set_up, &orders).unwrap(), run(seed, &set_up, &orders).unwrap());
    }
}
