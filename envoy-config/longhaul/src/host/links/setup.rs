//! The routes, rules and endpoints that the links need: the state of the links in, the commands of `ip` out.
//!
//! Longhaul changes no route of the operator. Its rules come before the table `main`, and only for packets without a mark:
//!
//! - a route of `main` to a certain network goes first, as it does without Longhaul;
//! - packets from the address of a link take this link;
//! - all others take the best link that works.
//!
//! With IPv6, this holds only where the ground has an IPv6 address, and for packets of this machine alone: an operator takes
//! packets of clients only from the addresses that it gave them.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use longhaul_config::Family;
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
    /// The addresses of the interface.
    pub places: Places,
    /// The largest packet that crosses the link whole, in bytes. None: the kernel finds it.
    pub mtu: Option<u32>,
    /// The time of its death. None: the link is used.
    pub died: Option<Duration>,
}

/// The addresses of an interface. None: it has no address of this family.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Places {
    /// That of IPv4.
    pub ipv4: Option<Place>,
    /// That of IPv6.
    pub ipv6: Option<Place>,
}

impl Places {
    /// Returns the address of this family.
    pub(super) fn of(&self, family: Family) -> Option<Place> {
        match family {
            Family::Ipv4 => self.ipv4,
            Family::Ipv6 => self.ipv6,
        }
    }
}

/// The address of an interface, and its gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The address.
    pub address: IpAddr,
    /// The next hop of the default route. None: the interface leads to the other end directly.
    pub gateway: Option<IpAddr>,
}

/// One thing that `ip` makes and removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// A route in a table.
    Route {
        /// The family of addresses.
        family: Family,
        /// The table.
        table: u32,
        /// Its default route.
        to: String,
    },
    /// A rule.
    Rule {
        /// The family of addresses.
        family: Family,
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
        address: IpAddr,
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
            Self::Route { family, table, to } => {
                vec![format!("{} route replace default {to} table {table}", ip(*family))]
            }
            Self::Rule { family, priority, says } => {
                vec![format!("{} rule add priority {priority} {says}", ip(*family))]
            }
            Self::Endpoint { id, address, device, backup } => {
                let backup = if *backup { " backup" } else { "" };
                vec![format!("ip mptcp endpoint add {address} dev {device} id {id} subflow{backup}")]
            }
        }
    }

    /// Returns the commands that remove it. A part that is gone already is no fault.
    fn remove(&self) -> Vec<String> {
        match self {
            Self::Route { family, table, .. } => vec![format!("{} route flush table {table}", ip(*family))],
            Self::Rule { family, priority, says } => {
                vec![format!("{} rule del priority {priority} {says}", ip(*family))]
            }
            // A connection that began on this address has it as number 0.
            Self::Endpoint { id, address, .. } => {
                vec![format!("ip mptcp endpoint del id {id}"), format!("ip mptcp endpoint del id 0 {address}")]
            }
        }
    }
}

/// Returns the command of a family of addresses.
fn ip(family: Family) -> &'static str {
    match family {
        Family::Ipv4 => "ip",
        Family::Ipv6 => "ip -6",
    }
}

/// Returns everything that the links need. `ground` is the family of the ground's address. `multipath`: connections use
/// several links.
pub(super) fn wanted(links: &[Present], ground: Family, multipath: bool) -> Vec<Item> {
    let families = Family::BOTH.into_iter().filter(|family| *family == Family::Ipv4 || *family == ground);
    families.flat_map(|family| wanted_by(family, links, multipath && family == ground)).collect()
}

