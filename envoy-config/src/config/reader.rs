//! Reading values of a given kind from the tree, and saying what was expected where they are of another.
//!
//! Every function here either returns a value or has added a problem and returns None; sections go on reading after a
//! None, so that one run shows all problems.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use sha2::{Digest, Sha256};

use super::diagnostic::Problem;
use super::load::FileHashes;
use super::names::{Host, HostName, HostPort, split_port};
use super::units::{self, Bytes, Rate, UnitError};
use super::yaml::{Entry, Node, NodeValue, Place};

/// Collects problems; knows the folder that relative paths start from.
pub(super) struct Reader {
    pub(super) problems: Vec<Problem>,
    /// Of the files that were read.
    pub(super) read: FileHashes,
    folder: PathBuf,
}

/// A group of keys, all of which are known.
pub(super) struct Section<'n> {
    name: String,
    /// Its key, or the start of the file where it is missing.
    place: Place,
    entries: &'n [Entry],
    state: SectionState,
}

/// Whether there is anything to miss a key in.
#[derive(Clone, Copy, PartialEq)]
enum SectionState {
    Written,
    /// Not in the file.
    Absent,
    /// Not a group of keys, which has been said.
    Broken,
}

/// One value and its full name, such as `upstream.map.static.demo.test`.
#[derive(Clone)]
pub(super) struct Setting<'n> {
    pub(super) name: String,
    pub(super) node: &'n Node,
    pub(super) key_place: Place,
}

impl<'n> Section<'n> {
    pub(super) fn get(&self, key: &str) -> Option<Setting<'n>> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(Setting { name: self.full(key), node: &entry.node, key_place: entry.key_place.clone() })
    }

    fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }
}

impl<'n> Setting<'n> {
    /// Where the value stands; where there is none, its key.
    pub(super) fn place(&self) -> Place {
        if self.node.place.is_empty() { self.key_place.clone() } else { self.node.place.clone() }
    }

    pub(super) fn text(&self) -> Option<&'n str> {
        match &self.node.value {
            NodeValue::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it says that there shall be none: `off`, `false`, `null` or nothing.
    pub(super) fn is_off(&self) -> bool {
        matches!(&self.node.value, NodeValue::Null) || matches!(self.text(), Some("off" | "false"))
    }
}

impl Reader {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { problems: Vec::new(), read: FileHashes::new(), folder }
    }

    // ---- groups ----

