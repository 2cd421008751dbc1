//! The width and the colours of the output.

use std::env;
use std::io::{self, IsTerminal};

/// The width of files and pipes. Most URLs fit into it unbroken, so that `grep` finds them.
const DEFAULT_COLUMNS: usize = 140;
/// The least width. Narrower columns would hold a word each.
const LEAST_COLUMNS: usize = 40;

/// Returns the columns of the output: `$COLUMNS`, or those of the terminal, or 140.
pub(crate) fn width() -> usize {
    columns(env::var("COLUMNS").ok().as_deref(), || {
        rustix::termios::tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col))
    })
}

fn columns(variable: Option<&str>, terminal: impl Fn() -> Option<usize>) -> usize {
    let named = variable.and_then(|columns| columns.parse().ok());
    let known = named.or_else(terminal).filter(|columns| *columns > 0);
    known.unwrap_or(DEFAULT_COLUMNS).max(LEAST_COLUMNS)
}

/// Returns true if messages on stderr get colours: on a terminal that has them, unless `NO_COLOR` is set
/// (<https://no-color.org>).
pub(crate) fn stderr_has_colours() -> bool {
    let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !set("NO_COLOR") && env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

#[cfg(test)]
mod tests {
    use super::columns;

    #[test]
    fn the_variable_comes_before_the_terminal_and_the_default_comes_last() {
        assert_eq!(columns(Some("120"), || Some(100)), 120);
        assert_eq!(columns(Some("wide"), || Some(100)), 100);
        assert_eq!(columns(None, || None), 140);
        assert_eq!(columns(None, || Some(0)), 140);
        assert_eq!(columns(Some("5"), || None), 40);
    }
}
