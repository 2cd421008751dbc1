//! The longhaul command. Everything it does is in the library; see `longhaul --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    longhaul::cli::main()
}
