//! `cache.groups`: hosts that serve the same objects.

use object_rules::groups::{Covers, Group};

use crate::allowlist::{self, NamePattern};
use crate::reader::{Reader, Setting};
use crate::settings::CacheGroup;
use crate::yaml::NodeValue;

use super::list;

const EXAMPLE: &str = "write `{ hosts: updates.txt, ignore: [token], fresh_by: validator }`, or the file alone";

/// Reads an entry: a file with the names of the hosts, or a group of keys.
pub(super) fn group(reader: &mut Reader, item: &Setting<'_>) -> Option<CacheGroup> {
    let NodeValue::Map(_) = &item.node.value else { return hosts(reader, item, Vec::new(), false) };
    let group = reader.group(item, EXAMPLE)?;
    let ignored = reader.optional(&group, "ignore", |reader, setting| {
        let names = reader.list(setting, parameter);
        reader.without_duplicates(setting, names)
    });
    let by_validator = reader.optional(&group, "fresh_by", |reader, setting| {
        reader.word(setting, &[("origin", false), ("validator", true)])
    });
    reader.required(&group, "hosts", "a file with the names of its hosts, one a line", |reader, setting| {
        hosts(reader, setting, ignored?, by_validator?)
    })
}

fn hosts(reader: &mut Reader, setting: &Setting<'_>, ignored: Vec<String>, by_validator: bool) -> Option<CacheGroup> {
    let file = reader.path(setting, "a file with one name a line")?;
    let text = reader.file_text(setting, &file)?;
    if !list::is_usable(reader, setting, &file, allowlist::check(&text)) {
        return None;
    }
    let hosts: Vec<_> = allowlist::names(&text).collect();
    let name = hosts.first().map(key).unwrap_or_default();
    let hosts = hosts.into_iter().map(entry).collect();
    Some(CacheGroup { file, group: Group { name, hosts, ignored, by_validator } })
}

/// Returns the host of a group's keys: a host of the group, or a text that is no host.
fn key(first: &NamePattern) -> String {
    match first {
        NamePattern::Tree(name) | NamePattern::Exact(name) => name.as_str().to_owned(),
        NamePattern::Below(name) => format!("*.{}", name.as_str()),
    }
}

fn entry(pattern: NamePattern) -> (String, Covers) {
    let (name, covers) = match pattern {
        NamePattern::Tree(name) => (name, Covers::Tree),
        NamePattern::Exact(name) => (name, Covers::Exact),
        NamePattern::Below(name) => (name, Covers::Below),
    };
    (name.as_str().to_owned(), covers)
}

/// Reads the name of a query's parameter.
fn parameter(reader: &mut Reader, item: &Setting<'_>) -> Option<String> {
    let text = reader.text(item, "the name of a parameter such as token", "")?;
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic() && !b"?&=#".contains(&byte)) {
        reader.bad(item, format!("`{text}` cannot stand before `=` in a query"), "write the name alone, such as token");
        return None;
    }
    Some(text.to_owned())
}
