//! The commands that keep the map of the packet rules from addresses of names to their true ones.

use std::fmt::Write as _;
use std::net::Ipv4Addr;

use super::instant::{ABSENT, ELEMENT_MIN, KEPT, KEPT_S, NONE, TRUE};
use super::nft::TABLE;

/// The truth about the name that an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// Its true address.
    At(Ipv4Addr),
    /// It has no IPv4 address that clients may reach. The ground may know a way to it.
    Nowhere,
    /// There is no such name.
    Absent,
}

/// Returns the commands of `nft` by which the rules know that the map is kept, and know these mappings.
/// A mapping is the address of a name, and the truth about it. `anew`: and no others.
#[must_use]
pub fn keep(mappings: &[(Ipv4Addr, Truth)], anew: bool) -> String {
    let mut out = String::new();
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    if anew {
        line(format!("flush map {TABLE} {TRUE}"));
        line(format!("flush set {TABLE} {NONE}"));
        line(format!("flush set {TABLE} {ABSENT}"));
    }
    // An element that exists keeps its time, so it is added again.
    let alive = format!("element {TABLE} {KEPT} {{ ip timeout {KEPT_S}s }}");
    line(format!("add {alive}\ndelete element {TABLE} {KEPT} {{ ip }}\nadd {alive}"));
    for (instant, truth) in mappings {
        let member = |set: &str| format!("add element {TABLE} {set} {{ {instant} timeout {ELEMENT_MIN}m }}");
        line(match truth {
            Truth::At(truth) => format!("add element {TABLE} {TRUE} {{ {instant} timeout {ELEMENT_MIN}m : {truth} }}"),
            Truth::Nowhere => member(NONE),
            Truth::Absent => member(NONE) + "\n" + &member(ABSENT),
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_kept_by_elements_that_end_by_themselves() {
        let [one, two, gone, server] =
            ["198.18.0.1", "198.18.0.2", "198.18.0.3", "203.0.113.9"].map(|text| text.parse().unwrap());
        let text = keep(&[(one, Truth::At(server)), (two, Truth::Nowhere), (gone, Truth::Absent)], true);
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "flush map inet longhaul instant_true",
                "flush set inet longhaul instant_none",
                "flush set inet longhaul instant_absent",
                "add element inet longhaul instant_kept { ip timeout 15s }",
                "delete element inet longhaul instant_kept { ip }",
                "add element inet longhaul instant_kept { ip timeout 15s }",
                "add element inet longhaul instant_true { 198.18.0.1 timeout 15m : 203.0.113.9 }",
                "add element inet longhaul instant_none { 198.18.0.2 timeout 15m }",
                "add element inet longhaul instant_none { 198.18.0.3 timeout 15m }",
                "add element inet longhaul instant_absent { 198.18.0.3 timeout 15m }",
            ]
        );
        assert!(!keep(&[], false).contains("flush"));
    }
}
