//! The longhaul command. The library does all its work; see `longhaul --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    longhaul::main()
}
