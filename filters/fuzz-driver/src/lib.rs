//! Drives fuzz targets without cargo-fuzz: regressions first, then seeds, then what grows out of them by mutation. The
//! same seed gives the same inputs.
//!
//! `NAME [--seconds N] [--seed S] [TARGET...]`: every target, or those named, for N seconds each. Exit 1 if a law was
//! broken; the input is then in `artifacts/`. Move it to `regressions/TARGET/` under a name that says what it is, and fix
//! what it found. `TARGET FILE` runs one input.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A target: its name, its function, and what makes inputs to begin with. The function panics where a law is broken.
pub type Target = (&'static str, fn(&[u8]), fn() -> Vec<Vec<u8>>);

/// Targets, and what is known of their inputs.
#[derive(Debug, Clone, Copy)]
pub struct Fuzz {
    /// Every target.
    pub targets: &'static [Target],
    /// Pieces that matter to some target, to put where chance would not.
    pub tokens: &'static [&'static [u8]],
    /// Where `regressions/` is, and where `artifacts/` will be: the folder of the crate.
    pub folder: &'static str,
}

/// The program of a crate of fuzz targets, and its test that what was found before is not found again.
#[macro_export]
macro_rules! program {
    ($fuzz:expr) => {
        fn main() -> std::process::ExitCode {
            $fuzz.main()
        }

        #[cfg(test)]
        #[test]
        fn what_was_found_before_is_not_found_again() {
            $fuzz.repeat();
        }
    };
}

impl Fuzz {
    /// The whole program, by its command line.
    pub fn main(&self) -> ExitCode {
        let mut seconds = 10;
        let mut seed = 1;
        let mut names = Vec::new();
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next().and_then(|text| text.parse().ok());
            match argument.as_str() {
                "--seconds" => seconds = number().unwrap_or(seconds),
                "--seed" => seed = number().unwrap_or(seed),
                _ => names.push(argument),
            }
        }
        if let [name, file] = names.as_slice()
            && let Some((_, check, _)) = self.targets.iter().find(|(known, ..)| known == name)
            && let Ok(input) = std::fs::read(file)
        {
            check(&input);
            return ExitCode::SUCCESS;
        }
        if let Some(unknown) = names.iter().find(|name| self.targets.iter().all(|(known, ..)| known != name)) {
            let known: Vec<_> = self.targets.iter().map(|(name, ..)| *name).collect();
            eprintln!("{unknown}: no such target; there are {}", known.join(", "));
            return ExitCode::from(2);
        }
        let folder = Path::new(self.folder);
        let regressions = folder.join("regressions");
        let found = std::env::var_os("LONGHAUL_FUZZ_ARTIFACTS").map_or_else(|| folder.join("artifacts"), PathBuf::from);
        let mut code = ExitCode::SUCCESS;
        for target in
            self.targets.iter().filter(|(name, ..)| names.is_empty() || names.iter().any(|wanted| wanted == name))
        {
            let run = run(target, self.tokens, Duration::from_secs(seconds), seed, &regressions, &found);
            match run.failure {
                None => println!("{:12} {} inputs in {seconds} s, seed {seed}: every law held", target.0, run.inputs),
                Some((file, message)) => {
                    println!("{:12} broke a law after {} inputs, seed {seed}: {message}", target.0, run.inputs);
                    println!("             the input is in {}", file.display());
                    code = ExitCode::FAILURE;
                }
            }
        }
        code
    }

    /// Every seed, and every input that once broke a law, once more.
    ///
    /// # Panics
    /// Where one breaks a law.
    pub fn repeat(&self) {
        for (name, check, seeds) in self.targets {
            seeds().iter().for_each(|seed| check(seed));
            for file in files(&Path::new(self.folder).join("regressions").join(name)) {
                println!("{}", file.display());
                match fs::read(&file) {
                    Ok(input) => check(&input),
                    Err(error) => panic!("{}: {error}", file.display()),
                }
            }
        }
    }
}

/// Longest input that is made, in bytes. Long enough for every limit of the targets' configuration but memory.
const INPUT_BYTES: usize = 4096;
/// How many inputs are kept to mutate.
const POOL: usize = 256;

/// The result of a run.
#[derive(Debug)]
struct Run {
    /// Inputs tried.
    inputs: u64,
    /// Where the input that broke a law was written, and the panic's message.
    failure: Option<(PathBuf, String)>,
}

/// Runs `target` for `time`. `regressions` is its folder of inputs that once failed; a new one is written to `found`.
fn run(target: &Target, tokens: &[&[u8]], time: Duration, seed: u64, regressions: &Path, found: &Path) -> Run {
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
            None => mutated(&given, &grown, tokens, &mut dice),
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
fn mutated(given: &[Vec<u8>], grown: &[Vec<u8>], tokens: &[&[u8]], dice: &mut Dice) -> Vec<u8> {
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
            1 => drop(input.splice(at..at, tokens[dice.below(tokens.len())].iter().copied())),
            2 => drop(input.splice(at..until, std::iter::once(dice.byte()))),
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
fn files(folder: &Path) -> Vec<PathBuf> {
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

    fn byte(&mut self) -> u8 {
        self.below(256) as u8
    }
}
