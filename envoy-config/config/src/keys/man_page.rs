//! The man page `longhaul.yaml(5)`, from the table.

use roff::{Roff, bold, italic, roman};

use super::{KEYS, Key};
use crate::overrides::TransportKey;

/// Returns the page `longhaul.yaml(5)`, in roff.
pub fn man_page() -> String {
    let mut page = Roff::new();
    page.control("TH", ["longhaul.yaml", "5", "", concat!("longhaul ", env!("CARGO_PKG_VERSION"))]);
    page.control("SH", ["NAME"]).text([roman("longhaul.yaml - the configuration of longhaul")]);
    page.control("SH", ["DESCRIPTION"]).text([roman(
        "One file in YAML. Quantities carry their unit: 600ms, 20mbit, 256kib. Paths are relative to the folder of the file. \
         Unknown keys, bad values and settings that contradict each other are refused with file, line and column. \
         A refused file changes nothing that is running.",
    )]);
    for group in super::below("") {
        let keys: Vec<&Key> = KEYS.iter().filter(|key| key.name == group || is_below(key, group)).collect();
        page.control("SH", [group.to_ascii_uppercase().as_str()]);
        for key in keys {
            page.control("TP", []).text([bold(key.name)]);
            page.text([
                italic(plain(&key.value.to_string())),
                roman(format!("; default: {}", plain(&key.default.to_string()))),
            ]);
            page.control("br", []).text([roman(format!("{}.", plain(&sentence(key.doc))))]);
        }
        if group == "transport" {
            for key in TransportKey::ALL {
                page.control("TP", []).text([bold(format!("transport.{}", key.name()))]);
                page.text([roman(format!("{}.", plain(&sentence(key.purpose()))))]);
            }
        }
    }
    page.control("SH", ["SEE ALSO"]).text([bold("longhaul"), roman("(1), "), bold("longhaul-check"), roman("(1)")]);
    page.render()
}

fn is_below(key: &Key, group: &str) -> bool {
    key.name.strip_prefix(group).is_some_and(|rest| rest.starts_with('.'))
}

/// Returns the text with a capital at its beginning, unless it begins with code.
pub(super) fn sentence(markdown: &str) -> String {
    let mut characters = markdown.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Replaces each link by its text. Drops "([how](...))", which is of no use on paper.
pub(super) fn without_links(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some((before, after)) = rest.split_once("](") {
        let (lead, label) = before.rsplit_once('[').unwrap_or((before, ""));
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
        if label == "how" || label == "below" {
            text.push_str(lead.strip_suffix(" (").unwrap_or(lead));
            rest = rest.strip_prefix(')').unwrap_or(rest);
        } else {
            text.push_str(lead);
            text.push_str(label);
        }
    }
    text.push_str(rest);
    text
}

/// Converts Markdown to plain text, without links and marks around code.
pub(super) fn plain(markdown: &str) -> String {
    without_links(markdown).replace('`', "")
}
