//! `clients`: groups of those who share the link. No address is in two of them.

use ipnet::IpNet;

use crate::diagnostic::{Place, Problem};
use crate::reader::{Reader, Section, Setting};
use crate::settings::{ClientGroup, Period, Quota, RoleName};
use crate::units::{Bytes, parse_bytes};
use crate::yaml::{Node, NodeValue};

const EXAMPLE: &str = "write `{ name: bridge, ranges: [192.0.2.0/28], weight: 4 }`";
/// The longest name, which stands in a column of `longhaul status`.
const LONGEST_NAME: usize = 32;
/// The most ranges of all groups. A remote tells them its ground in one request.
const MOST_RANGES: usize = 128;
/// A client is all that has these first bits of an IPv6 address.
const SUBSCRIBER_BITS: u8 = 64;
/// The bounds of a quota. A value beyond them has the wrong unit.
const LEAST_QUOTA: Bytes = Bytes(1 << 20);
const MOST_QUOTA: Bytes = Bytes(1 << 50);

/// Reads the groups.
pub(super) fn clients(reader: &mut Reader, top: &Section<'_>, kind: RoleName) -> Option<Vec<ClientGroup>> {
    let groups = reader.optional(top, "clients", |reader, setting| {
        let groups = reader.list(setting, group)?;
        let NodeValue::List(items) = &setting.node.value else { return Some(groups) };
        let clean = [
            names_differ(reader, &groups, items),
            ranges_differ(reader, &groups, items),
            are_few(reader, setting, &groups),
        ];
        clean.into_iter().all(|clean| clean).then_some(groups)
    })?;
    let Some(written) = top.get("clients").filter(|_| !groups.is_empty() && kind != RoleName::Remote) else {
        return Some(groups);
    };
    let (label, help) = match kind {
        RoleName::Ground => ("clients are at the remote", "remove it, and write it in the remote's file"),
        RoleName::Edge | RoleName::Remote => {
            ("one box does not share the link", "remove it; groups need a pair (`role: remote` and `role: ground`)")
        }
    };
    let title = format!("`clients` has no effect with `role: {}`", kind.as_str());
    reader.problems.push(Problem::error(title, written.key_place.clone(), label).help(help));
    None
}

fn group(reader: &mut Reader, item: &Setting<'_>) -> Option<ClientGroup> {
    let group = reader.group(item, EXAMPLE)?;
    let name = reader.required(&group, "name", "a name such as `name: bridge`", name);
    let ranges = reader.required(&group, "ranges", "its clients, such as `ranges: [192.0.2.0/28]`", ranges);
    let weight = reader.optional(&group, "weight", Reader::number);
    let quota = reader.optional(&group, "quota", quota);
    let slow = reader.optional(&group, "beyond", |reader, setting| reader.word(setting, &[("slow", ())]));
    let (weight, quota, ()) = (weight?, quota?, slow?);
    Some(ClientGroup { name: name?, ranges: ranges?, weight, quota })
}

fn name(reader: &mut Reader, setting: &Setting<'_>) -> Option<String> {
    let name = reader.short_name(setting, LONGEST_NAME)?;
    if name == ClientGroup::OTHERS {
        reader.bad(setting, "this is the name of all clients in no group", "choose another name");
        return None;
    }
    Some(name)
}

fn ranges(reader: &mut Reader, setting: &Setting<'_>) -> Option<Vec<IpNet>> {
    let ranges = reader.list(setting, range)?;
    if ranges.is_empty() {
        reader.expected(setting, "at least one address or range", "write `ranges: [192.0.2.0/28]`");
        return None;
    }
    Some(ranges)
}

fn range(reader: &mut Reader, item: &Setting<'_>) -> Option<IpNet> {
    let range = reader.network(item)?;
    if matches!(range, IpNet::V6(_)) && range.prefix_len() > SUBSCRIBER_BITS {
        let label = format!("{range} is a part of one client: the first {SUBSCRIBER_BITS} bits are its own");
        let whole = IpNet::new_assert(range.addr(), SUBSCRIBER_BITS).trunc();
        reader.bad(item, label, &format!("write `\"{whole}\"`"));
        return None;
    }
    Some(range)
}

/// Reads a quota. The outer None is a problem, and the inner None means off.
#[allow(clippy::option_option, reason = "the reader's own None means: already reported")]
fn quota(reader: &mut Reader, setting: &Setting<'_>) -> Option<Option<Quota>> {
    if setting.is_off() {
        return Some(None);
    }
    let what = format!("a size from {LEAST_QUOTA} to {MOST_QUOTA} for each `day`, `week` or `month`, or `off`");
    let help = "write `quota: 20gib/day`";
    let text = reader.text(setting, &what, help)?;
    let parsed = text.split_once('/').and_then(|(size, per)| {
        let size = parse_bytes(size).ok().filter(|size| (LEAST_QUOTA..=MOST_QUOTA).contains(size))?;
        let per = Period::ALL.into_iter().find(|(word, _)| *word == per.trim())?.1;
        Some(Quota { size, per })
    });
    if parsed.is_none() {
        reader.expected(setting, &what, help);
    }
    parsed.map(Some)
}

fn names_differ(reader: &mut Reader, groups: &[ClientGroup], items: &[Node]) -> bool {
    let mut clean = true;
    for (index, group) in groups.iter().enumerate() {
        let earlier = groups.iter().take(index).position(|other| other.name == group.name);
        if let Some((first, second)) = earlier.and_then(|at| Some((items.get(at)?, items.get(index)?))) {
            let title = format!("two groups of `clients` have the name `{}`", group.name);
            let problem = Problem::error(title, place(second, "name", 0), "again here");
            reader.problems.push(problem.and(place(first, "name", 0), "first here").help("choose another name"));
            clean = false;
        }
    }
    clean
}

/// Reports ranges that have addresses in common, also within one group.
fn ranges_differ(reader: &mut Reader, groups: &[ClientGroup], items: &[Node]) -> bool {
    let mut seen: Vec<(IpNet, &str, Place)> = Vec::new();
    let mut clean = true;
    for (group, item) in groups.iter().zip(items) {
        for (index, range) in group.ranges.iter().enumerate() {
            let here = place(item, "ranges", index);
            let other = seen.iter().find(|(other, ..)| other.contains(range) || range.contains(other));
            if let Some((other, name, there)) = other {
                let title = format!("`clients`: {range} of `{}` overlaps {other} of `{name}`", group.name);
                let problem = Problem::error(title, here.clone(), "a client of both would have two weights");
                let help = "give each address to one group: divide the larger range";
                reader.problems.push(problem.and(there.clone(), "the other one").help(help));
                clean = false;
            }
            seen.push((*range, &group.name, here));
        }
    }
    clean
}

fn are_few(reader: &mut Reader, setting: &Setting<'_>, groups: &[ClientGroup]) -> bool {
    let count: usize = groups.iter().map(|group| group.ranges.len()).sum();
    if count > MOST_RANGES {
        let label = format!("expected at most {MOST_RANGES} ranges in all groups, found {count}");
        reader.bad(setting, label, "write larger ranges");
    }
    count <= MOST_RANGES
}

/// Returns the place of an item of the list `key` in a group, or of its value.
fn place(group: &Node, key: &str, index: usize) -> Place {
    let Some(entry) = group.entry(key) else { return group.place.clone() };
    match &entry.node.value {
        NodeValue::List(items) => items.get(index).map_or_else(|| entry.node.place.clone(), |item| item.place.clone()),
        _ => entry.node.place.clone(),
    }
}
