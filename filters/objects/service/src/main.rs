//! `longhaul-objects CONFIG`: the program. `longhaul run` writes its configuration and starts it.

use std::process::ExitCode;
use std::sync::Arc;
use std::{env, fs, io};

use longhaul_objects::{Cache, PROGRAM};
use object_config::Config;
use side_program::Options;

/// The send buffer of a connection. A small response is in it at once, and outlives this program.
const SEND_BUFFER_BYTES: usize = 1 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["--version"] => {
            println!("longhaul-objects {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        [path] if !path.starts_with('-') => run(path),
        _ => {
            eprintln!("usage: longhaul-objects CONFIG, a JSON file that longhaul render writes");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("longhaul-objects: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(path: &str) -> io::Result<()> {
    let config: Config = serde_json::from_slice(&fs::read(path)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let end = side_program::asked_to_end()?;
        let cache = Cache::open(&config)?;
        let options = Options { program: PROGRAM, listen: &config.listen, send_buffer_bytes: SEND_BUFFER_BYTES };
        side_program::serve(options, end, move |request| Arc::clone(&cache).respond(request)).await
    })
}
