//! The routes, rules and endpoints that the links need: the state of the links in, the commands of `ip` out.
//!
//! Longhaul changes no route of the operator. Its rules come before the table `main`, and only for packets without a mark:
//!
//! - a route of `main` to a certain network goes first, as it does without Longhaul;
//! - packets from the address of a link take this link;
//! - all others take the best link that works.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use longhaul_derive::LinkUse;

/// The first of three priorities of rules, and the first table. `TPROXY` uses the table 4170.
const FIRST: u32 = 4180;
const MAIN: u32 = FIRST;
const FROM: u32 = FIRST + 1;
const BEST: u32 = FIRST + 2;
/// The first number of an endpoint. Other programs count from 1.
const FIRST_ENDPOINT: u32 = 180;
/// The number of an endpoint that lives for a moment, and its address, which no connection to a ground has.
const MOMENTARY: (u32, Ipv4Addr) = (FIRST_ENDPOINT + 4, Ipv4Addr::new(127, 0, 41, 84));
/// Packets without a mark.
const UNMARKED: &str = "fwmark 0/0xffffffff";

/// One link, as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Present {
    /// The interface.
    pub device: String,
    /// The use of the link.
    pub used: LinkUse,
    /// The address of the interface, and its gateway. None: it has no address.
    pub place: Option<Place>,
    /// The time of its death. None: the link is used.
    pub died: Option<Duration>,
}

/// The address of an interface, and its gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The address.
    pub address: Ipv4Addr,
    /// The next hop of the default route. None: the interface leads to the other end directly.
    pub gateway: Option<Ipv4Addr>,
}

/// One thing that `ip` makes and removes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Item {
    /// A route in a table.
    Route {
        /// The table.
        table: u32,
        /// Its default route.
        to: String,
    },
    /// A rule.
    Rule {
        /// Its priority.
        priority: u32,
        /// Its words for `ip`.
        says: String,
    },
    /// An endpoint of Multipath TCP.
    Endpoint {
        /// Its number.
        id: u32,
        /// The address of the link.
        address: Ipv4Addr,
        /// The interface.
        device: String,
        /// True if it stands by.
        backup: bool,
    },
}

impl Item {
    /// Returns the commands that make it. The first one has to succeed.
    fn make(&self) -> Vec<String> {
        match self {
            Self::Route { table, to } => vec![format!("ip route replace default {to} table {table}")],
            Self::Rule { priority, says } => vec![format!("ip rule add priority {priority} {says}")],
            Self::Endpoint { id, address, device, backup } => {
                let backup = if *backup { " backup" } else { "" };
                vec![format!("ip mptcp endpoint add {address} dev {device} id {id} subflow{backup}")]
            }
        }
    }

    /// Returns the commands that remove it. A part that is gone already is no fault.
    fn remove(&self) -> Vec<String> {
        match self {
            Self::Route { table, .. } => vec![format!("ip route flush table {table}")],
            Self::Rule { priority, says } => vec![format!("ip rule del priority {priority} {says}")],
            // A connection that began on this address has it as number 0.
            Self::Endpoint { id, address, .. } => {
                vec![format!("ip mptcp endpoint del id {id}"), format!("ip mptcp endpoint del id 0 {address}")]
            }
        }
    }
}

/// Returns everything that the links need. `multipath`: connections use several links.
pub(super) fn wanted(links: &[Present], multipath: bool) -> Vec<Item> {
    let mut items = Vec::new();
    let placed: Vec<(u32, &Present, Place)> =
        (0..).zip(links).filter_map(|(at, link)| Some((at, link, link.place?))).collect();
    let route = |table: u32, link: &Present, place: &Place| {
        let via = place.gateway.map(|gateway| format!("via {gateway} ")).unwrap_or_default();
        Item::Route { table, to: format!("{via}dev {} src {}", link.device, place.address) }
    };
    for (at, link, place) in &placed {
        items.push(route(FROM + 1 + at, link, place));
        let says = format!("from {} {UNMARKED} lookup {}", place.address, FROM + 1 + at);
        items.push(Item::Rule { priority: FROM, says });
    }
    // Where all links look dead, connections stay on the one that worked last: they would end without any.
    let rank =
        |(_, link, _): &&(u32, &Present, Place)| (link.died.is_some(), Reverse(link.died), link.used.stands_by());
    let best = placed.iter().min_by_key(rank);
    if let Some((_, link, place)) = best {
        items.push(route(FIRST, link, place));
        items.push(Item::Rule { priority: MAIN, says: format!("{UNMARKED} lookup main suppress_prefixlength 0") });
        items.push(Item::Rule { priority: BEST, says: format!("{UNMARKED} lookup {FIRST}") });
    }
    let is_used = |one: &&(u32, &Present, Place)| multipath && (one.1.died.is_none() || best == Some(*one));
    for (at, link, place) in placed.iter().filter(is_used) {
        items.push(Item::Endpoint {
            id: FIRST_ENDPOINT + at,
            address: place.address,
            device: link.device.clone(),
            backup: link.used.stands_by(),
        });
    }
    items
}

