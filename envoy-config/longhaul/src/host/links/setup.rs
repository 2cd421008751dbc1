//! The routes, rules and endpoints that the links need: the state of the links in, what `ip` has to be told out.
//!
//! Longhaul changes no route of the operator. Its rules come before the table `main`, and only for packets without a mark:
//!
//! - a route of `main` to a certain network goes first, as it does without Longhaul;
//! - packets from the address of a link take this link;
//! - all others take the best link that works.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use longhaul_derive::LinkUse;

/// The first of three priorities of rules, and the first table. `TPROXY` uses the table 4170.
const FIRST: u32 = 4180;
const MAIN: u32 = FIRST;
const FROM: u32 = FIRST + 1;
const BEST: u32 = FIRST + 2;
/// The first number of an endpoint. Other programs count from 1.
const FIRST_ENDPOINT: u32 = 180;
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
    /// True if the link is used.
    pub alive: bool,
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
        /// What it says.
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
    // Where all links look dead, the first of them is as good as any.
    let rank = |(_, link, _): &&(u32, &Present, Place)| (!link.alive, link.used.stands_by());
    if let Some((_, link, place)) = placed.iter().min_by_key(rank) {
        items.push(route(FIRST, link, place));
        items.push(Item::Rule { priority: MAIN, says: format!("{UNMARKED} lookup main suppress_prefixlength 0") });
        items.push(Item::Rule { priority: BEST, says: format!("{UNMARKED} lookup {FIRST}") });
    }
    for (at, link, place) in placed.iter().filter(|(_, link, _)| multipath && link.alive) {
        items.push(Item::Endpoint {
            id: FIRST_ENDPOINT + at,
            address: place.address,
            device: link.device.clone(),
            backup: link.used.stands_by(),
        });
    }
    items
}

/// Returns the commands that lead from `before` to `after`. A changed route replaces the one before.
pub(super) fn change(before: &[Item], after: &[Item]) -> Vec<String> {
    let table = |item: &Item| if let Item::Route { table, .. } = item { Some(*table) } else { None };
    let tables: BTreeSet<u32> = after.iter().filter_map(table).collect();
    let is_replaced = |item: &Item| table(item).is_some_and(|table| tables.contains(&table));
    let gone = before.iter().filter(|item| !after.contains(item) && !is_replaced(item));
    let new = after.iter().filter(|item| !before.contains(item));
    // New routes first: an endpoint that disappears moves connections to another link, which must be there.
    let (routes, others): (Vec<&Item>, Vec<&Item>) = new.partition(|item| matches!(item, Item::Route { .. }));
    let mut commands: Vec<String> = routes.into_iter().flat_map(Item::make).collect();
    commands.extend(gone.flat_map(Item::remove));
    let returns = others.iter().any(|item| matches!(item, Item::Endpoint { backup: false, .. }));
    commands.extend(others.into_iter().flat_map(Item::make));
    if returns {
        commands.extend(after.iter().filter(|item| before.contains(item)).filter_map(stand_by));
    }
    commands
}

/// Returns the command that tells the other end again that a link stands by. Connections that began on it, while nothing
/// else worked, prefer it otherwise.
fn stand_by(item: &Item) -> Option<String> {
    let Item::Endpoint { id, backup: true, .. } = item else { return None };
    Some(format!("ip mptcp endpoint change id {id} nobackup; ip mptcp endpoint change id {id} backup"))
}

/// Returns the commands that remove all that an earlier watch may have left. Most of them fail, because nothing is there.
pub(super) fn clean(links: usize) -> Vec<String> {
    let count = u32::try_from(links).unwrap_or(u32::MAX);
    let rules = [MAIN, BEST].into_iter().chain((0..count).map(|_| FROM));
    let rules = rules.map(|priority| format!("ip rule del priority {priority}"));
    let tables = [FIRST].into_iter().chain((0..count).map(|at| FROM + 1 + at));
    let tables = tables.map(|table| format!("ip route flush table {table}"));
    let endpoints = (0..count).map(|at| format!("ip mptcp endpoint del id {}", FIRST_ENDPOINT + at));
    rules.chain(tables).chain(endpoints).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(device: &str, number: u8, used: LinkUse, alive: bool) -> Present {
        let place = Place { address: [192, 0, 2, number].into(), gateway: (number > 9).then(|| [192, 0, 2, 1].into()) };
        Present { device: device.to_owned(), used, place: Some(place), alive }
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
                "ip rule add priority 4181 from 192.0.2.2 fwmark 0/0xffffffff lookup 4182",
                "ip rule add priority 4181 from 192.0.2.10 fwmark 0/0xffffffff lookup 4183",
                "ip rule add priority 4180 fwmark 0/0xffffffff lookup main suppress_prefixlength 0",
                "ip rule add priority 4182 fwmark 0/0xffffffff lookup 4180",
                "ip mptcp endpoint add 192.0.2.2 dev lte0 id 180 subflow",
                "ip mptcp endpoint add 192.0.2.10 dev geo0 id 181 subflow backup",
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
            ]
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
        assert_eq!(wanted(&both(false, false), true)[4], wanted(&both(true, true), true)[4], "the first is as good as any");
    }

    #[test]
    fn the_end_undoes_everything_and_a_device_without_an_address_needs_nothing() {
        let items = wanted(&both(true, true), true);
        let undone = change(&items, &[]);
        assert_eq!(undone.iter().filter(|command| command.starts_with("ip rule del")).count(), 4);
        assert_eq!(undone.iter().filter(|command| command.starts_with("ip route flush")).count(), 3);
        assert_eq!(undone.iter().filter(|command| command.contains("endpoint del id 18")).count(), 2);
        let mut gone = both(false, true);
        gone[0].place = None;
        assert!(!wanted(&gone, true).iter().any(|item| format!("{item:?}").contains("lte0")));
        assert_eq!(wanted(&[], true), []);
    }
}
