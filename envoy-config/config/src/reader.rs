//! Reads groups, keys and values from the tree. Adds a problem for each that is missing, unknown or of the wrong kind.
//!
//! Every function here returns a value, or adds a problem and returns None. Sections continue after a None, so that one
//! run shows all problems.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::diagnostic::{FileHashes, Place, Problem};
use super::keys::{self, DefaultValue, KEYS};
use super::yaml::{self, Entry, Node, NodeValue};
pub(super) use quantities::{rates_of_other_units, time_of_another_unit};
use unknown::UnknownKey;
pub(super) use values::LIST_ENDINGS;

mod hints;
mod quantities;
mod unknown;
mod values;

/// The problems so far, and the folder from which relative paths start.
pub(super) struct Reader {
    pub(super) problems: Vec<Problem>,
    /// The hashes of the files that were read.
    pub(super) read: FileHashes,
    folder: PathBuf,
    /// Full names of keys and groups that are misspelt, misplaced or already reported. They are not missing, too.
    excused: BTreeSet<String>,
}

/// A group of keys. All of its keys are known.
pub(super) struct Section<'n> {
    name: String,
    /// The place of its key, or the start of the file if the group is missing.
    place: Place,
    entries: &'n [Entry],
    state: SectionState,
}

/// The presence of a group.
#[derive(Clone, Copy, PartialEq)]
enum SectionState {
    Written,
    /// The file does not have the group.
    Absent,
    /// The value is not a group of keys. A problem has been added for it.
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
    /// Returns the setting `key` if the file has it. The table of keys, or that of cut keys, must have a row for it.
    pub(super) fn get(&self, key: &str) -> Option<Setting<'n>> {
        let has_row = || keys::below(&self.name).contains(&key) || keys::cut(&self.full(key)).is_some();
        debug_assert!(has_row(), "no row for `{}`", self.full(key));
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(Setting { name: self.full(key), node: &entry.node, key_place: entry.key_place.clone() })
    }

    /// Returns the empty place at its start.
    pub(super) fn start(&self) -> Place {
        self.place.start..self.place.start
    }

    /// Returns the group `key` of this group as if the file did not have it: every key below it has its default.
    pub(super) fn without_keys(&self, key: &str) -> Self {
        Section { name: self.full(key), place: self.place.clone(), entries: &[], state: SectionState::Absent }
    }

    fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }
}

impl<'n> Setting<'n> {
    /// Returns the place of the value, or of its key if the value is empty.
    pub(super) fn place(&self) -> Place {
        if self.node.place.is_empty() { self.key_place.clone() } else { self.node.place.clone() }
    }

    /// Returns an item of a list as a setting of its own.
    fn item(&self, index: usize, node: &'n Node) -> Self {
        Setting { name: format!("{}[{index}]", self.name), node, key_place: self.key_place.clone() }
    }

    pub(super) fn text(&self) -> Option<&'n str> {
        match &self.node.value {
            NodeValue::Scalar(text) => Some(text),
            _ => None,
        }
    }

    /// Reads a switch: `on`, `true`, `yes`, and their opposites.
    pub(super) fn switch(&self) -> Option<bool> {
        self.text().and_then(values::switch)
    }

    /// Returns true if the value is `off`, `false`, `no`, `null` or empty.
    pub(super) fn is_off(&self) -> bool {
        matches!(&self.node.value, NodeValue::Null) || self.switch() == Some(false)
    }
}

