//! `listen.tcp`: the TCP ports beside web and DNS whose connections cross the pipe.

use crate::diagnostic::Problem;
use crate::reader::{Reader, Setting};
use crate::settings::DialledPorts;
use crate::yaml::NodeValue;

/// Reads `auto`, `off`, `all` or a list of ports. The outer None is a problem, and the inner None means `off`.
#[allow(clippy::option_option, reason = "the reader's own None means: already reported")]
pub(super) fn dialled(reader: &mut Reader, setting: &Setting<'_>) -> Option<Option<DialledPorts>> {
    if setting.is_off() {
        return Some(None);
    }
    match setting.text() {
        Some("auto") => return Some(Some(DialledPorts::Listed(DialledPorts::AUTO.into()))),
        Some("all") => return Some(Some(DialledPorts::All)),
        _ => {}
    }
    let NodeValue::List(items) = &setting.node.value else {
        reader.expected(setting, "`auto`, `off`, `all`, or a list of ports", "write `tcp: auto`, or `tcp: [22, 993]`");
        return None;
    };
    let ports = reader.list(setting, port);
    let ports = reader.without_duplicates(setting, ports)?;
    if items.is_empty() {
        reader.expected(setting, "at least one port", "write `tcp: off` if no other port crosses the pipe");
        return None;
    }
    Some(Some(DialledPorts::Listed(ports.into_iter().collect())))
}

/// Reads one port that may cross the pipe.
fn port(reader: &mut Reader, item: &Setting<'_>) -> Option<u16> {
    let port = reader.number_between(item, 1, u32::from(u16::MAX)).and_then(|port| u16::try_from(port).ok())?;
    let why = if port == DialledPorts::NEVER {
        "mail between servers would leave from the ground's address, and one client's spam would block it for all"
    } else if DialledPorts::TAKEN.contains(&port) {
        "`listen.http`, `listen.tls` and `listen.dns` take 80, 443 and 53"
    } else {
        return Some(port);
    };
    let problem = Problem::error(format!("`{}` may not be {port}", item.name), item.place(), why);
    reader.problems.push(problem.help("remove it"));
    None
}
