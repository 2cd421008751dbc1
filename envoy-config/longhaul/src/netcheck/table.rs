//! The checks: their labels, their questions, and the boxes that they are for.

use longhaul_config::{Intercept, Role, Settings};

/// A check of `longhaul netcheck`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    Ports,
    Firewall,
    Forwarding,
    Congestion,
    Resolver,
    Clock,
    Udp443,
    Handshake,
    Rtt,
    Mtu,
    Rate,
}

/// A row of the table.
pub(crate) struct Row {
    pub(crate) check: Check,
    /// The first word of its lines.
    pub(crate) label: &'static str,
    /// Its question.
    pub(crate) question: &'static str,
    applies: fn(&Settings) -> bool,
}

const fn row(check: Check, label: &'static str, question: &'static str, applies: fn(&Settings) -> bool) -> Row {
    Row { check, label, question, applies }
}

/// Every check, in the order of the output.
pub(crate) const TABLE: &[Row] = &[
    row(Check::Ports, "ports", "Does Longhaul have its own ports, or who has them?", always),
    row(Check::Firewall, "firewall", "Does another firewall drop or redirect packets to them?", always),
    row(Check::Forwarding, "forwarding", "Does this machine forward what Longhaul does not take?", forwards),
    row(Check::Congestion, "congestion", "Does TCP send with BBR, which loss does not slow?", always),
    row(Check::Resolver, "resolver", "Does each resolver respond, for both families, over UDP and TCP?", always),
    row(Check::Clock, "clock", "Is this machine's clock right?", always),
    row(Check::Udp443, "udp 443", "Do QUIC's packets pass?", meets_clients),
    row(Check::Handshake, "handshake", "Do both ends of the pair accept each other?", pair),
    row(Check::Rtt, "rtt", "Is the round trip the one of `link.rtt`?", dials),
    row(Check::Mtu, "mtu", "Which size of packets passes to the other end, and back?", dials),
    row(Check::Rate, "rate", "Does the link carry the rate of `link.up` now?", dials),
];

impl Check {
    /// Returns its row. The table has one for each check (see the test).
    pub(crate) fn row(self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.check == self)
    }

    /// Returns its label.
    pub(crate) fn label(self) -> &'static str {
        self.row().map_or("", |row| row.label)
    }

    /// Returns its question.
    pub(crate) fn question(self) -> &'static str {
        self.row().map_or("", |row| row.question)
    }

    /// Returns true if the check is for a box with these settings.
    pub(crate) fn applies(self, settings: &Settings) -> bool {
        self.row().is_some_and(|row| (row.applies)(settings))
    }
}

fn always(_: &Settings) -> bool {
    true
}

fn meets_clients(settings: &Settings) -> bool {
    settings.role.meets_clients()
}

/// Clients' packets for other ports pass through a box that intercepts.
fn forwards(settings: &Settings) -> bool {
    settings.role.meets_clients() && settings.listen.intercept != Intercept::None
}

fn pair(settings: &Settings) -> bool {
    !settings.role.is_alone()
}

/// The remote opens the connections of a pair.
fn dials(settings: &Settings) -> bool {
    matches!(settings.role, Role::Remote(_))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_check_has_one_row_with_a_label_of_its_own_and_a_question() {
        let labels: BTreeSet<&str> = TABLE.iter().map(|row| row.label).collect();
        assert_eq!(labels.len(), TABLE.len());
        assert!(TABLE.iter().all(|row| row.question.ends_with('?')));
        assert!(TABLE.iter().all(|row| row.check.row().is_some_and(|found| found.label == row.label)));
    }
}
