//! Finds the key that an operator meant by a key that is not known.

use super::{closest, hints};
use crate::keys;

/// A key that is not known at its place.
pub(super) struct UnknownKey {
    pub(super) title: String,
    pub(super) label: String,
    pub(super) help: String,
    /// The full names of the keys that it was meant to be. They are not missing, too.
    pub(super) meant: Vec<String>,
}

/// Words of other programs, and the keys for them here.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("latency", "rtt"),
    ("delay", "rtt"),
    ("ping", "rtt"),
    ("bandwidth", "down"),
    ("nameserver", "resolvers"),
    ("nameservers", "resolvers"),
    ("dns_servers", "resolvers"),
    ("servers", "resolvers"),
    ("allowlist", "domains"),
    ("certificate", "cert"),
    ("private_key", "key"),
    ("ssl", "tls"),
    ("path", "dir"),
    ("max_size", "size"),
];

impl UnknownKey {
    /// Judges `key` below `section`, where `known` keys are accepted. An empty `section` is the top of the file.
    pub(super) fn of(section: &str, key: &str, known: &[&'static str]) -> Self {
        let full = |key: &str| if section.is_empty() { key.to_owned() } else { format!("{section}.{key}") };
        if let Some((name, value)) = key.split_once([':', '=']).filter(|(name, _)| known.contains(&name.trim())) {
            let (name, value) = (name.trim(), value.trim());
            return Self {
                title: format!("no space after `{name}:`"),
                label: "YAML reads this as one word".to_owned(),
                help: format!("write `{name}: {value}`"),
                meant: vec![full(name)],
            };
        }
        let title = format!("unknown key `{}`", full(key));
        let label = "not a setting".to_owned();
        let other_word = OTHER_WORDS.iter().find(|(word, _)| *word == key).map(|(_, ours)| *ours);
        let near = other_word.filter(|ours| known.contains(ours)).or_else(|| closest(key, known));
        let elsewhere = homes_of(key, section);
        match (near, elsewhere.first()) {
            (Some(name), None) => {
                let meant = vec![full(name)];
                Self { title, label, help: format!("did you mean `{name}`?"), meant }
            }
            (Some(name), Some(_)) if strsim::damerau_levenshtein(name, key) <= 1 => {
                Self { title, label, help: format!("did you mean `{name}`?"), meant: vec![full(name)] }
            }
            (_, Some(home)) => {
                let place = match home.as_str() {
                    "" => "at the top of the file, without indentation".to_owned(),
                    group => format!("below `{group}:`, indented by two spaces"),
                };
                let label = if section.is_empty() { "not at the top of the file".to_owned() } else { label };
                let meant = elsewhere
                    .iter()
                    .map(|group| if group.is_empty() { key.to_owned() } else { format!("{group}.{key}") });
                Self {
                    title,
                    label,
                    help: format!("write `{key}` {place}"),
                    meant: elsewhere.iter().cloned().chain(meant).collect(),
                }
            }
            (None, None) => {
                let known = || format!("known here: {}", known.join(", "));
                Self { title, label, help: hints::of_any(key).unwrap_or_else(known), meant: Vec::new() }
            }
        }
    }
}

/// Returns the groups other than `section` that have `key`. An empty group is the top of the file.
fn homes_of(key: &str, section: &str) -> Vec<String> {
    let top = keys::below("");
    let at_top = top.contains(&key).then(String::new);
    let groups = top.iter().filter(|group| keys::below(group).contains(&key)).map(|group| (*group).to_owned());
    at_top.into_iter().chain(groups).filter(|group| group != section).collect()
}
