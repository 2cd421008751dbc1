//! `longhaul-objects CONFIG`: the program. `longhaul run` writes its configuration and starts it.

use std::convert::Infallible;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::{env, fs, io};

use bytes::Bytes;
use http_body_util::Full;
use hyper::Response;
use longhaul_objects::{Cache, PROGRAM, sandbox};
use object_config::Config;
use object_store::Folder;
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
        let folder = Folder::make(&config.folder)?;
        let options = |listener| Options { program: PROGRAM, listener, send_buffer_bytes: SEND_BUFFER_BYTES };
        let requests = options(side_program::listen(&config.listen)?);
        let counters = options(side_program::listen(&config.metrics)?);
        // Before the first thread: threads inherit what is left of the rights of their parent.
        for missing in sandbox::close(folder.as_fd()) {
            side_program::line(PROGRAM, &missing);
        }
        let cache = Cache::open(&config, folder)?;
        let counted = Arc::clone(&cache);
        let respond =
            move |_| std::future::ready(Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(counted.metrics()))));
        tokio::spawn(side_program::serve(counters, std::future::pending(), respond));
        side_program::line(PROGRAM, "ready");
        side_program::serve(requests, end, move |request| Arc::clone(&cache).respond(request)).await;
        Ok(())
    })
}