/// Returns what stays when the watch ends: the endpoint of the best link. The kernel ends the subflows of an endpoint with
/// it, so connections that are open would have none. The next watch takes it over.
pub(super) fn kept(items: &[Item]) -> Vec<Item> {
    let best = items.iter().find_map(|item| match item {
        Item::Route { table: FIRST, to } => Some(to),
        _ => None,
    });
    let is_best = |item: &&Item| {
        let Item::Endpoint { address, .. } = item else { return false };
        best.is_some_and(|to| to.ends_with(&format!(" src {address}")))
    };
    items.iter().filter(is_best).cloned().collect()
}

/// Returns an endpoint that is there already, if the watch made it.
pub(super) fn endpoint(id: u32, address: Ipv4Addr, device: String, backup: bool) -> Option<Item> {
    (FIRST_ENDPOINT..FIRST).contains(&id).then_some(Item::Endpoint { id, address, device, backup })
}

/// Returns the commands that lead from `before` to `after`. A changed route replaces the one before.
pub(super) fn change(before: &[Item], after: &[Item]) -> Vec<String> {
    let table = |item: &Item| if let Item::Route { table, .. } = item { Some(*table) } else { None };
    let tables: BTreeSet<u32> = after.iter().filter_map(table).collect();
    let is_replaced = |item: &Item| table(item).is_some_and(|table| tables.contains(&table));
    let gone = before.iter().filter(|item| !after.contains(item) && !is_replaced(item));
    let id = |item: &Item| if let Item::Endpoint { id, .. } = item { Some(*id) } else { None };
    let had = |item: &Item| id(item).is_some_and(|one| before.iter().any(|item| id(item) == Some(one)));
    let new: Vec<&Item> = after.iter().filter(|item| !before.contains(item)).collect();
    // New ways first: an endpoint that disappears moves connections to another link, which must be there.
    let is_way = |item: &&&Item| matches!(item, Item::Route { .. }) || id(item).is_some() && !had(item);
    let mut commands: Vec<String> = new.iter().filter(is_way).flat_map(|item| item.make()).collect();
    let loses_endpoint = gone.clone().any(|item| id(item).is_some());
    commands.extend(gone.flat_map(Item::remove));
    commands.extend(new.iter().filter(|item| !is_way(item)).flat_map(|item| item.make()));
    if loses_endpoint && after.iter().any(|item| id(item).is_some()) {
        // A connection that had this link alone would stand still.
        commands.extend(look_again());
    }
    if new.iter().any(|item| matches!(item, Item::Endpoint { backup: false, .. })) {
        commands.extend(after.iter().filter(|item| before.contains(item)).filter_map(stand_by));
    }
    commands
}

/// Returns the commands that make the kernel look again for connections that lack a subflow of an endpoint. Any new endpoint
/// does so. This one is for neither subflows nor announcements, so it changes nothing itself.
pub(super) fn look_again() -> Vec<String> {
    let (id, address) = MOMENTARY;
    vec![format!("ip mptcp endpoint add {address} id {id}"), format!("ip mptcp endpoint del id {id}")]
}

/// Returns the command that tells the other end again that a link stands by. Connections that began on it, while nothing
/// else worked, prefer it otherwise.
fn stand_by(item: &Item) -> Option<String> {
    let Item::Endpoint { id, backup: true, .. } = item else { return None };
    Some(format!("ip mptcp endpoint change id {id} nobackup; ip mptcp endpoint change id {id} backup"))
}

