//! `header-compression-fuzz [--seconds N] [--seed S] [TARGET...]`: every target, or those named, for N seconds each.
//!
//! Exit 1 if a law was broken; the input is then in `artifacts/`. Move it to `regressions/TARGET/` under a name that
//! says what it is, and fix what it found. `TARGET FILE` runs one input.

mod driver;
mod seeds;
mod targets;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use targets::TARGETS;

fn main() -> ExitCode {
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
        && let Some((_, check, _)) = TARGETS.iter().find(|(known, ..)| known == name)
        && let Ok(input) = std::fs::read(file)
    {
        check(&input);
        return ExitCode::SUCCESS;
    }
    if let Some(unknown) = names.iter().find(|name| TARGETS.iter().all(|(known, ..)| known != name)) {
        let known: Vec<_> = TARGETS.iter().map(|(name, ..)| *name).collect();
        eprintln!("{unknown}: no such target; there are {}", known.join(", "));
        return ExitCode::from(2);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let regressions = folder.join("regressions");
    let found = std::env::var_os("LONGHAUL_FUZZ_ARTIFACTS").map_or_else(|| folder.join("artifacts"), PathBuf::from);
    let mut code = ExitCode::SUCCESS;
    for target in TARGETS.iter().filter(|(name, ..)| names.is_empty() || names.iter().any(|wanted| wanted == name)) {
        let run = driver::run(target, Duration::from_secs(seconds), seed, &regressions, &found);
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
