//! The packet rules of addresses that names have before the truth is known ([`Settings::instant_addresses`]). The listeners
//! take ports 80, 443 and 53 of them. Nothing to them leaves towards the link.
//!
//! Of names on no list, other ports and UDP reach the true addresses. `longhaul host --watch` keeps the map to these, with the
//! rights that `longhaul run` lacks. While it runs, packets that come before the truth are dropped, so TCP tries again after
//! a second. While it does not, they are rejected at once.
//!
//! The ground tells a client of http that a name does not exist, and cannot tell it to a client of TLS. Firefox tries a TLS
//! connection that ends ten times, so further connections to such a name are rejected at once.

use ipnet::Ipv4Net;
use longhaul_config::Settings;

/// The map from a name's address to its true one.
pub(super) const TRUE: &str = "instant_true";
/// The set of addresses whose names have no true one.
pub(super) const NONE: &str = "instant_none";
/// The set of addresses whose names do not exist.
pub(super) const ABSENT: &str = "instant_absent";
/// The set with one element while the map is kept.
pub(super) const KEPT: &str = "instant_kept";
/// The most elements, twice the names that have an address at one time.
const SIZE: u32 = 32768;
/// The time that an element stays. Clients use an address for 10 minutes at most.
pub(super) const ELEMENT_MIN: u32 = 15;
/// The time after which packets are rejected, if nobody keeps the map any more.
pub(super) const KEPT_S: u32 = 15;

/// Returns the sets, maps and chains. Empty if no name has such an address. `mark` is that of packets that TPROXY has given to a
/// listener.
pub(super) fn rules(settings: &Settings, clients: &str, mark: u32) -> String {
    let Some(range) = settings.instant_addresses() else { return String::new() };
    let visits = settings.first_visits().ok();
    let kept = visits.map(|_| kept(clients, mark)).unwrap_or_default();
    let wait = visits.map(|visits| wait(clients, range, visits)).unwrap_or_default();
    format!(
        "{kept}\tchain instant {{\n\
         \t\ttype filter hook forward priority filter; policy accept;\n\n\
         \t\t# addresses of names whose true ones are not known yet\n\
         {wait}\
         \t\tiifname {clients} ip daddr {range} meta l4proto tcp reject with tcp reset\n\
         \t\tip daddr {range} reject\n\
         \t}}\n\n\
         \tchain instant_of_this_host {{\n\
         \t\ttype filter hook output priority filter; policy accept;\n\n\
         \t\tip daddr {range} reject\n\
         \t}}\n"
    )
}

fn kept(clients: &str, mark: u32) -> String {
    format!(
        "\tmap {TRUE} {{\n\t\ttype ipv4_addr : ipv4_addr; flags timeout; size {SIZE};\n\t}}\n\n\
         \tset {NONE} {{\n\t\ttype ipv4_addr; flags timeout; size {SIZE};\n\t}}\n\n\
         \tset {ABSENT} {{\n\t\ttype ipv4_addr; flags timeout; size {SIZE};\n\t}}\n\n\
         \tset {KEPT} {{\n\t\ttype ether_type; flags timeout; size 1;\n\t}}\n\n\
         \tchain instant_names_that_do_not_exist {{\n\
         \t\ttype filter hook prerouting priority mangle - 1; policy accept;\n\n\
         \t\tiifname {clients} ip daddr @{ABSENT} tcp dport 443 ct state new reject with tcp reset\n\
         \t}}\n\n\
         \tchain to_true_addresses {{\n\
         \t\ttype nat hook prerouting priority dstnat + 1; policy accept;\n\n\
         \t\tiifname != {clients} accept\n\
         \t\t# a listener takes these\n\
         \t\tmeta mark {mark:#x} accept\n\
         \t\tdnat ip to ip daddr map @{TRUE}\n\
         \t}}\n\n"
    )
}

/// Browsers use TCP at once after a rejection of QUIC, so it never goes to the true address.
fn wait(clients: &str, range: Ipv4Net, visits: Ipv4Net) -> String {
    format!(
        "\t\tiifname {clients} ct original ip daddr {range} udp dport 443 reject\n\
         \t\t# the truth is on its way\n\
         \t\tiifname {clients} ip daddr {visits} ip daddr != @{NONE} meta protocol @{KEPT} drop\n"
    )
}

#[cfg(test)]
mod tests {
    use longhaul_config::load_text;

    use super::*;

    /// Returns the rules of a remote with this `dns`.
    fn rules_of(dns: &str) -> String {
        let pem = concat!(env!("CARGO_MANIFEST_DIR"), "/../longhaul/tests/config/files/pep");
        let text = format!(
            "role: remote\nlink: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
             split: {{ peer: \"198.51.100.40:8443\", cert: {pem}.pem, key: {pem}.key, ca: {pem}.pem }}\ndns: {{ {dns} }}\n"
        );
        rules(&load_text("test.yaml".as_ref(), text).unwrap().settings, "lan0", 0x104a)
    }

    #[test]
    fn nothing_to_the_range_leaves_and_only_names_on_no_list_have_a_map() {
        assert_eq!(rules_of("instant: off"), "");
        let listed = rules_of("www: true");
        let visits = rules_of("instant: on");
        let both = rules_of("instant: on, www: true");
        for text in [&listed, &visits, &both] {
            assert_eq!(text.matches("\t\tip daddr 198.18.0.0/15 reject\n").count(), 2, "forwarded and sent: {text}");
            assert!(
                text.contains("iifname lan0 ip daddr 198.18.0.0/15 meta l4proto tcp reject with tcp reset"),
                "{text}"
            );
        }
        assert!(!listed.contains("instant_true"), "{listed}");
        assert!(visits.contains("dnat ip to ip daddr map @instant_true"), "{visits}");
        assert!(
            visits.contains("ip daddr @instant_absent tcp dport 443 ct state new reject with tcp reset"),
            "{visits}"
        );
        assert!(visits.contains("iifname lan0 ip daddr 198.18.0.0/15 ip daddr != @instant_none"), "{visits}");
        assert!(
            both.contains("iifname lan0 ip daddr 198.19.0.0/16 ip daddr != @instant_none"),
            "listed names wait for no truth"
        );
        let quic = visits.find("udp dport 443 reject").unwrap();
        assert!(quic < visits.find("drop").unwrap(), "{visits}");
    }
}
