//! Runs of many seeds keep every law, and a seed repeats its run.
//!
//! | variable | runs |
//! |---|---|
//! | none | the first [`RUNS`] seeds |
//! | `LONGHAUL_SEED` | this seed |
//! | `LONGHAUL_RUNS` | so many seeds from 0 on |
//! | `LONGHAUL_SECONDS` | other seeds each time, for so long |

#![allow(clippy::panic, clippy::unwrap_used)]

use std::time::{Duration, Instant, SystemTime};

use pair_simulation::{Done, draw, run, shrink};

/// Seeds of a run without a variable: more than 10,000 steps, and every part of both ends.
const RUNS: u64 = 40;
/// Orders of one run.
const ORDERS: usize = 40;
/// Runs that shrinking may take.
const TRIES: usize = 1000;
/// Seeds that found faults. The README lists them.
const FAULTS: [u64; 4] = [4, 23, 43, 412];

/// Runs one seed. A run that breaks a law is shrunk, and told with what repeats it.
fn keep_the_laws(seed: u64) -> Done {
    let (set_up, orders) = draw(seed, ORDERS);
    match run(seed, &set_up, &orders) {
        Ok(done) => done,
        Err(broken) => {
            let is_same = |fewer: &[_]| run(seed, &set_up, fewer).is_err_and(|other| other.law() == broken.law());
            let shortest = shrink(orders, TRIES, is_same);
            let last = run(seed, &set_up, &shortest).unwrap_err();
            let orders: Vec<String> = shortest.iter().map(|order| format!("  {order:?}")).collect();
            panic!(
                "LONGHAUL_SEED={seed} breaks: {}\n{}\nset-up: {set_up:?}\nshortest orders:\n{}",
                last.law(),
                last.seen(),
                orders.join("\n")
            );
        }
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().unwrap())
}

/// The seeds to run. The time decides how many of them.
fn seeds() -> (std::ops::Range<u64>, Duration) {
    let ever = Duration::MAX;
    if let Some(seed) = variable("LONGHAUL_SEED") {
        return (seed..seed + 1, ever);
    }
    if let Some(seconds) = variable("LONGHAUL_SECONDS") {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        return (now.as_secs() << 20..u64::MAX, Duration::from_secs(seconds));
    }
    (0..variable("LONGHAUL_RUNS").unwrap_or(RUNS), ever)
}

#[test]
fn a_thousand_bad_days() {
    let (began, (seeds, time)) = (Instant::now(), seeds());
    let (mut sum, mut runs) = (Done::default(), 0_u32);
    for seed in seeds {
        if began.elapsed() >= time {
            break;
        }
        sum = sum + keep_the_laws(seed);
        runs += 1;
    }
    let rate = u128::from(sum.steps) * 1000 / began.elapsed().as_millis().max(1);
    println!("{runs} runs, {rate} steps a second, {:.1} simulated hours", sum.hours());
    println!("{sum:#?}");
    // A grammar that no longer reaches a protocol would keep all laws.
    if runs >= 40 {
        assert!(sum.steps > 10_000 && sum.from_flights > 0 && sum.packed > 0 && sum.deltas > 0 && sum.asked_again > 0);
        assert!(sum.failed * 10 < sum.responses, "{} of {} failed", sum.failed, sum.responses);
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
        assert_eq!(run(seed, &set_up, &orders).unwrap(), run(seed, &set_up, &orders).unwrap());
    }
}
