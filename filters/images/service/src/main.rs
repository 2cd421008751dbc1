//! `longhaul-images CONFIG`: the program. `longhaul run` writes its configuration and starts it.

use std::process::ExitCode;
use std::{env, fs, io};

use image_variants::Config;
use longhaul_images::sandbox::Limits;
use longhaul_images::{pool, serve, worker};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["--version"] => {
            println!("longhaul-images {}", env!("CARGO_PKG_VERSION"));
            Ok(())
        }
        [pool::WORKER, memory, cpu] => child(memory, cpu),
        [path] if !path.starts_with('-') => parent(path),
        _ => {
            eprintln!("usage: longhaul-images CONFIG, a JSON file that longhaul render writes");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("longhaul-images: {error}");
            ExitCode::FAILURE
        }
    }
}

fn child(memory: &str, cpu: &str) -> io::Result<()> {
    let number = |text: &str| text.parse().map_err(io::Error::other);
    worker::run(Limits { memory_bytes: number(memory)?, cpu_s: number(cpu)? })
}

fn parent(path: &str) -> io::Result<()> {
    let config: Config = serde_json::from_slice(&fs::read(path)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let end = side_program::asked_to_end()?;
        serve::run(config, end).await
    })
}
