//! Foreign rules of the packet filter that take packets from Longhaul.
//!
//! | module | job |
//! |---|---|
//! | `ruleset` | the rules, from nft's JSON |
//! | `walk` | the way of one packet through them |

mod ruleset;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::BTreeSet;

pub(crate) use ruleset::Ruleset;
use ruleset::{Chain, Rule};
use walk::{Fate, Packet, walk};

/// A port on which clients or remotes connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Port {
    /// True for UDP.
    pub udp: bool,
    pub number: u16,
}

impl Port {
    fn protocol(self) -> &'static str {
        if self.udp { "udp" } else { "tcp" }
    }
}

/// The effect of a foreign chain on packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Harm {
    /// It drops packets to the ports: by this rule, or by its policy.
    Drops { rule: Option<u64> },
    /// The rule leads them elsewhere.
    Redirects { rule: u64 },
}

/// A foreign chain that takes packets from Longhaul.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Obstacle {
    pub family: String,
    pub table: String,
    pub chain: String,
    pub harm: Harm,
    pub ports: BTreeSet<Port>,
    /// The program that keeps the rules.
    pub keeper: Keeper,
}

/// The program that keeps a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeper {
    Ufw,
    Firewalld,
    Docker,
    /// Another one, or nft's own file.
    Nft,
}

/// The priority of Longhaul's own redirect (dstnat).
const OWN_PRIORITY: i64 = -100;

/// Finds the foreign chains that drop packets to `ports` of this machine, or redirect packets to `ports` of any.
/// `interface` is the one to the clients, if it is known.
pub(crate) fn obstacles(rules: &Ruleset, ports: &[Port], interface: Option<&str>) -> Vec<Obstacle> {
    let mut found = Vec::new();
    for (hook, is_local) in [("prerouting", false), ("input", true)] {
        for chain in rules.foreign(hook).filter(|chain| hook == "input" || chain.prio <= OWN_PRIORITY) {
            for port in ports {
                let packet = Packet { protocol: port.protocol(), port: port.number, interface, is_local };
                add(&mut found, rules, chain, *port, &walk(rules, chain, &packet));
            }
        }
    }
    found
}

/// Finds the foreign chains that drop packets of clients to other ports, which Longhaul does not take.
pub(crate) fn not_forwarded(rules: &Ruleset, ports: &[Port], interface: Option<&str>) -> Vec<Obstacle> {
    let mut found = Vec::new();
    for chain in rules.foreign("forward") {
        for port in ports {
            let packet = Packet { protocol: port.protocol(), port: port.number, interface, is_local: false };
            let fate = walk(rules, chain, &packet);
            if !matches!(fate, Fate::Redirected(_)) {
                add(&mut found, rules, chain, *port, &fate);
            }
        }
    }
    found
}

fn add(found: &mut Vec<Obstacle>, rules: &Ruleset, chain: &Chain, port: Port, fate: &Fate<'_>) {
    let by = |rule: &Rule| Some(rule.handle);
    let harm = match fate {
        Fate::Passes => return,
        Fate::Dropped(rule) => Harm::Drops { rule: by(rule) },
        Fate::DroppedByPolicy => Harm::Drops { rule: None },
        Fate::Redirected(rule) => Harm::Redirects { rule: rule.handle },
    };
    let of_chain = |one: &&mut Obstacle| {
        one.family == chain.family && one.table == chain.table && one.chain == chain.name && one.harm == harm
    };
    if let Some(known) = found.iter_mut().find(of_chain) {
        known.ports.insert(port);
        return;
    }
    found.push(Obstacle {
        family: chain.family.clone(),
        table: chain.table.clone(),
        chain: chain.name.clone(),
        harm,
        ports: BTreeSet::from([port]),
        keeper: keeper(rules, chain),
    });
}

fn keeper(rules: &Ruleset, chain: &Chain) -> Keeper {
    if chain.table == "firewalld" {
        Keeper::Firewalld
    } else if rules.has_chain(|name| name.starts_with("ufw-")) {
        Keeper::Ufw
    } else if chain.name == "FORWARD" && rules.has_chain(|name| name == "DOCKER-USER") {
        Keeper::Docker
    } else {
        Keeper::Nft
    }
}
