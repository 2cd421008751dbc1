//! The log of a run on stderr: its own messages, and those of Envoy and CoreDNS, in one form.
//!
//! | module | job |
//! |---|---|
//! | `record` | a message with its level and part, in each of the three forms |
//! | `envoy`, `coredns` | turn lines of these programs into records |
//! | `native` | sends a record with its fields to the journal of systemd |
//! | `handshakes` | words a refused handshake of the pair, once a minute for each reason |
//! | `pages` | remembers the last pages, by number |
//! | `waiting` | keeps what Envoy writes for the run until the run takes it |
//! | `child_output` | reads the output of a child, and never lets the child wait |
//! | `sink` | writes to stderr, and drops lines if stderr takes none |

mod child_output;
mod coredns;
mod envoy;
mod handshakes;
mod native;
mod pages;
mod record;
mod sink;
mod waiting;

pub(super) use child_output::{Dialect, follow};
pub(super) use envoy::FORMAT as ENVOY_FORMAT;
pub(super) use pages::RecentPages;
pub(crate) use record::{Form, Level};
pub(super) use sink::serves;
pub(crate) use sink::{flush, start};
pub(super) use waiting::Heard;

use record::Record;

/// Logs a message of this program.
pub(crate) fn say(level: Level, message: &str) {
    say_with(level, message, &[]);
}

/// Logs a message of this program with `fields` for the journal of systemd, such as `LONGHAUL_PROBLEM`.
pub(super) fn say_with(level: Level, message: &str, fields: &[(&str, &str)]) {
    sink::emit_with(&Record { level, part: "longhaul".to_owned(), message: message.to_owned() }, fields);
}
