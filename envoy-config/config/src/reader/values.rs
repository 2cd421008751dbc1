//! Readers for the kinds of value. Each function returns the value, or adds a problem and returns None.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::{fs, io};

use ipnet::IpNet;
use sha2::{Digest, Sha256};

use super::{Reader, Setting, closest, hints};
use crate::diagnostic::Problem;
use crate::keys::{self, DefaultValue, ValueType};
use crate::names::{Host, HostName, HostPort, split_port};
use crate::yaml::NodeValue;

/// The endings that mark a file of names. No DNS name ends so.
pub(crate) const LIST_ENDINGS: &[&str] = &[".txt", ".list", ".hosts", ".conf"];

impl Reader {
    /// Adds the problem "`name`: expected ..., found ...".
    pub(crate) fn expected(&mut self, setting: &Setting<'_>, what: &str, help: &str) {
        let label = format!("expected {what}, found {}", setting.node.found());
        self.bad(setting, label, help);
    }

    pub(crate) fn bad(&mut self, setting: &Setting<'_>, label: impl Into<String>, help: &str) {
        let problem = Problem::error(format!("bad value for `{}`", setting.name), setting.place(), label);
        self.problems.push(match setting.text().and_then(hints::of_any) {
            Some(slip) => problem.help(slip),
            None if help.is_empty() => problem,
            None => problem.help(help),
        });
    }