/// Returns the commands that remove what an earlier watch may have left, but for endpoints of links. Most of them fail,
/// because nothing is there.
pub(super) fn clean(links: usize) -> Vec<String> {
    let count = u32::try_from(links).unwrap_or(u32::MAX);
    let rules = [MAIN, BEST].into_iter().chain((0..count).map(|_| FROM));
    let rules = rules.map(|priority| format!("ip rule del priority {priority}"));
    let tables = [FIRST].into_iter().chain((0..count).map(|at| FROM + 1 + at));
    let tables = tables.map(|table| format!("ip route flush table {table}"));
    let momentary = format!("ip mptcp endpoint del id {}", MOMENTARY.0);
    rules.chain(tables).chain([momentary]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(device: &str, number: u8, used: LinkUse, alive: bool) -> Present {
        let died = (!alive).then(|| Duration::from_secs(number.into()));
        let place = Place { address: [192, 0, 2, number].into(), gateway: (number > 9).then(|| [192, 0, 2, 1].into()) };
        Present { device: device.to_owned(), used, place: Some(place), died }
    }

    fn both(lte: bool, geo: bool) -> Vec<Present> {
        vec![link("lte0", 2, LinkUse::Preferred, lte), link("geo0", 10, LinkUse::Backup, geo)]
    }

    #[test]
    fn each_link_has_a_table_and_the_best_one_takes_what_has_no_address() {
        let commands = change(&[], &wanted(&both(true, true), true));
        assert_eq!(
            commands,
            [
                "ip route replace default dev lte0 src 192.0.2.2 table 4182",
                "ip route replace default via 192.0.2.1 dev geo0 src 192.0.2.10 table 4183",
                "ip route replace default dev lte0 src 192.0.2.2 table 4180",
                "ip mptcp endpoint add 192.0.2.2 dev lte0 id 180 subflow",
                "ip mptcp endpoint add 192.0.2.10 dev geo0 id 181 subflow backup",
                "ip rule add priority 4181 from 192.0.2.2 fwmark 0/0xffffffff lookup 4182",
                "ip rule add priority 4181 from 192.0.2.10 fwmark 0/0xffffffff lookup 4183",
                "ip rule add priority 4180 fwmark 0/0xffffffff lookup main suppress_prefixlength 0",
                "ip rule add priority 4182 fwmark 0/0xffffffff lookup 4180",
            ]
        );
        assert!(!change(&[], &wanted(&both(true, true), false)).iter().any(|command| command.contains("mptcp")));
    }

    #[test]
    fn a_dead_link_keeps_its_table_for_probes_and_loses_everything_else() {
        let (working, cut) = (wanted(&both(true, true), true), wanted(&both(false, true), true));
        assert_eq!(
            change(&working, &cut),
            [
                "ip route replace default via 192.0.2.1 dev geo0 src 192.0.2.10 table 4180",
                "ip mptcp endpoint del id 180",
                "ip mptcp endpoint del id 0 192.0.2.2",
                "ip mptcp endpoint add 127.0.41.84 id 184",
                "ip mptcp endpoint del id 184",
            ],
            "and connections that had this link alone get the other one"
        );
        assert_eq!(
            change(&cut, &working),
            [
                "ip route replace default dev lte0 src 192.0.2.2 table 4180",
                "ip mptcp endpoint add 192.0.2.2 dev lte0 id 180 subflow",
                "ip mptcp endpoint change id 181 nobackup; ip mptcp endpoint change id 181 backup",
            ],
            "connections that began on the standby go back"
        );
        assert_eq!(change(&working, &working), [""; 0]);
    }

    #[test]
    fn where_all_links_are_dead_connections_stay_on_the_one_that_worked_last() {
        // The second one died later.
        let (cut, none) = (wanted(&both(false, true), true), wanted(&both(false, false), true));
        assert_eq!(change(&cut, &none), [""; 0]);
        assert_eq!(
            change(&none, &wanted(&both(true, false), true)),
            [
                "ip route replace default dev lte0 src 192.0.2.2 table 4180",
                "ip mptcp endpoint add 192.0.2.2 dev lte0 id 180 subflow",
                "ip mptcp endpoint del id 181",
                "ip mptcp endpoint del id 0 192.0.2.10",
                "ip mptcp endpoint add 127.0.41.84 id 184",
                "ip mptcp endpoint del id 184",
            ],
            "the new way first"
        );
    }

    #[test]
    fn the_end_undoes_all_but_the_way_of_open_connections_and_a_device_without_an_address_needs_nothing() {
        let items = wanted(&both(true, true), true);
        let undone = change(&items, &kept(&items));
        assert_eq!(undone.iter().filter(|command| command.starts_with("ip rule del")).count(), 4);
        assert_eq!(undone.iter().filter(|command| command.starts_with("ip route flush")).count(), 3);
        assert!(undone.contains(&"ip mptcp endpoint del id 181".to_owned()));
        assert!(!undone.contains(&"ip mptcp endpoint del id 180".to_owned()));
        let left = endpoint(180, [192, 0, 2, 2].into(), "lte0".to_owned(), false).unwrap();
        assert_eq!(kept(&items), [left]);
        assert_eq!(endpoint(1, [192, 0, 2, 2].into(), "lte0".to_owned(), false), None, "somebody else's");
        let mut gone = both(false, true);
        gone[0].place = None;
        assert!(!wanted(&gone, true).iter().any(|item| format!("{item:?}").contains("lte0")));
        assert_eq!(wanted(&[], true), []);
    }
}
