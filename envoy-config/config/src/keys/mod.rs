//! The table of keys. Each key of `longhaul.yaml` has one row: its type and range, its default, and its meaning.
//!
//! The parser takes known keys, ranges and defaults from here. The tables of README.md, the example `longhaul.yaml` of
//! the packages (`document`) and the man page `longhaul.yaml(5)` (`man_page`) are written from here, and tests compare them. A key
//! that the parser reads without a row, or a row that it never reads, fails a test.

mod cut;
#[cfg(test)]
mod document;
mod man_page;
mod table;

use std::fmt;
use std::time::Duration;

use super::overrides::TransportKey;
use super::units::{Bytes, Rate, show_duration};
pub(super) use cut::cut;
pub use man_page::man_page;
pub(crate) use table::KEYS;

/// A key of the file.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its full name, such as `link.rtt`. Keys of list items stand below the list: `tls.terminate.names`.
    pub name: &'static str,
    /// The values that it accepts.
    pub value: ValueType,
    /// Its value if the file does not set it.
    pub default: DefaultValue,
    /// Its meaning, in Markdown, on one line. Links are relative to envoy-config/README.md.
    pub doc: &'static str,
}

/// The values that a key accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueType {
    /// `true` or `false`.
    Boolean,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A whole number in this range.
    Number {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// A whole number in this range, `auto` or `off`.
    NumberOrWord {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// A whole number in this range, or `auto`.
    NumberOrAuto {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// A list of at least one whole number in this range.
    Numbers {
        /// Smallest.
        min: u32,
        /// Largest.
        max: u32,
    },
    /// A size such as `256kib`, in bytes.
    Size {
        /// Smallest.
        min: u64,
        /// Largest.
        max: u64,
    },
    /// A time such as `600ms`.
    Time {
        /// Shortest.
        min: Duration,
        /// Longest.
        max: Duration,
    },
    /// A rate such as `20mbit`, with a minimum.
    Rate {
        /// Smallest.
        min: Rate,
    },
    /// Any other form, described in Markdown. The function that reads the key checks it.
    Form(&'static str),
}

/// The value of a key that the file does not set.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DefaultValue {
    /// No default: the file must have the key. The text is an example of its value.
    Required(&'static str),
    /// The default, as written in the file.
    Is(&'static str),
    /// A default with one exception, both as written in the file.
    Unless {
        /// The general default.
        is: &'static str,
        /// The exception, in Markdown: "with `mode: replace`".
        case: &'static str,
        /// The default in the exception.
        then: &'static str,
    },
    /// A default computed from other settings. The text is the rule, in Markdown.
    Derived(&'static str),
}

impl Key {
    /// Returns the group of the key: `link` of `link.rtt`. Empty at the top of the file.
    pub(crate) fn group(&self) -> &'static str {
        self.name.rsplit_once('.').map_or("", |(group, _)| group)
    }

    /// Returns the key alone: `rtt` of `link.rtt`.
    pub(crate) fn last(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, last)| last)
    }
}

/// Returns the row of a setting by its full name in messages: `upstream.ports[0]` has the row of `upstream.ports`.
pub(super) fn row(setting: &str) -> Option<&'static Key> {
    let name = without_indices(setting);
    KEYS.iter().find(|key| key.name == name)
}

/// Returns the keys below `group`, in the order of the table. An empty `group` is the top of the file.
pub(super) fn below(group: &str) -> Vec<&'static str> {
    let group = without_indices(group);
    match group.as_str() {
        "transport" => TransportKey::ALL.iter().map(|key| key.name()).collect(),
        "" => {
            let mut names: Vec<&'static str> = Vec::new();
            for key in KEYS {
                let first = key.name.split('.').next().unwrap_or(key.name);
                if !names.contains(&first) {
                    names.push(first);
                }
            }
            names
        }
        _ => KEYS.iter().filter(|key| key.group() == group).map(Key::last).collect(),
    }
}

/// Turns `tls.terminate[3].names` into `tls.terminate.names`.
fn without_indices(setting: &str) -> String {
    let mut name = String::with_capacity(setting.len());
    let mut inside = false;
    for character in setting.chars() {
        match character {
            '[' => inside = true,
            ']' => inside = false,
            other if !inside => name.push(other),
            _ => {}
        }
    }
    name
}

impl fmt::Display for ValueType {
    /// Writes Markdown for tables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("`true`, `false`"),
            Self::Words(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                f.write_str(&quoted.join(", "))
            }
            Self::Number { min, max } => write!(f, "{min} to {max}"),
            Self::NumberOrWord { min, max } => write!(f, "{min} to {max}, `auto`, `off`"),
            Self::NumberOrAuto { min, max } => write!(f, "{min} to {max}, `auto`"),
            Self::Numbers { min, max } => write!(f, "list of numbers, {min} to {max}"),
            Self::Size { min, max } => write!(f, "`{}` to `{}`", Bytes(*min), Bytes(*max)),
            Self::Time { min, max } => write!(f, "`{}` to `{}`", show_duration(*min), show_duration(*max)),
            Self::Rate { min } => write!(f, "`{min}` or more"),
            Self::Form(form) => f.write_str(form),
        }
    }
}

impl fmt::Display for DefaultValue {
    /// Writes Markdown for tables.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required(_) => f.write_str("required"),
            Self::Is("[]" | "{}" | "null") => f.write_str("none"),
            Self::Is(value) => write!(f, "`{value}`"),
            Self::Unless { is, case, then } => write!(f, "`{is}`; `{then}` {case}"),
            Self::Derived(rule) => f.write_str(rule),
        }
    }
}

#[cfg(test)]
mod tests;
