//! Runs of a simulation drawn from seeds, and the shortest list of orders that still breaks a law. Tests use it.
//!
//! A grammar that mixes everything all the time seldom reaches a deep state. So each run draws a weight for each kind of
//! order, and half of them are zero (swarm testing, Groce et al. 2012).
//!
//! | variable | runs |
//! |---|---|
//! | none | the first seeds, as many as the test says |
//! | `LONGHAUL_SEED` | this seed |
//! | `LONGHAUL_RUNS` | so many seeds from 0 on |
//! | `LONGHAUL_SECONDS` | other seeds each time, for so long |
//!
//! `LONGHAUL_TRIES` bounds the runs that the search for the shortest orders takes. With 0, a broken law is reported at once.

use std::fmt::Debug;
use std::ops::Range;
use std::time::{Duration, Instant, SystemTime};

/// Runs that shrinking may take.
const TRIES: u64 = 1000;

/// The weights of the kinds of orders in one run.
#[derive(Debug)]
pub struct Swarm {
    weights: Vec<u32>,
}

impl Swarm {
    /// Draws the weights of so many kinds. The first kind is in every run, with a weight of `first`.
    pub fn draw(random: &mut fastrand::Rng, kinds: usize, first: Range<u32>) -> Self {
        let weights = (0..kinds).map(|kind| match kind {
            0 => random.u32(first.clone()),
            _ if random.bool() => random.u32(1..20),
            _ => 0,
        });
        Self { weights: weights.collect() }
    }

    /// Draws the kind of an order.
    pub fn kind(&self, random: &mut fastrand::Rng) -> usize {
        let mut at = random.u32(0..self.weights.iter().sum::<u32>().max(1));
        let kind = self.weights.iter().position(|weight| {
            let found = at < *weight;
            at = at.saturating_sub(*weight);
            found
        });
        kind.unwrap_or(0)
    }
}

/// The seeds to run, and the time for them.
#[derive(Debug)]
pub struct Seeds {
    seeds: Range<u64>,
    end: Option<Instant>,
}

impl Seeds {
    /// Returns the seeds that the environment names. Without a variable, returns the first `runs`.
    pub fn of_environment(runs: u64) -> Self {
        if let Some(seed) = variable("LONGHAUL_SEED") {
            return Self { seeds: seed..seed + 1, end: None };
        }
        if let Some(seconds) = variable("LONGHAUL_SECONDS") {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            let end = Instant::now().checked_add(Duration::from_secs(seconds));
            return Self { seeds: now.as_secs() << 20..u64::MAX, end };
        }
        Self { seeds: 0..variable("LONGHAUL_RUNS").unwrap_or(runs), end: None }
    }
}

impl Iterator for Seeds {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.end.is_some_and(|end| Instant::now() >= end) {
            return None;
        }
        self.seeds.next()
    }
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A law that a run broke.
pub trait Breach {
    /// The law, in words.
    fn law(&self) -> &str;

    /// The event that broke it.
    fn seen(&self) -> &str;
}

/// Runs the orders of a seed. A run that breaks a law is shrunk.
///
/// # Errors
/// The message names the seed that repeats the run, the law, the set-up and the shortest orders.
pub fn judged<O: Clone + Debug, D, B: Breach>(
    seed: u64,
    set_up: &impl Debug,
    orders: Vec<O>,
    mut run: impl FnMut(&[O]) -> Result<D, B>,
) -> Result<D, String> {
    let mut broken = match run(&orders) {
        Ok(done) => return Ok(done),
        Err(broken) => broken,
    };
    let law = broken.law().to_owned();
    let tries = usize::try_from(variable("LONGHAUL_TRIES").unwrap_or(TRIES)).unwrap_or(usize::MAX);
    let shortest = shrink(orders, tries, |fewer| match run(fewer) {
        Err(other) if other.law() == law => {
            broken = other;
            true
        }
        _ => false,
    });
    let orders: Vec<String> = shortest.iter().map(|order| format!("  {order:?}")).collect();
    Err(format!(
        "LONGHAUL_SEED={seed} breaks: {law}\n{}\nset-up: {set_up:?}\nshortest orders:\n{}",
        broken.seen(),
        orders.join("\n")
    ))
}

/// Leaves out orders as long as `breaks` holds of the rest: halves first, single ones last, until none can go. Takes at
/// most `tries` runs.
fn shrink<O: Clone>(mut orders: Vec<O>, tries: usize, mut breaks: impl FnMut(&[O]) -> bool) -> Vec<O> {
    let (mut left, mut size) = (tries, orders.len().div_ceil(2));
    while size > 0 && left > 0 {
        let (before, mut at) = (orders.len(), 0);
        while at < orders.len() && left > 0 {
            let mut fewer = orders.clone();
            fewer.drain(at..(at + size).min(orders.len()));
            left -= 1;
            if breaks(&fewer) {
                orders = fewer;
            } else {
                at += size;
            }
        }
        // Without one order, another one may not be needed any more.
        size = if size == 1 && orders.len() < before { 1 } else { size / 2 };
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Seven;

    impl Breach for Seven {
        fn law(&self) -> &'static str {
            "no seven before a nine"
        }

        fn seen(&self) -> &'static str {
            "it came"
        }
    }

    fn keep(orders: &[u32]) -> Result<usize, Seven> {
        let seven = orders.iter().position(|order| *order == 7);
        let breaks = seven.is_some_and(|at| orders.iter().skip(at).any(|order| *order == 9));
        if breaks { Err(Seven) } else { Ok(orders.len()) }
    }

    #[test]
    fn a_run_that_breaks_a_law_is_told_with_its_shortest_orders() {
        let told = judged(5, &(), (0..60).collect(), keep).unwrap_err();
        assert_eq!(
            told,
            "LONGHAUL_SEED=5 breaks: no seven before a nine\nit came\nset-up: ()\nshortest orders:\n  7\n  9"
        );
        assert_eq!(judged(5, &(), (8..60).collect(), keep), Ok(52));
    }

    #[test]
    fn a_seed_draws_the_same_kinds_again_and_every_run_has_the_first() {
        let kinds = |seed| {
            let mut random = fastrand::Rng::with_seed(seed);
            let swarm = Swarm::draw(&mut random, 9, 10..60);
            (0..40).map(|_| swarm.kind(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(kinds(3), kinds(3));
        assert_ne!(kinds(3), kinds(4));
        assert!((0..50).all(|seed| kinds(seed).contains(&0)));
    }
}
