//! Documents that tests compare with the table: the tables of README.md and PAIR.md, and the example of the packages.

use super::cut::CUT_KEYS;
use super::man_page::{plain, sentence, without_links};
use super::{DefaultValue, KEYS, Key};

/// The column of the comments in the example.
const COMMENT_COLUMN: usize = 32;
/// The longest line of the example.
const EXAMPLE_WIDTH: usize = 118;

/// The longest meaning that the example repeats in full, in bytes.
const SHORT_DOC: usize = 150;

/// The head of the example.
const HEAD: &str = "\
# Longhaul's configuration. This file has every key that an operator can set. Five keys have no default; they are empty below.
# Until they are filled in, `longhaul check` refuses this file and the service does not start. Then:
#
#   longhaul check /etc/longhaul/longhaul.yaml        prints the derived values and their reasons
#   systemctl enable --now longhaul                   serves; no client is sent here yet
#   systemctl enable --now longhaul-host@lan0         sends the clients behind lan0 here
#
# Each other key is a comment with its default. To set one, remove `# ` from its line and from the line of its group.
# A saved change applies within a second. A file with an error changes nothing that is running.
# The manual: longhaul.yaml(5) and /usr/share/doc/longhaul/CONFIGURATION.md
";

/// Returns rows `| key | values | default | meaning |` for the keys of `group`. None means all keys but those of `split`,
/// which has a table of its own in README.md.
pub(super) fn readme_table(group: Option<&str>) -> String {
    let wanted = |key: &&Key| group.map_or(key.group() != "split", |group| key.group() == group);
    let mut lines = vec!["| key | values | default | meaning |".to_owned(), "|---|---|---|---|".to_owned()];
    lines.extend(KEYS.iter().filter(wanted).map(|key| {
        let name = if group.is_some() { key.last() } else { key.name };
        format!("| `{name}` | {} | {} | {} |", key.value, key.default, key.doc)
    }));
    lines.join("\n") + "\n"
}

/// Returns rows `| key | instead |` for the keys of earlier releases that have no effect.
pub(super) fn cut_table() -> String {
    let mut lines = vec!["| key | instead |".to_owned(), "|---|---|".to_owned()];
    lines.extend(CUT_KEYS.iter().map(|key| format!("| `{}` | {}: {} |", key.name, key.why, key.instead)));
    lines.join("\n") + "\n"
}

/// Returns a `longhaul.yaml` with every key. Keys without a default are empty, and all others are comments.
///
/// The packages install it. Groups that a single box does not need (`split`, `tracing`) and keys of list items are
/// comments as a whole.
pub(super) fn example() -> String {
    let mut out = HEAD.to_owned();
    for group in super::below("") {
        let keys: Vec<&Key> = KEYS.iter().filter(|key| key.group() == group).collect();
        out.push('\n');
        // A key of the top, such as `role`, or a list such as `clients`.
        if let Some(key) = super::row(group) {
            push_key(&mut out, key, "", key.name == "role");
            continue;
        }
        let active = keys.iter().any(|key| is_to_be_filled_in(key));
        push_line(&mut out, &format!("{}{group}:", if active { "" } else { "# " }));
        for key in keys {
            push_key(&mut out, key, "  ", is_to_be_filled_in(key));
        }
    }
    out
}

/// Returns true if a single box needs the key and the key has no default.
fn is_to_be_filled_in(key: &Key) -> bool {
    matches!(key.default, DefaultValue::Required(_)) && matches!(key.group(), "link" | "proxy" | "upstream")
}

fn push_key(out: &mut String, key: &Key, indent: &str, active: bool) {
    let start = format!("{}{indent}", if active { "" } else { "# " });
    push_comment(out, &format!("{}.", sentence(&without_links(short(key.doc)))), &start);
    let values = plain(&key.value.to_string());
    let (value, comment) = match key.default {
        // An empty list tells the operator more than an empty value.
        DefaultValue::Required(example) if active => (if example.starts_with('[') { "[]" } else { "" }, plain(example)),
        DefaultValue::Required(example) => (example, "an example; there is no default".to_owned()),
        DefaultValue::Is(value) => (value, values),
        DefaultValue::Unless { is, case, then } => (is, format!("{values}; {then} {}", plain(case))),
        DefaultValue::Derived(rule) => ("", format!("{values}; default: {}", plain(rule))),
    };
    let line = format!("{start}{}: {value}", key.last());
    push_line(out, &format!("{:column$} # {comment}", line.trim_end(), column = COMMENT_COLUMN - 1));
}

/// Returns the whole meaning if it is short, or its first sentence.
fn short(doc: &str) -> &str {
    if doc.len() <= SHORT_DOC { doc } else { doc.split_once(". ").map_or(doc, |(first, _)| first) }
}

/// Appends a wrapped comment whose lines begin with `start`.
fn push_comment(out: &mut String, text: &str, start: &str) {
    let mut line = format!("{start}#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > EXAMPLE_WIDTH {
            push_line(out, &line);
            line = format!("{start}#");
        }
        line.push(' ');
        line.push_str(word);
    }
    push_line(out, &line);
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}