    pub(crate) fn text<'n>(&mut self, setting: &Setting<'n>, what: &str, help: &str) -> Option<&'n str> {
        let text = setting.text();
        if text.is_none() {
            self.expected(setting, what, help);
        }
        text
    }

    /// Reads the name of a group or a link, of at most `longest` bytes.
    pub(crate) fn short_name(&mut self, setting: &Setting<'_>, longest: usize) -> Option<String> {
        let what = format!("1 to {longest} letters, digits, `-` or `_`");
        let text = self.text(setting, &what, "")?;
        let is_name = (1..=longest).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        if !is_name {
            self.expected(setting, &what, "");
        }
        is_name.then(|| text.to_owned())
    }

    /// Reads a whole number in the range of its row.
    pub(crate) fn number(&mut self, setting: &Setting<'_>) -> Option<u32> {
        let (min, max) = match value_type(setting) {
            ValueType::Number { min, max }
            | ValueType::NumberOrAuto { min, max }
            | ValueType::NumberOrWord { min, max }
            | ValueType::Numbers { min, max } => (min, max),
            _ => (0, u32::MAX),
        };
        self.number_between(setting, min, max)
    }

    /// Reads a whole number from `min` to `max`.
    pub(crate) fn number_between(&mut self, setting: &Setting<'_>, min: u32, max: u32) -> Option<u32> {
        let what = format!("a whole number from {min} to {max}");
        let text = self.text(setting, &what, "")?;
        match text.parse::<u32>() {
            Ok(number) if (min..=max).contains(&number) => Some(number),
            _ => {
                let listed = setting.name.ends_with(']');
                self.expected(setting, &what, &hints::number(text, (min, max), listed));
                None
            }
        }
    }

    pub(crate) fn boolean(&mut self, setting: &Setting<'_>) -> Option<bool> {
        self.word(setting, &[("true", true), ("false", false)])
    }

    /// Reads one of the words of its row. A switch may be written as YAML 1.1 does, too: `no`, `Yes`.
    pub(crate) fn word<T: Copy>(&mut self, setting: &Setting<'_>, words: &[(&str, T)]) -> Option<T> {
        debug_assert!(
            match value_type(setting) {
                ValueType::Words(known) => words.iter().map(|(word, _)| word).eq(known),
                ValueType::Boolean => words.iter().map(|(word, _)| *word).eq(["true", "false"]),
                _ => false,
            },
            "`{}` has other words in its row",
            setting.name
        );
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let what = format!("one of: {}", all.join(", "));
        let text = self.text(setting, &what, "")?;
        let is_switch = all.contains(&"true");
        let same = |word: &str| word == text || is_switch && switch(text).is_some_and(|on| switch(word) == Some(on));
        let found = words.iter().find(|(word, _)| same(word)).map(|(_, value)| *value);
        if found.is_none() {
            let help = closest(text, &all).map(|word| format!("did you mean `{word}`?"));
            let help = help.unwrap_or_else(|| format!("write one of: {}", all.join(", ")));
            self.expected(setting, &what, &help);
        }
        found
    }

    pub(crate) fn address(&mut self, setting: &Setting<'_>) -> Option<IpAddr> {
        let what = "an IP address such as 198.51.100.12";
        let text = self.text(setting, what, &hints::bracketed(setting.node))?;
        let address = text.parse().ok();
        if address.is_none() {
            self.expected(setting, what, &hints::address(text));
        }
        address
    }

    /// Reads `ADDRESS:PORT`. Both are required.
    pub(crate) fn socket(&mut self, setting: &Setting<'_>) -> Option<SocketAddr> {
        let example = example_socket(setting);
        let what = format!("ADDRESS:PORT such as {example}");
        let text = self.text(setting, &what, &format!("write one address, such as `{example}`"))?;
        match text.parse::<SocketAddr>() {
            Ok(socket) if socket.port() != 0 => Some(socket),
            _ => {
                self.expected(setting, &what, &hints::socket(text, example));
                None
            }
        }
    }

    /// Reads `ADDRESS[:PORT]`.
    pub(crate) fn socket_or_address(&mut self, setting: &Setting<'_>, default_port: u16) -> Option<SocketAddr> {
        let what = "an IP address with or without a port, such as 9.9.9.9 or 127.0.0.1:5353";
        let text = self.text(setting, what, "")?;
        let parsed = split_port(text).and_then(|(host, port)| {
            let Ok(Host::Address(address)) = Host::parse(host) else { return None };
            Some(SocketAddr::new(address, port.unwrap_or(default_port)))
        });
        if parsed.is_none() {
            self.expected(setting, what, &hints::resolver(text));
        }
        parsed
    }

    /// Reads `HOST:PORT`. `example` is a right one.
    pub(crate) fn host_port(&mut self, setting: &Setting<'_>, example: &str) -> Option<HostPort> {
        let what = format!("HOST:PORT such as {example}");
        let text = self.text(setting, &what, "")?;
        let parsed = HostPort::parse(text);
        if parsed.is_none() {
            let port = HostPort::parse(example).map_or(0, |example| example.port);
            self.expected(setting, &what, &hints::host_port(text, port));
        }
        parsed
    }

    pub(crate) fn network(&mut self, setting: &Setting<'_>) -> Option<IpNet> {
        let what = "an address range such as 192.0.2.0/28";
        let text = self.text(setting, what, "")?;
        let parsed = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok();
        match parsed {
            None => self.expected(setting, what, &hints::network(text)),
            Some(network) if network.addr() != network.network() => {
                let help = format!("write `{}`", network.trunc());
                self.bad(setting, format!("`{text}` has bits set behind its prefix length"), &help);
                return None;
            }
            Some(_) => {}
        }
        parsed
    }

    pub(crate) fn host_name(&mut self, setting: &Setting<'_>) -> Option<HostName> {
        let what = "a host name such as www.example.org";
        let text = self.text(setting, what, "")?;
        match HostName::parse(text) {
            Ok(name) => Some(name),
            Err(error) => {
                self.bad(setting, format!("expected {what}, found `{text}`: {error}"), &hints::host(text, true));
                None
            }
        }
    }

    pub(crate) fn host(&mut self, setting: &Setting<'_>) -> Option<Host> {
        let what = "a host name or an IP address";
        let text = self.text(setting, what, "")?;
        match Host::parse(text) {
            Ok(host) => Some(host),
            Err(error) => {
                self.bad(setting, format!("expected {what}, found `{text}`: {error}"), &hints::host(text, false));
                None
            }
        }
    }

    /// Reads `ADDRESS:PORT` or `off`. The outer None is a problem, and the inner None is `off`.
    #[allow(clippy::option_option, reason = "the reader's own None means: already reported")]
    pub(crate) fn socket_or_off(&mut self, setting: &Setting<'_>) -> Option<Option<SocketAddr>> {
        if setting.is_off() { Some(None) } else { self.socket(setting).map(Some) }
    }

    /// Reads a path, and makes it absolute from the folder of the configuration file.
    pub(crate) fn path(&mut self, setting: &Setting<'_>, what: &str) -> Option<PathBuf> {
        let text = self.text(setting, what, "")?;
        if hints::is_variable(text) || text.starts_with("~/") {
            let label = format!("expected {what}, found `{text}`: only a shell expands this");
            self.bad(setting, label, "write the whole path, such as /etc/longhaul/domains.txt");
            return None;
        }
        Some(self.resolve(text))
    }

    pub(crate) fn resolve(&self, text: &str) -> PathBuf {
        self.folder.join(Path::new(text))
    }

    /// Reports a URL in place of a name. Returns false if the value is none.
    pub(crate) fn is_url_of_name(&mut self, setting: &Setting<'_>, what: &str) -> bool {
        let Some(help) = setting.text().and_then(hints::name_in_url) else { return false };
        self.expected(setting, what, &help);
        true
    }

    /// Reports a name in place of a file with names. Returns false if the value does not look like a name.
    pub(crate) fn is_name_for_file(&mut self, setting: &Setting<'_>) -> bool {
        let text = setting.text().unwrap_or_default();
        let ends_as_file = LIST_ENDINGS.iter().any(|ending| text.ends_with(ending));
        let Some(help) = hints::name_for_file(text).filter(|_| !ends_as_file) else { return false };
        self.expected(setting, "a file with one name a line", &help);
        true
    }

    /// Returns the text of a file that a setting names.
    pub(crate) fn file_text(&mut self, setting: &Setting<'_>, path: &Path) -> Option<String> {
        let bytes = self.file_bytes(setting, path)?;
        match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let line = error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
                let title = format!("`{}` names a file that is not text", setting.name);
                let problem = Problem::error(title, setting.place(), "not UTF-8");
                self.problems.push(problem.in_file(path.to_owned(), line, 1).help("save it as UTF-8"));
                None
            }
        }
    }

    /// Returns the content of a file that a setting names.
    pub(crate) fn file_bytes(&mut self, setting: &Setting<'_>, path: &Path) -> Option<Vec<u8>> {
        match fs::read(path) {
            Ok(bytes) => {
                // The hash of the first reading counts. A file that changed between two readings then differs from it.
                self.read.entry(path.to_owned()).or_insert_with(|| Sha256::digest(&bytes).into());
                Some(bytes)
            }
            Err(error) => {
                let title = format!("`{}` names a file that cannot be read", setting.name);
                let help = match error.kind() {
                    io::ErrorKind::NotFound => "paths are relative to the folder of the configuration file",
                    io::ErrorKind::PermissionDenied => "give the user of longhaul permission to read it",
                    io::ErrorKind::IsADirectory => "name a file, not a folder",
                    _ => "name another file",
                };
                let problem = Problem::error(title, setting.place(), format!("{}: {error}", path.display()));
                self.problems.push(problem.help(help));
                None
            }
        }
    }

    /// Reads a list. Reads each item alone, so that all bad items are reported. Returns None if any item is bad.
    pub(crate) fn list<'n, T>(
        &mut self,
        setting: &Setting<'n>,
        mut read: impl FnMut(&mut Self, &Setting<'n>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let NodeValue::List(items) = &setting.node.value else {
            let help = as_list(setting);
            self.expected(setting, "a list", &help);
            return None;
        };
        let read: Vec<Option<T>> =
            items.iter().enumerate().map(|(index, node)| read(self, &setting.item(index, node))).collect();
        read.into_iter().collect()
    }

    /// Reports items that a list contains twice.
    pub(crate) fn without_duplicates<T: PartialEq>(
        &mut self,
        setting: &Setting<'_>,
        items: Option<Vec<T>>,
    ) -> Option<Vec<T>> {
        let items = items?;
        let NodeValue::List(nodes) = &setting.node.value else { return Some(items) };
        let mut clean = true;
        for (index, (item, node)) in items.iter().zip(nodes).enumerate() {
            let earlier = items.iter().take(index).position(|other| other == item).and_then(|at| nodes.get(at));
            if let Some(first) = earlier {
                self.problems.push(
                    Problem::error(
                        format!("`{}` lists the same twice", setting.name),
                        node.place.clone(),
                        "again here",
                    )
                    .and(first.place.clone(), "first here")
                    .help("remove one of the two"),
                );
                clean = false;
            }
        }
        clean.then_some(items)
    }
}

