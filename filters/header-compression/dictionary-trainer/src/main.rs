//! `dictionary-trainer`: reads traces and writes a dictionary file.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use dictionary_trainer::{common, file, pages, questions, traces, votes};
use header_codec::Dictionary;

const USAGE: &str = "\
usage: dictionary-trainer --id NUMBER --out FILE --samples FOLDER [--pages FOLDER] TRACE...

Trains a dictionary for header-codec. TRACE is a file (.json story, .har, .qif, .txt) or a folder of them; what is
common to them goes into the dictionary. --samples are traces written by hand, all of whose values go in. From --pages
only statistics of the URLs in saved pages are taken. A dictionary that has shipped is never trained again under its id.";

/// Binary logarithm of the number of slots: 64 Ki slots of two bytes. Half as many make messages 2 % larger, and twice
/// as many make them 2 % smaller.
const SLOT_BITS: u32 = 16;
/// Pieces of a trace that train the beginning of a connection.
const BEGINNINGS: usize = 12;

struct Arguments {
    id: u8,
    out: PathBuf,
    samples: PathBuf,
    pages: Option<PathBuf>,
    traces: Vec<PathBuf>,
}

fn arguments() -> Result<Arguments, Box<dyn Error>> {
    let (mut id, mut out, mut samples, mut pages, mut traces) = (None, None, None, None, Vec::new());
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        let mut path = || words.next().map(PathBuf::from).ok_or(USAGE);
        match word.to_str() {
            Some("--id") => id = Some(path()?.to_string_lossy().parse()?),
            Some("--out") => out = Some(path()?),
            Some("--samples") => samples = Some(path()?),
            Some("--pages") => pages = Some(path()?),
            Some(option) if option.starts_with('-') => return Err(USAGE.into()),
            _ => traces.push(PathBuf::from(word)),
        }
    }
    Ok(Arguments { id: id.ok_or(USAGE)?, out: out.ok_or(USAGE)?, samples: samples.ok_or(USAGE)?, pages, traces })
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments = arguments()?;
    let read = |path: &PathBuf| traces::read(path);
    let found = arguments.traces.iter().map(read).collect::<Result<Vec<_>, _>>()?.concat();
    let sample_folders = ["requests", "responses"].map(|folder| arguments.samples.join(folder));
    let samples = sample_folders.iter().map(read).collect::<Result<Vec<_>, _>>()?.concat();
    let common = common::pick(&found, &samples);
    let blank = vec![[0, 0]; 1 << SLOT_BITS];
    let untrained = file::write(arguments.id, &common, SLOT_BITS, &blank)?;
    let dictionary = Dictionary::from_bytes(&untrained).ok_or("the file just written is not a valid dictionary")?;
    println!(
        "{} names, {} bytes of text, {} and {} blocks",
        common.names.len(),
        untrained.len() - (2 << SLOT_BITS),
        common.blocks[0].len(),
        common.blocks[1].len()
    );
    let mut asked = Vec::new();
    if let Some(folder) = &arguments.pages {
        let urls = pages::urls(folder)?;
        println!("{} URLs from pages", urls.len());
        asked.extend(questions::of_urls(&dictionary, &urls)?);
    }
    for trace in found.iter().chain(&samples) {
        asked.extend(questions::of_trace(&dictionary, trace)?);
        asked.extend(questions::of_beginnings(&dictionary, trace, BEGINNINGS)?);
    }
    println!("{} decisions", asked.iter().map(questions::Questions::len).sum::<usize>());
    let slots = votes::learn(&asked, SLOT_BITS, |what, bytes| println!("{what}: {bytes:.0} bytes"));
    std::fs::write(&arguments.out, file::write(arguments.id, &common, SLOT_BITS, &slots)?)?;
    println!("wrote {}", arguments.out.display());
    Ok(())
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