    /// The top of the file.
    pub(super) fn top<'n>(&mut self, root: &'n Node, known: &[&str]) -> Option<Section<'n>> {
        let NodeValue::Map(entries) = &root.value else {
            self.problems.push(Problem::error(
                "the file is not a group of settings",
                root.place.clone(),
                format!("expected `key: value` lines, found {}", root.found()),
            ));
            return None;
        };
        self.refuse_unknown("", entries, known);
        let place = root.place.start..root.place.start;
        Some(Section { name: String::new(), place, entries, state: SectionState::Written })
    }

    /// The group `name` of the top; without keys where it is not written.
    pub(super) fn section<'n>(&mut self, top: &Section<'n>, name: &str, known: &[&str]) -> Section<'n> {
        let group = |place, entries, state| Section { name: name.to_owned(), place, entries, state };
        let Some(setting) = top.get(name) else { return group(top.place.clone(), &[], SectionState::Absent) };
        let place = setting.key_place.clone();
        match &setting.node.value {
            NodeValue::Map(entries) => {
                self.refuse_unknown(name, entries, known);
                group(place, entries, SectionState::Written)
            }
            NodeValue::Null => group(place, &[], SectionState::Written),
            _ => {
                let example = format!("write `{name}: {{ {}: ... }}`", known.first().unwrap_or(&"key"));
                self.expected(&setting, "a group of keys", &example);
                group(place, &[], SectionState::Broken)
            }
        }
    }

    /// The keys of an item of a list.
    pub(super) fn group<'n>(&mut self, setting: &Setting<'n>, known: &[&str], example: &str) -> Option<Section<'n>> {
        let NodeValue::Map(entries) = &setting.node.value else {
            self.expected(setting, "a group of keys", example);
            return None;
        };
        self.refuse_unknown(&setting.name, entries, known);
        Some(Section { name: setting.name.clone(), place: setting.place(), entries, state: SectionState::Written })
    }

    fn refuse_unknown(&mut self, section: &str, entries: &[Entry], known: &[&str]) {
        for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let title = if section.is_empty() {
                format!("unknown key `{}`", entry.key)
            } else {
                format!("unknown key `{section}.{}`", entry.key)
            };
            let help = match closest(&entry.key, known) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("known here: {}", known.join(", ")),
            };
            self.problems.push(Problem::error(title, entry.key_place.clone(), "not a setting").help(help));
        }
    }

    // ---- presence ----

    /// A key that must be there; `what` says what it is, with an example.
    pub(super) fn required<'n, T>(
        &mut self,
        section: &Section<'n>,
        key: &str,
        what: &str,
        read: impl FnOnce(&mut Self, &Setting<'n>) -> Option<T>,
    ) -> Option<T> {
        if let Some(setting) = section.get(key) {
            return read(self, &setting);
        }
        let label = match section.state {
            SectionState::Written => "expected in this group".to_owned(),
            SectionState::Absent => format!("no `{}` in this file", section.name),
            SectionState::Broken => return None,
        };
        let problem = Problem::error(format!("`{}` is missing", section.full(key)), section.place.clone(), label);
        self.problems.push(problem.help(format!("add {what}")));
        None
    }

    /// A key that may be left out.
    pub(super) fn optional<'n, T>(
        &mut self,
        section: &Section<'n>,
        key: &str,
        default: T,
        read: impl FnOnce(&mut Self, &Setting<'n>) -> Option<T>,
    ) -> Option<T> {
        match section.get(key) {
            Some(setting) => read(self, &setting),
            None => Some(default),
        }
    }

    // ---- kinds of value ----

    /// Adds "`name`: expected ..., found ...".
    pub(super) fn expected(&mut self, setting: &Setting<'_>, what: &str, help: &str) {
        let label = format!("expected {what}, found {}", setting.node.found());
        self.bad(setting, label, help);
    }

    pub(super) fn bad(&mut self, setting: &Setting<'_>, label: impl Into<String>, help: &str) {
        let problem = Problem::error(format!("bad value for `{}`", setting.name), setting.place(), label);
        self.problems.push(if help.is_empty() { problem } else { problem.help(help) });
    }

    pub(super) fn text<'n>(&mut self, setting: &Setting<'n>, what: &str, help: &str) -> Option<&'n str> {
        let text = setting.text();
        if text.is_none() {
            self.expected(setting, what, help);
        }
        text
    }

    fn quantity<T>(
        &mut self,
        setting: &Setting<'_>,
        what: &str,
        units: &str,
        parse: impl Fn(&str) -> Result<T, UnitError>,
    ) -> Option<T> {
        let help = format!("units: {units}");
        let text = self.text(setting, what, &help)?;
        match parse(text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.bad(setting, format!("expected {what}, found `{text}`: {error}"), &help);
                None
            }
        }
    }

    pub(super) fn duration(&mut self, setting: &Setting<'_>) -> Option<Duration> {
        self.quantity(setting, "a time such as 600ms", "us, ms, s, m, h, d", units::parse_duration)
    }

    pub(super) fn rate(&mut self, setting: &Setting<'_>) -> Option<Rate> {
        self.quantity(setting, "a rate such as 20mbit", "bit, kbit, mbit, gbit (per second)", units::parse_rate)
    }

    pub(super) fn bytes(&mut self, setting: &Setting<'_>) -> Option<Bytes> {
        self.quantity(
            setting,
            "a size such as 256kib",
            "b, kb, mb, gb, tb (decimal), kib, mib, gib, tib (binary)",
            units::parse_bytes,
        )
    }

    /// A whole number from `min` to `max`.
    pub(super) fn number(&mut self, setting: &Setting<'_>, min: u32, max: u32) -> Option<u32> {
        let what = format!("a whole number from {min} to {max}");
        let text = self.text(setting, &what, "")?;
        match text.parse::<u32>() {
            Ok(number) if (min..=max).contains(&number) => Some(number),
            _ => {
                self.expected(setting, &what, "");
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, setting: &Setting<'_>) -> Option<bool> {
        self.word(setting, &[("true", true), ("false", false)])
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(&mut self, setting: &Setting<'_>, words: &[(&str, T)]) -> Option<T> {
        let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let what = format!("one of: {}", all.join(", "));
        let text = self.text(setting, &what, "")?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let help = closest(text, &all).map(|word| format!("did you mean `{word}`?")).unwrap_or_default();
            self.expected(setting, &what, &help);
        }
        found
    }

    pub(super) fn address(&mut self, setting: &Setting<'_>) -> Option<IpAddr> {
        let (what, help) = ("an IP address such as 198.51.100.12", "names are not accepted here");
        let text = self.text(setting, what, help)?;
        let address = text.parse().ok();
        if address.is_none() {
            self.expected(setting, what, help);
        }
        address
    }

    /// `ADDRESS:PORT`, both written.
    pub(super) fn socket(&mut self, setting: &Setting<'_>) -> Option<SocketAddr> {
        let (what, help) =
            ("ADDRESS:PORT such as 0.0.0.0:80", "write an IPv6 address in brackets and quotes: \"[::]:80\"");
        let text = self.text(setting, what, help)?;
        match text.parse::<SocketAddr>() {
            Ok(socket) if socket.port() != 0 => Some(socket),
            _ => {
                self.expected(setting, what, help);
                None
            }
        }
    }

    /// `ADDRESS[:PORT]`.
    pub(super) fn socket_or_address(
        &mut self,
        setting: &Setting<'_>,
        default_port: u16,
        help: &str,
    ) -> Option<SocketAddr> {
        let what = "an IP address with or without a port, such as 9.9.9.9 or 127.0.0.1:5353";
        let text = self.text(setting, what, help)?;
        let parsed = split_port(text).and_then(|(host, port)| {
            let Ok(Host::Address(address)) = Host::parse(host) else { return None };
            Some(SocketAddr::new(address, port.unwrap_or(default_port)))
        });
        if parsed.is_none() {
            self.expected(setting, what, help);
        }
        parsed
    }

    /// `HOST:PORT`.
    pub(super) fn host_port(&mut self, setting: &Setting<'_>) -> Option<HostPort> {
        let what = "HOST:PORT such as squid.example.net:3128";
        let text = self.text(setting, what, "")?;
        let parsed = HostPort::parse(text);
        if parsed.is_none() {
            self.expected(setting, what, "");
        }
        parsed
    }

    pub(super) fn network(&mut self, setting: &Setting<'_>) -> Option<IpNet> {
        let what = "an address range such as 192.0.2.0/28";
        let text = self.text(setting, what, "")?;
        let parsed = text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)).ok();
        match parsed {
            None => self.expected(setting, what, "a single address needs no /32"),
            Some(network) if network.addr() != network.network() => {
                let help = format!("write {}", network.trunc());
                self.bad(setting, format!("`{text}` has bits set behind its prefix length"), &help);
                return None;
            }
            Some(_) => {}
        }
        parsed
    }

    pub(super) fn host_name(&mut self, setting: &Setting<'_>) -> Option<HostName> {
        let what = "a host name such as www.example.org";
        let text = self.text(setting, what, "")?;
        match HostName::parse(text) {
            Ok(name) => Some(name),
            Err(error) => {
                self.bad(
                    setting,
                    format!("expected {what}, found `{text}`: {error}"),
                    "no scheme, port, path or wildcard",
                );
                None
            }
        }
    }

    pub(super) fn host(&mut self, setting: &Setting<'_>) -> Option<Host> {
        let what = "a host name or an IP address";
        let text = self.text(setting, what, "")?;
        match Host::parse(text) {
            Ok(host) => Some(host),
            Err(error) => {
                self.bad(
                    setting,
                    format!("expected {what}, found `{text}`: {error}"),
                    "no scheme, port, path or wildcard",
                );
                None
            }
        }
    }

    /// A path, made absolute against the folder of the configuration file.
    pub(super) fn path(&mut self, setting: &Setting<'_>, what: &str) -> Option<PathBuf> {
        let text = self.text(setting, what, "")?;
        Some(self.resolve(text))
    }

    pub(super) fn resolve(&self, text: &str) -> PathBuf {
        self.folder.join(Path::new(text))
    }

    /// The text of a file that a setting names.
    pub(super) fn file_text(&mut self, setting: &Setting<'_>, path: &Path) -> Option<String> {
        match fs::read(path) {
            Ok(bytes) => match String::from_utf8(bytes) {
                Ok(text) => {
                    // The first reading counts: a file that changed between two readings differs from it.
                    self.read.entry(path.to_owned()).or_insert_with(|| Sha256::digest(&text).into());
                    Some(text)
                }
                Err(error) => {
                    let valid = error.utf8_error().valid_up_to();
                    let line = error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
                    self.problems.push(
                        Problem::error(
                            format!("`{}` names a file that is not text", setting.name),
                            setting.place(),
                            "not UTF-8",
                        )
                        .in_file(path.to_owned(), line, 1)
                        .help("save it as UTF-8"),
                    );
                    None
                }
            },
            Err(error) => {
                self.problems.push(
                    Problem::error(
                        format!("`{}` names a file that cannot be read", setting.name),
                        setting.place(),
                        format!("{}: {error}", path.display()),
                    )
                    .help("paths are relative to the folder of the configuration file"),
                );
                None
            }
        }
    }

    /// A list, each item read alone so that all bad ones are reported; None if any was.
    pub(super) fn list<'n, T>(
        &mut self,
        setting: &Setting<'n>,
        mut read: impl FnMut(&mut Self, &Setting<'n>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let NodeValue::List(items) = &setting.node.value else {
            let help = setting.text().map(|text| format!("write `[{text}]`")).unwrap_or_default();
            self.expected(setting, "a list", &help);
            return None;
        };
        let settings: Vec<Setting<'n>> = items
            .iter()
            .enumerate()
            .map(|(index, node)| Setting {
                name: format!("{}[{index}]", setting.name),
                node,
                key_place: setting.key_place.clone(),
            })
            .collect();
        let read: Vec<Option<T>> = settings.iter().map(|item| read(self, item)).collect();
        read.into_iter().collect()
    }

    /// Reports items that stand twice in a list.
    pub(super) fn without_duplicates<T: PartialEq>(
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

/// The known word an operator may have meant.
pub(super) fn closest<'w>(word: &str, known: &[&'w str]) -> Option<&'w str> {
    let word = word.to_ascii_lowercase();
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn a_slip_of_the_pen_is_recognised_and_another_word_is_not() {
        assert_eq!(closest("adresses", &["addresses", "secure_names"]), Some("addresses"));
        assert_eq!(closest("Redirect", &["redirect", "tproxy"]), Some("redirect"));
        assert_eq!(closest("colour", &["addresses", "secure_names"]), None);
    }
}