/// Returns the remedy for one value, or several with commas, in place of a list.
fn as_list(setting: &Setting<'_>) -> String {
    let Some(text) = setting.text() else { return String::new() };
    let is_list_of_ranges = matches!(value_type(setting), ValueType::Numbers { .. })
        && text.split(',').any(|item| item.trim().parse::<u32>().is_err());
    match keys::row(&setting.name).map(|row| row.default) {
        Some(DefaultValue::Is(list)) if is_list_of_ranges => format!("write a list, such as `{list}`"),
        _ => format!("write `[{text}]`"),
    }
}

/// Reads `on`, `true`, `yes` and their opposites, in any case.
pub(super) fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" => Some(true),
        "off" | "false" | "no" => Some(false),
        _ => None,
    }
}

/// Returns the socket of the setting's row, as an example: the first one of a list. Rows without one get a socket for
/// http.
fn example_socket(setting: &Setting<'_>) -> SocketAddr {
    let first = |list: &str| list.strip_prefix('[')?.split([',', ']']).next()?.parse().ok();
    let written = keys::row(&setting.name).and_then(|row| match row.default {
        DefaultValue::Is(example) | DefaultValue::Required(example) => example.parse().ok().or_else(|| first(example)),
        DefaultValue::Unless { .. } | DefaultValue::Derived(_) => None,
    });
    written.unwrap_or_else(|| SocketAddr::from(([192, 0, 2, 10], 80)))
}

/// Returns the values that a setting accepts, from its row.
pub(super) fn value_type(setting: &Setting<'_>) -> ValueType {
    let row = keys::row(&setting.name);
    debug_assert!(row.is_some(), "no row for `{}`", setting.name);
    row.map_or(ValueType::Form(""), |key| key.value)
}
