//! Drives a target without cargo-fuzz: regressions first, then seeds, then what grows out of them by mutation. The
//! same seed gives the same inputs.

use crate::targets::Target;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longest input that is made, in bytes. Long enough for every limit of the targets' configuration but memory.
const INPUT_BYTES: usize = 4096;
/// How many inputs are kept to mutate.
const POOL: usize = 256;

/// Pieces that matter to some target, to put where chance would not.
const TOKENS: &[&[u8]] = &[
    b"\n",
    b"\n:authority: ",
    b"\n:path: /",
    b"\n:status: 200",
    b"\ncookie: ",
    b"\nset-cookie: ",
    b"\ndate: ",
    b"\ncontent-length: ",
    b"\nreferer: http://www.example.org/",
    b"\n!",
    b"\n?",
    b"; ",
    b"; ; ",
    b"=",
    b"/",
    b"&",
    b"Sun, 06 Nov 1994 08:49:37 GMT",
    b"max-age=",
    b"99999999999999999999",
    b"example.org",
    b"bank.example",
    b"\x80\xff",
    b"\t",
    b"!!!!!!!!",
    b"~~~~~~~~",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
];

/// What a run did.
#[derive(Debug)]
pub struct Run {
    /// Inputs tried.
    pub inputs: u64,
    /// Where the input that broke a law was written, and the panic's message.
    pub failure: Option<(PathBuf, String)>,
}

/// Runs `target` for `time`. `regressions` is its folder of inputs that once failed; a new one is written to `found`.
pub fn run(target: &Target, time: Duration, seed: u64, regressions: &Path, found: &Path) -> Run {
    let (name, check, seeds) = *target;
    // A broken law is reported with its input; the default hook would only repeat it.
    std::panic::set_hook(Box::new(|_| {}));
    let mut dice = Dice(seed | 1);
    let mut given: Vec<Vec<u8>> =
        files(&regressions.join(name)).into_iter().filter_map(|file| fs::read(file).ok()).collect();
    given.extend(seeds());
    let mut grown: Vec<Vec<u8>> = Vec::new();
    let mut inputs = 0;
    let end = Instant::now() + time;
    while inputs < given.len() as u64 || Instant::now() < end {
        let input = match given.get(usize::try_from(inputs).unwrap_or(usize::MAX)) {
            Some(input) => input.clone(),
            None => mutated(&given, &grown, &mut dice),
        };
        inputs += 1;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(&input))) {
            let file = keep(found, name, &input);
            return Run { inputs, failure: Some((file, message(panic.as_ref()))) };
        }
        if grown.len() < POOL {
            grown.push(input);
        } else {
            let place = dice.below(POOL);
            grown[place] = input;
        }
    }
    Run { inputs, failure: None }
}

/// Half of the inputs come from those given, so that chance does not wear down what they say.
fn mutated(given: &[Vec<u8>], grown: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let pick = |dice: &mut Dice| {
        let pool = if grown.is_empty() || dice.below(2) == 0 { given } else { grown };
        pool[dice.below(pool.len())].clone()
    };
    let mut input = pick(dice);
    for _ in 0..=dice.below(4) {
        let at = dice.below(input.len() + 1);
        let until = (at + dice.below(16)).min(input.len());
        match dice.below(7) {
            0 => drop(input.drain(at..until)),
            1 => drop(input.splice(at..at, TOKENS[dice.below(TOKENS.len())].iter().copied())),
            2 => drop(input.splice(at..until, std::iter::once(dice.below(256) as u8))),
            3 => {
                let other = pick(dice);
                let from = dice.below(other.len() + 1);
                let piece = other[from..(from + dice.below(64)).min(other.len())].to_vec();
                drop(input.splice(at..until, piece));
            }
            4 => {
                let piece = input[at..until].repeat(dice.below(40) + 1);
                drop(input.splice(at..at, piece));
            }
            5 => input.truncate(at),
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << dice.below(8);
                }
            }
        }
    }
    input.truncate(INPUT_BYTES);
    input
}

fn keep(folder: &Path, name: &str, input: &[u8]) -> PathBuf {
    let hash = input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let file = folder.join(format!("{name}-{hash:016x}"));
    // If it cannot be written, the message still says what was broken.
    let _ = fs::create_dir_all(folder).and_then(|()| fs::write(&file, input));
    file
}

/// The files of a folder in order; none if there is no such folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without words").to_owned()
}

/// Pseudo-random numbers (xorshift64*, Vigna), so that a run can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        high as usize % limit.max(1)
    }
}
