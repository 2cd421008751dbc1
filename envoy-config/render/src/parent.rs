//! Access lists for `cache.parent`. The parent resolves names again, so the guard's check of an address does not bind
//! it.
//!
//! A name may have a public address when the guard resolves it and a private one when the parent does (DNS rebinding).
//! Envoy cannot give the parent the address instead: a proxy derives `Host` from the URL (RFC 9112 section 3.2.2), and
//! the parent would cache objects by address. So the parent needs the guard's ranges as a list of its own. Varnish
//! needs none, because it connects only to the backends in its VCL.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv6Net};
use longhaul_config::{Cache, Settings};

use super::guard;

/// The path of the list for Squid, below the root of the rendered tree.
const SQUID: &str = "parent/squid.conf";
/// The path of the list for Apache Traffic Server 9 and later, below the root of the rendered tree.
const TRAFFIC_SERVER: &str = "parent/ip_allow.yaml";

/// Returns the lists with their paths. There are none without a parent.
pub(super) fn access_lists(settings: &Settings, local: &[IpAddr]) -> Vec<(&'static str, String)> {
    match &settings.cache {
        Cache::Parents(parents) => {
            let refused = refused(settings, local, parents);
            vec![(SQUID, squid(settings, &refused)), (TRAFFIC_SERVER, traffic_server(&refused))]
        }
        Cache::Off | Cache::Disk { .. } => Vec::new(),
    }
}

/// Returns the ranges that the guard refuses and the parents' addresses, without those that `upstream.allow_private`
/// allows. Adds all of `upstream.deny`.
fn refused(settings: &Settings, local: &[IpAddr], parents: &[SocketAddr]) -> BTreeSet<IpNet> {
    let allowed = &settings.upstream.allow_private;
    let special = guard::refused().flat_map(|range| without(range, allowed));
    let own =
        guard::own_addresses(settings, local).into_iter().chain(parents.iter().map(SocketAddr::ip)).map(IpNet::from);
    let own = own.filter(|address| !allowed.contains(address));
    special.chain(own).chain(settings.upstream.deny.iter().copied()).collect()
}

/// Returns the parts of a range that no allowed range covers. Splits the range in halves until each is inside or
/// outside.
fn without(range: IpNet, allowed: &[IpNet]) -> Vec<IpNet> {
    if allowed.iter().any(|net| net.contains(&range)) {
        return Vec::new();
    }
    if !allowed.iter().any(|net| range.contains(net)) {
        return vec![range];
    }
    let halves = range.subnets(range.prefix_len() + 1).into_iter().flatten();
    halves.flat_map(|half| without(half, allowed)).collect()
}

fn squid(settings: &Settings, refused: &BTreeSet<IpNet>) -> String {
    let mut out = String::from(
        "# Longhaul: destinations that its guard refuses, for the Squid of cache.parent. In squid.conf, before every\n\
         # `http_access allow`: include .../parent/squid.conf\n",
    );
    // Squid stores IPv4 addresses as IPv4-mapped ones, so this range would refuse all of them. Squid matches the IPv4
    // address itself.
    let mapped = Ipv6Net::new(Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96).ok().map(IpNet::V6);
    for range in refused.iter().filter(|range| Some(**range) != mapped) {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "acl longhaul_refused dst {range}");
    }
    let ports: Vec<String> = settings.upstream.ports.iter().map(ToString::to_string).collect();
    let _ = writeln!(out, "acl longhaul_ports port {}", ports.join(" "));
    out += "http_access deny longhaul_refused\nhttp_access deny !longhaul_ports\n";
    out
}

fn traffic_server(refused: &BTreeSet<IpNet>) -> String {
    let mut out = String::from(
        "# Longhaul: addresses that its guard refuses, for the Traffic Server of cache.parent. The rules for clients\n\
         # (apply: in) belong below.\nip_allow:\n- apply: out\n  ip_addrs:\n",
    );
    for range in refused {
        let _ = writeln!(out, "  - {range}");
    }
    out += "  action: deny\n  methods: ALL\n";
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nets(texts: &[&str]) -> Vec<IpNet> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn an_allowed_range_is_cut_out_of_a_refused_one_and_nothing_else_is() {
        let cut = |range: &str, allowed: &[&str]| without(range.parse().unwrap(), &nets(allowed));
        assert_eq!(cut("10.0.0.0/8", &[]), nets(&["10.0.0.0/8"]));
        assert_eq!(cut("10.0.0.0/8", &["192.168.0.0/16", "fc00::/7"]), nets(&["10.0.0.0/8"]));
        assert_eq!(cut("10.0.0.0/8", &["10.0.0.0/8"]), nets(&[]));
        assert_eq!(cut("10.0.0.0/8", &["0.0.0.0/0"]), nets(&[]));
        assert_eq!(cut("10.0.0.0/8", &["10.64.0.0/10"]), nets(&["10.0.0.0/10", "10.128.0.0/9"]));
        assert_eq!(cut("127.0.0.0/31", &["127.0.0.1/32"]), nets(&["127.0.0.0/32"]));
    }
}
