//! Reading groups, keys and values from the tree, with a problem for each that is missing, unknown or of another kind.
//!
//! Every function here either returns a value or has added a problem and returns None; sections go on reading after a
//! None, so that one run shows all problems.

use std::path::PathBuf;

use super::diagnostic::Problem;
use super::keys::{self, DefaultValue};
use super::load::FileHashes;
use super::yaml::{self, Entry, Node, NodeValue, Place};

mod values;

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

/// The presence of a group.
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
    /// The setting `key`, where it is written. The table of keys must have it.
    pub(super) fn get(&self, key: &str) -> Option<Setting<'n>> {
        debug_assert!(keys::below(&self.name).contains(&key), "no row for `{}`", self.full(key));
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

    /// Returns whether it says that there shall be none: `off`, `false`, `null` or nothing.
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
    pub(super) fn top<'n>(&mut self, root: &'n Node) -> Option<Section<'n>> {
        let NodeValue::Map(entries) = &root.value else {
            self.problems.push(Problem::error(
                "the file is not a group of settings",
                root.place.clone(),
                format!("expected `key: value` lines, found {}", root.found()),
            ));
            return None;
        };
        self.refuse_unknown("", entries);
        let place = root.place.start..root.place.start;
        Some(Section { name: String::new(), place, entries, state: SectionState::Written })
    }

    /// The group `name` of the top; without keys where it is not written.
    pub(super) fn section<'n>(&mut self, top: &Section<'n>, name: &str) -> Section<'n> {
        let group = |place, entries, state| Section { name: name.to_owned(), place, entries, state };
        let Some(setting) = top.get(name) else { return group(top.place.clone(), &[], SectionState::Absent) };
        let place = setting.key_place.clone();
        match &setting.node.value {
            NodeValue::Map(entries) => {
                self.refuse_unknown(name, entries);
                group(place, entries, SectionState::Written)
            }
            NodeValue::Null => group(place, &[], SectionState::Written),
            _ => {
                let example = format!("write `{name}: {{ {}: ... }}`", keys::below(name).first().unwrap_or(&"key"));
                self.expected(&setting, "a group of keys", &example);
                group(place, &[], SectionState::Broken)
            }
        }
    }

    /// The keys of an item of a list.
    pub(super) fn group<'n>(&mut self, setting: &Setting<'n>, example: &str) -> Option<Section<'n>> {
        let NodeValue::Map(entries) = &setting.node.value else {
            self.expected(setting, "a group of keys", example);
            return None;
        };
        self.refuse_unknown(&setting.name, entries);
        Some(Section { name: setting.name.clone(), place: setting.place(), entries, state: SectionState::Written })
    }

    fn refuse_unknown(&mut self, section: &str, entries: &[Entry]) {
        let known = keys::below(section);
        for entry in entries.iter().filter(|entry| !known.contains(&entry.key.as_str())) {
            let title = if section.is_empty() {
                format!("unknown key `{}`", entry.key)
            } else {
                format!("unknown key `{section}.{}`", entry.key)
            };
            let help = match closest(&entry.key, &known) {
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

    /// A key that may be left out; its default is that of the table, read like a written value.
    pub(super) fn optional<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        read: impl FnOnce(&mut Self, &Setting<'_>) -> Option<T>,
    ) -> Option<T> {
        self.optional_unless(section, key, false, read)
    }

    /// A key that may be left out; its default is `computed`.
    pub(super) fn optional_or<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        computed: T,
        read: impl FnOnce(&mut Self, &Setting<'_>) -> Option<T>,
    ) -> Option<T> {
        match section.get(key) {
            Some(setting) => read(self, &setting),
            None => Some(computed),
        }
    }

    /// The same in the exceptional case of [`DefaultValue::Unless`], which has another default.
    pub(super) fn optional_unless<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        exception: bool,
        read: impl FnOnce(&mut Self, &Setting<'_>) -> Option<T>,
    ) -> Option<T> {
        if let Some(setting) = section.get(key) {
            return read(self, &setting);
        }
        let name = section.full(key);
        let text = match keys::row(&name)?.default {
            DefaultValue::Is(value) => value,
            DefaultValue::Unless { then, .. } if exception => then,
            DefaultValue::Unless { is, .. } => is,
            DefaultValue::Required(_) | DefaultValue::Derived(_) => {
                debug_assert!(false, "`{name}` has no default that can be read");
                return None;
            }
        };
        let node = yaml::parse(text, &mut self.problems)?;
        read(self, &Setting { name, node: &node, key_place: section.place.clone() })
    }
}

/// The known word that an operator may have meant.
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
