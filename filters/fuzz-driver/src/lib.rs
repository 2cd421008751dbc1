//! Replays the inputs of fuzz targets on stable Rust, and writes them out for cargo-fuzz.
//!
//! `cargo test` in a crate of fuzz targets replays every seed and every file of `regressions/TARGET/`. `make fuzz` looks for
//! new inputs: cargo-fuzz starts from the same ones and mutates them, guided by coverage. A broken law leaves its input in
//! `artifacts/TARGET/`. Move that file to `regressions/TARGET/` under a name that describes it, then fix the fault.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A target: its name, its function, and the source of its seeds. The function panics where a law is broken.
pub type Target = (&'static str, fn(&[u8]), fn() -> Vec<Vec<u8>>);

/// The targets of one crate.
#[derive(Debug, Clone, Copy)]
pub struct Fuzz {
    /// Every target.
    pub targets: &'static [Target],
    /// Pieces that chance would not put together. cargo-fuzz inserts them into inputs.
    pub tokens: &'static [&'static [u8]],
    /// The folder of the crate, which holds `regressions/`.
    pub folder: &'static str,
}

impl Fuzz {
    /// Checks every seed and every regression, whole and cut short.
    ///
    /// # Panics
    /// Where one breaks a law. The output names the input.
    pub fn replay(&self) {
        for (name, check, seeds) in self.targets {
            for (number, seed) in seeds().iter().enumerate() {
                println!("{name}: seed {number}");
                whole_and_cut_short(seed, *check);
            }
            for file in files(&self.regressions(name)) {
                println!("{name}: {}", file.display());
                whole_and_cut_short(&fs::read(&file).expect("a file that was listed"), *check);
            }
        }
    }

    /// Writes each seed to a file `corpus/TARGET/seed-NUMBER`, and the tokens to `corpus/tokens` in the form of libFuzzer's
    /// dictionaries. Prints the names of the targets.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_corpus(&self) -> io::Result<()> {
        let corpus = Path::new(self.folder).join("corpus");
        for (name, _, seeds) in self.targets {
            fs::create_dir_all(corpus.join(name))?;
            for (number, seed) in seeds().iter().enumerate() {
                fs::write(corpus.join(name).join(format!("seed-{number}")), seed)?;
            }
            println!("{name}");
        }
        let escaped = |token: &&[u8]| token.iter().map(|byte| format!("\\x{byte:02x}")).collect::<String>();
        let lines: Vec<_> = self.tokens.iter().map(|token| format!("\"{}\"\n", escaped(token))).collect();
        fs::write(corpus.join("tokens"), lines.concat())
    }

    fn regressions(&self, target: &str) -> PathBuf {
        Path::new(self.folder).join("regressions").join(target)
    }
}

fn whole_and_cut_short(input: &[u8], check: fn(&[u8])) {
    for length in 0..=input.len() {
        check(&input[..length]);
    }
}

/// The files of a folder in order; none if there is no such folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    files
}
