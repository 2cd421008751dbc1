//! `links`: several links under one pair, in place of `link`.

use crate::device_name::DeviceName;
use crate::diagnostic::{Place, Problem};
use crate::reader::{Reader, Section, Setting};
use crate::settings::{Link, NamedLink, Price, RoleName, UseWish};
use crate::yaml::{Node, NodeValue};

use super::edge;

const EXAMPLE: &str = "write `{ name: lte, device: wwan0, rtt: 80ms, down: 8mbit, up: 2mbit }`";
/// The longest name, which stands in a column of `longhaul status`.
const LONGEST_NAME: usize = 16;
/// The most links. The kernel opens two more subflows of a connection, unless somebody changes its limit.
const MOST: usize = 3;

/// Reads the link, or all links. The link is the preferred one then.
pub(super) fn link_or_links(
    reader: &mut Reader,
    top: &Section<'_>,
    kind: RoleName,
) -> (Option<Link>, Option<Vec<NamedLink>>) {
    let is_empty = |links: &Setting<'_>| matches!(&links.node.value, NodeValue::List(items) if items.is_empty());
    let Some(written) = top.get("links").filter(|links| !is_empty(links)) else {
        return (edge::link(reader, top), Some(Vec::new()));
    };
    if let Some(link) = top.get("link") {
        let problem = Problem::error("`link` and `links` exclude each other", link.key_place.clone(), "one link");
        let help = "keep `links`, with this link as one of its items, or keep `link` alone";
        reader.problems.push(problem.and(written.key_place.clone(), "several links").help(help));
        return (None, None);
    }
    if kind != RoleName::Remote {
        let (label, help) = match kind {
            RoleName::Ground => ("the remote has the links", "write `link` with the values of the preferred link"),
            RoleName::Edge | RoleName::Remote => ("links need a pair", "write `link`, or make this box a remote"),
        };
        let title = format!("`links` has no effect with `role: {}`", kind.as_str());
        reader.problems.push(Problem::error(title, written.key_place.clone(), label).help(help));
        // The values are judged anyway, so that all problems are said at once.
        let _ = links(reader, &written);
        return (None, None);
    }
    let links = links(reader, &written);
    (links.as_ref().and_then(|links| links.first()).map(NamedLink::alone), links)
}

fn links(reader: &mut Reader, written: &Setting<'_>) -> Option<Vec<NamedLink>> {
    let links = reader.list(written, link)?;
    let NodeValue::List(items) = &written.node.value else { return None };
    if !(2..=MOST).contains(&links.len()) {
        let found = links.len();
        reader.bad(written, format!("expected 2 to {MOST} links, found {found}"), "write one link as `link`");
        return None;
    }
    let names = differ(reader, &links, items, "name", |link| &link.name);
    let devices = differ(reader, &links, items, "device", |link| link.device.as_str());
    let preferred = preferred_is_used(reader, &links, items);
    let shares = have_one_fill(reader, &links, items);
    (names && devices && preferred && shares).then_some(links)
}

fn link(reader: &mut Reader, item: &Setting<'_>) -> Option<NamedLink> {
    let group = reader.group(item, EXAMPLE)?;
    let name = reader.required(&group, "name", "a name such as `name: lte`", |reader, setting| {
        reader.short_name(setting, LONGEST_NAME)
    });
    let device = reader.required(&group, "device", "the interface that leads to it, such as `device: wwan0`", device);
    let rtt = reader.required(&group, "rtt", "its round-trip time without queueing, such as `rtt: 80ms`", Reader::time);
    let down = reader.required(&group, "down", "its rate to clients, such as `down: 8mbit`", Reader::rate);
    let up = reader.required(&group, "up", "its rate from clients, such as `up: 2mbit`", Reader::rate);
    let prices = [("free", Price::Free), ("metered", Price::Metered)];
    let price = reader.optional(&group, "price", |reader, setting| reader.word(setting, &prices));
    let mtu = reader.optional(&group, "mtu", edge::mtu);
    let fill = reader.optional(&group, "fill", edge::fill);
    let uses =
        [("auto", UseWish::Auto), ("always", UseWish::Always), ("bulk", UseWish::Bulk), ("backup", UseWish::Backup)];
    let wish = reader.optional(&group, "use", |reader, setting| reader.word(setting, &uses));
    Some(NamedLink {
        name: name?,
        device: device?,
        rtt: rtt?,
        down: down?,
        up: up?,
        price: price?,
        mtu: mtu?,
        fill: fill?,
        wish: wish?,
    })
}

fn device(reader: &mut Reader, setting: &Setting<'_>) -> Option<DeviceName> {
    let (what, help) = ("the name of one network interface", "write a name such as `wwan0`; `ip link` lists them");
    let device = DeviceName::parse(reader.text(setting, what, help)?);
    if device.is_none() {
        reader.expected(setting, what, help);
    }
    device
}

/// Reports links that have the same value of `key`.
fn differ(
    reader: &mut Reader,
    links: &[NamedLink],
    items: &[Node],
    key: &str,
    value: impl Fn(&NamedLink) -> &str,
) -> bool {
    let mut clean = true;
    for (index, link) in links.iter().enumerate() {
        let earlier = links.iter().take(index).position(|other| value(other) == value(link));
        if let Some((first, second)) = earlier.and_then(|at| Some((items.get(at)?, items.get(index)?))) {
            let title = format!("two of `links` have the {key} `{}`", value(link));
            let help = if key == "name" { "choose another name" } else { "each link needs an interface of its own" };
            let problem = Problem::error(title, place(second, key), "again here");
            reader.problems.push(problem.and(place(first, key), "first here").help(help));
            clean = false;
        }
    }
    clean
}

/// Refuses a preferred link that is to stand by: nothing would be preferred.
fn preferred_is_used(reader: &mut Reader, links: &[NamedLink], items: &[Node]) -> bool {
    let (Some(first), Some(item)) = (links.first(), items.first()) else { return true };
    let is_used = matches!(first.wish, UseWish::Auto | UseWish::Always);
    if !is_used {
        let title = format!("the first of `links`, `{}`, is the preferred one", first.name);
        let problem = Problem::error(title, place(item, "use"), "it cannot stand by");
        reader.problems.push(problem.help("remove `use` here, or write the preferred link first"));
    }
    is_used
}

/// Refuses links with different parts that Longhaul sends. The limit follows the rates of the links in use, and not each part.
fn have_one_fill(reader: &mut Reader, links: &[NamedLink], items: &[Node]) -> bool {
    let Some(first) = links.first() else { return true };
    let Some(at) = links.iter().position(|link| link.fill != first.fill) else { return true };
    let (Some(one), Some(other), Some(link)) = (items.first(), items.get(at), links.get(at)) else { return true };
    let title = format!("the links `{}` and `{}` have a different `fill`", first.name, link.name);
    let problem = Problem::error(title, place(other, "fill"), "differs from the first link's");
    let help = "write the same `fill` in each of `links`, such as `fill: auto`, or in none";
    reader.problems.push(problem.and(place(one, "fill"), "the first link").help(help));
    false
}

/// Returns the place of the value of `key` in a link.
fn place(link: &Node, key: &str) -> Place {
    link.entry(key).map_or_else(|| link.place.clone(), |entry| entry.node.place.clone())
}