impl Reader {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { problems: Vec::new(), read: FileHashes::new(), folder, excused: BTreeSet::new() }
    }

    // ---- groups ----

    /// Returns the top of the file.
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

    /// Returns the group `name` of the top. The group has no keys if the file does not have it.
    pub(super) fn section<'n>(&mut self, top: &Section<'n>, name: &str) -> Section<'n> {
        let group = |place, entries, state| Section { name: name.to_owned(), place, entries, state };
        let Some(setting) = top.get(name) else {
            let state = if self.excused.contains(name) { SectionState::Broken } else { SectionState::Absent };
            return group(top.place.clone(), &[], state);
        };
        let place = setting.key_place.clone();
        match &setting.node.value {
            NodeValue::Map(entries) => {
                self.refuse_unknown(name, entries);
                group(place, entries, SectionState::Written)
            }
            NodeValue::Null => group(place, &[], SectionState::Written),
            _ => {
                let help = hints::group(name, setting.text());
                self.expected(&setting, "a group of keys", &help);
                group(place, &[], SectionState::Broken)
            }
        }
    }

    /// Returns the keys of a list item.
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
            let full = if section.is_empty() { entry.key.clone() } else { format!("{section}.{}", entry.key) };
            if let Some(cut) = keys::cut(&full) {
                let title = format!("`{full}` has no effect any more");
                let problem = Problem::warning(title, entry.key_place.clone(), cut.why);
                self.problems.push(problem.help(cut.instead));
                continue;
            }
            let found = UnknownKey::of(section, &entry.key, &known);
            self.excused.extend(found.meant);
            let problem = Problem::error(found.title, entry.key_place.clone(), found.label);
            self.problems.push(problem.help(found.help));
        }
    }

    /// Returns true if the key or group of this full name is misspelt or misplaced.
    pub(super) fn is_excused(&self, name: &str) -> bool {
        self.excused.contains(name)
    }

    // ---- presence ----

    /// Reads a required key. `what` describes the value, with an example.
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
        let name = section.full(key);
        if self.excused.contains(&name) {
            return None;
        }
        match section.state {
            SectionState::Broken => {}
            SectionState::Absent => {
                self.missing_group(&section.name, section.place.clone(), &written_group(&section.name));
            }
            SectionState::Written => {
                let title = format!("`{name}` is missing");
                let problem = Problem::error(title, section.place.clone(), "expected in this group");
                self.problems.push(problem.help(format!("add {what}")));
            }
        }
        None
    }

    /// Reports a group that the file must have. Reports it once, however many of its keys are required.
    pub(super) fn missing_group(&mut self, name: &str, place: Place, example: &str) {
        if self.excused.insert(name.to_owned()) {
            let problem = Problem::error(format!("`{name}` is missing"), place, format!("no `{name}` in this file"));
            self.problems.push(problem.help(format!("add `{example}`")));
        }
    }

    /// Reads an optional key. The default comes from the table and is read like a value in the file.
    pub(super) fn optional<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        read: impl FnOnce(&mut Self, &Setting<'_>) -> Option<T>,
    ) -> Option<T> {
        self.optional_unless(section, key, false, read)
    }

    /// Reads an optional key with the default `computed`.
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

    /// Reads an optional key. With `exception`, the default is the other one of [`DefaultValue::Unless`].
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

/// Returns the group `name` with its required keys, as an example: `link: { rtt: 600ms, down: 20mbit, up: 5mbit }`.
fn written_group(name: &str) -> String {
    let required = KEYS.iter().filter(|key| key.group() == name).filter_map(|key| match key.default {
        DefaultValue::Required(example) => Some(format!("{}: {example}", key.last())),
        _ => None,
    });
    format!("{name}: {{ {} }}", required.collect::<Vec<_>>().join(", "))
}

/// The letters that two words share at their start, from which one is a form of the other: `proxies` and `proxy`.
const SHARED_LETTERS: usize = 4;

/// Returns the known word that is closest to `word`, if one is close enough.
pub(super) fn closest<'w>(word: &str, known: &[&'w str]) -> Option<&'w str> {
    let word = word.to_ascii_lowercase();
    let near = known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate);
    let shared = |candidate: &str| word.chars().zip(candidate.chars()).take_while(|(a, b)| a == b).count();
    near.or_else(|| known.iter().copied().find(|candidate| shared(candidate) >= SHARED_LETTERS))
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn a_slip_of_the_pen_is_recognised_and_another_word_is_not() {
        assert_eq!(closest("adresses", &["addresses", "secure_names"]), Some("addresses"));
        assert_eq!(closest("Redirect", &["redirect", "tproxy"]), Some("redirect"));
        assert_eq!(closest("proxies", &["role", "proxy"]), Some("proxy"));
        assert_eq!(closest("colour", &["addresses", "secure_names"]), None);
    }
}