/// Returns the part of one family of addresses.
fn wanted_by(family: Family, links: &[Present], multipath: bool) -> Vec<Item> {
    let mut items = Vec::new();
    let placed: Vec<(u32, &Present, Place)> =
        (0..).zip(links).filter_map(|(at, link)| Some((at, link, link.places.of(family)?))).collect();
    let route = |table: u32, link: &Present, place: &Place| {
        let via = place.gateway.map(|gateway| format!("via {gateway} ")).unwrap_or_default();
        // The size of a route bounds the segments of both directions: the kernel derives the announced one from it.
        let mtu = link.mtu.map(|mtu| format!(" mtu {mtu}")).unwrap_or_default();
        Item::Route { family, table, to: format!("{via}dev {}{mtu} src {}", link.device, place.address) }
    };
    for (at, link, place) in &placed {
        items.push(route(FROM + 1 + at, link, place));
        let says = format!("from {} {UNMARKED} lookup {}", place.address, FROM + 1 + at);
        items.push(Item::Rule { family, priority: FROM, says });
    }
    // Where all links look dead, connections stay on the one that worked last: they would end without any.
    let rank =
        |(_, link, _): &&(u32, &Present, Place)| (link.died.is_some(), Reverse(link.died), link.used.stands_by());
    let best = placed.iter().min_by_key(rank);
    if let Some((_, link, place)) = best {
        let own = if family == Family::Ipv6 { "iif lo " } else { "" };
        items.push(route(FIRST, link, place));
        let main = format!("{own}{UNMARKED} lookup main suppress_prefixlength 0");
        items.push(Item::Rule { family, priority: MAIN, says: main });
        items.push(Item::Rule { family, priority: BEST, says: format!("{own}{UNMARKED} lookup {FIRST}") });
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
    let is_way_of = |item: &Item, address: &IpAddr| match item {
        Item::Route { table: FIRST, to, .. } => to.ends_with(&format!(" src {address}")),
        _ => false,
    };
    let is_best = |item: &&Item| match item {
        Item::Endpoint { address, .. } => items.iter().any(|item| is_way_of(item, address)),
        _ => false,
    };
    items.iter().filter(is_best).cloned().collect()
}

/// Returns an endpoint that is there already, if the watch made it.
pub(super) fn endpoint(id: u32, address: IpAddr, device: String, backup: bool) -> Option<Item> {
    (FIRST_ENDPOINT..FIRST).contains(&id).then_some(Item::Endpoint { id, address, device, backup })
}

/// Returns the commands that lead from `before` to `after`. A changed route replaces the one before.
pub(super) fn change(before: &[Item], after: &[Item]) -> Vec<String> {
    let table = |item: &Item| match item {
        Item::Route { family, table, .. } => Some((ip(*family), *table)),
        _ => None,
    };
    let tables: BTreeSet<(&str, u32)> = after.iter().filter_map(table).collect();
    let is_replaced = |item: &Item| table(item).is_some_and(|table| tables.contains(&table));
    let gone = before.iter().filter(|item| !after.contains(item) && !is_replaced(item));
    let id = |item: &Item| if let Item::Endpoint { id, .. } = item { Some(*id) } else { None };
    let had = |item: &Item| id(item).is_some_and(|one| before.iter().any(|item| id(item) == Some(one)));
    let new: Vec<&Item> = after.iter().filter(|item| !before.contains(item)).collect();
    // New ways first: an endpoint that disappears moves connections to another link, which must be there. The kernel opens the
    // subflows of a new endpoint at once, by the routes and rules of that moment.
    let stage = |item: &Item| match item {
        Item::Route { .. } => 0,
        Item::Rule { .. } => 1,
        Item::Endpoint { .. } if !had(item) => 2,
        Item::Endpoint { .. } => 3,
    };
    let made = |at: u8| new.iter().filter(move |item| stage(item) == at).flat_map(|item| item.make());
    let mut commands: Vec<String> = (0..=2).flat_map(made).collect();
    let loses_endpoint = gone.clone().any(|item| id(item).is_some());
    commands.extend(gone.flat_map(Item::remove));
    commands.extend(made(3));
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
    let of_family = |family| {
        let rules = [MAIN, BEST].into_iter().chain((0..count).map(|_| FROM));
        let rules = rules.map(move |priority| format!("{} rule del priority {priority}", ip(family)));
        let tables = [FIRST].into_iter().chain((0..count).map(|at| FROM + 1 + at));
        rules.chain(tables.map(move |table| format!("{} route flush table {table}", ip(family))))
    };
    let momentary = format!("ip mptcp endpoint del id {}", MOMENTARY.0);
    Family::BOTH.into_iter().flat_map(of_family).chain([momentary]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(device: &str, number: u8, used: LinkUse, alive: bool) -> Present {
        let died = (!alive).then(|| Duration::from_secs(number.into()));
        let place = Place { address: [192, 0, 2, number].into(), gateway: (number > 9).then(|| [192, 0, 2, 1].into()) };
        let places = Places { ipv4: Some(place), ipv6: None };
        Present { device: device.to_owned(), used, places, mtu: (device == "geo0").then_some(1280), died }
    }

    fn both(lte: bool, geo: bool) -> Vec<Present> {
        vec![link("lte0", 2, LinkUse::Preferred, lte), link("geo0", 10, LinkUse::Backup, geo)]
    }

    #[test]
    fn each_link_has_a_table_and_the_best_one_takes_what_has_no_address() {
        let commands = change(&[], &wanted(&both(true, true), Family::Ipv4, true));
        assert_eq!(
            commands,
            [
                "ip route replace default dev lte0 src 192.0.2.2 table 4182",
                "ip route replace default via 192.0.2.1 dev geo0 mtu 1280 src 192.0.2.10 table 4183",
                "ip route replace default dev lte0 src 192.0.2.2 table 4180",
                "ip rule add priority 4181 from 192.0.2.2 fwmark 0/0xffffffff lookup 4182",
                "ip rule add priority 4181 from 192.0.2.10 fwmark 0/0xffffffff lookup 4183",
                "ip rule add priority 4180 fwmark 0/0xffffffff lookup main suppress_prefixlength 0",
                "ip rule add priority 4182 fwmark 0/0xffffffff lookup 4180",
                "ip mptcp endpoint add 192.0.2.2 dev lte0 id 180 subflow",
                "ip mptcp endpoint add 192.0.2.10 dev geo0 id 181 subflow backup",
            ]
        );
        assert!(
            !change(&[], &wanted(&both(true, true), Family::Ipv4, false))
                .iter()
                .any(|command| command.contains("mptcp"))
        );
    }

    #[test]
    fn a_dead_link_keeps_its_table_for_probes_and_loses_everything_else() {
        let (working, cut) =
            (wanted(&both(true, true), Family::Ipv4, true), wanted(&both(false, true), Family::Ipv4, true));
        assert_eq!(
            change(&working, &cut),
            [
                "ip route replace default via 192.0.2.1 dev geo0 mtu 1280 src 192.0.2.10 table 4180",
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
        let (cut, none) =
            (wanted(&both(false, true), Family::Ipv4, true), wanted(&both(false, false), Family::Ipv4, true));
        assert_eq!(change(&cut, &none), [""; 0]);
        assert_eq!(
            change(&none, &wanted(&both(true, false), Family::Ipv4, true)),
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
    fn a_ground_with_an_ipv6_address_has_ways_and_endpoints_of_ipv6_for_packets_of_this_machine() {
        let mut links = both(true, true);
        let place = |number: u16, gateway: &str| Place {
            address: [0x2001, 0xdb8, 0, 0, 0, 0, 0, number].into(),
            gateway: gateway.parse().ok(),
        };
        links[0].places.ipv6 = Some(place(2, "fe80::1"));
        links[1].places.ipv6 = Some(place(10, ""));
        let by_ipv4 = wanted(&links, Family::Ipv4, true);
        assert_eq!(by_ipv4, wanted(&both(true, true), Family::Ipv4, true), "a ground of IPv4 needs no IPv6");
        let by_ipv6 = wanted(&links, Family::Ipv6, true);
        let six: Vec<String> = by_ipv6.iter().flat_map(Item::make).filter(|made| made.contains(':')).collect();
        assert_eq!(
            six,
            [
                "ip -6 route replace default via fe80::1 dev lte0 src 2001:db8::2 table 4182",
                "ip -6 rule add priority 4181 from 2001:db8::2 fwmark 0/0xffffffff lookup 4182",
                "ip -6 route replace default dev geo0 mtu 1280 src 2001:db8::a table 4183",
                "ip -6 rule add priority 4181 from 2001:db8::a fwmark 0/0xffffffff lookup 4183",
                "ip -6 route replace default via fe80::1 dev lte0 src 2001:db8::2 table 4180",
                "ip mptcp endpoint add 2001:db8::2 dev lte0 id 180 subflow",
                "ip mptcp endpoint add 2001:db8::a dev geo0 id 181 subflow backup",
            ]
        );
        let rules = change(&by_ipv4, &by_ipv6);
        assert!(rules.contains(&"ip -6 rule add priority 4182 iif lo fwmark 0/0xffffffff lookup 4180".to_owned()));
        let back = change(&by_ipv6, &by_ipv4);
        assert!(back.contains(&"ip -6 route flush table 4180".to_owned()), "{back:?}");
        assert!(!back.contains(&"ip route flush table 4180".to_owned()), "{back:?}");
        assert_eq!(kept(&by_ipv6).len(), 1);
    }

    #[test]
    fn the_end_undoes_all_but_the_way_of_open_connections_and_a_device_without_an_address_needs_nothing() {
        let items = wanted(&both(true, true), Family::Ipv4, true);
        let undone = change(&items, &kept(&items));
        assert_eq!(undone.iter().filter(|command| command.starts_with("ip rule del")).count(), 4);
        assert_eq!(undone.iter().filter(|command| command.starts_with("ip route flush")).count(), 3);
        assert!(undone.contains(&"ip mptcp endpoint del id 181".to_owned()));
        assert!(!undone.contains(&"ip mptcp endpoint del id 180".to_owned()));
        let left = endpoint(180, [192, 0, 2, 2].into(), "lte0".to_owned(), false).unwrap();
        assert_eq!(kept(&items), [left]);
        assert_eq!(endpoint(1, [192, 0, 2, 2].into(), "lte0".to_owned(), false), None, "somebody else's");
        let mut gone = both(false, true);
        gone[0].places = Places::default();
        assert!(!wanted(&gone, Family::Ipv4, true).iter().any(|item| format!("{item:?}").contains("lte0")));
        assert_eq!(wanted(&[], Family::Ipv4, true), []);
    }
}
