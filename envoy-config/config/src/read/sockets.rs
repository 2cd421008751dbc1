//! The sockets of one key: an address, or a list of addresses.

use crate::diagnostic::Problem;
use crate::reader::{Reader, Setting};
use crate::sockets::{NotSockets, Sockets};
use crate::yaml::NodeValue;

/// Reads `ADDRESS:PORT` or a list of them.
pub(super) fn sockets(reader: &mut Reader, setting: &Setting<'_>) -> Option<Sockets> {
    let NodeValue::List(items) = &setting.node.value else { return reader.socket(setting).map(Sockets::from) };
    let addresses = reader.list(setting, Reader::socket)?;
    let place = |index: usize| items.get(index).map_or(setting.place(), |item| item.place.clone());
    let refusal = match Sockets::new(&addresses) {
        Ok(sockets) => return Some(sockets),
        Err(NotSockets::Empty) => {
            reader.expected(setting, "at least one ADDRESS:PORT", "write [0.0.0.0:80, \"[::]:80\"]");
            return None;
        }
        Err(NotSockets::OtherPort(index)) => Problem::error(
            format!("`{}` has two ports", setting.name),
            place(index),
            "expected the port of the first address",
        )
        .and(place(0), "the first address")
        .help("moved URLs and packet rules name one port: write the same port in each address"),
        Err(NotSockets::Covered { index, by }) => Problem::error(
            format!("`{}` lists the same socket twice", setting.name),
            place(index),
            "another address covers it",
        )
        .and(place(by), "this one")
        .help("remove one of the two"),
    };
    reader.problems.push(refusal);
    None
}

/// Reads `off`, `ADDRESS:PORT` or a list of them. The outer None is a problem, and the inner None is `off`.
#[allow(clippy::option_option, reason = "the reader's own None means: already reported")]
pub(super) fn sockets_or_off(reader: &mut Reader, setting: &Setting<'_>) -> Option<Option<Sockets>> {
    if setting.is_off() { Some(None) } else { sockets(reader, setting).map(Some) }
}
