//! Routes and addresses of this machine in `dns.instant_range`. Every address of the range belongs to a name, so clients would
//! not reach who is there.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};

use ipnet::Ipv4Net;
use longhaul_config::Settings;

/// The shortest prefix of a route that tells that somebody is there. VPNs divide the default route into halves.
const SHORTEST: u8 = 8;

/// Returns who uses a part of the range, and the remedy. None if nobody does, or if no name has such an address.
pub(super) fn in_use(settings: &Settings, local: &[IpAddr]) -> Option<String> {
    let range = settings.instant_addresses()?;
    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    let user = user(range, &routes, local)?;
    Some(format!(
        "{range}, set by `dns.instant_range`, is in use here: {user}. Names get addresses in it, and clients of these names would not reach who is there. Write another range, such as `instant_range: 198.19.0.0/16` or a part of 240.0.0.0/4"
    ))
}

/// Returns who uses a part of the range: an address of this machine, or a route of the table in `/proc/net/route`.
fn user(range: Ipv4Net, routes: &str, local: &[IpAddr]) -> Option<String> {
    let own = local.iter().find(|address| matches!(address, IpAddr::V4(own) if range.contains(own)));
    let own = own.map(|address| format!("this machine has the address {address}"));
    own.or_else(|| {
        let overlaps = |net: &Ipv4Net| net.prefix_len() >= SHORTEST && (net.contains(&range) || range.contains(net));
        let route = routes.lines().filter_map(route).find(|(net, _)| overlaps(net))?;
        Some(format!("a route leads {} to the device {}", route.0, route.1))
    })
}

/// Reads a line of `/proc/net/route`: the network and the device of a route.
fn route(line: &str) -> Option<(Ipv4Net, &str)> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let (device, network, mask) = (words.first()?, words.get(1)?, words.get(7)?);
    // The kernel prints the four bytes as one number of this machine.
    let address = |hex: &str| Some(Ipv4Addr::from(u32::from_str_radix(hex, 16).ok()?.to_ne_bytes()));
    Some((Ipv4Net::with_netmask(address(network)?, address(mask)?).ok()?, device))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line as the kernel prints it.
    fn line(device: &str, net: &str) -> String {
        let net: Ipv4Net = net.parse().unwrap();
        let hex = |address: Ipv4Addr| format!("{:08X}", u32::from_ne_bytes(address.octets()));
        format!("{device}\t{}\t00000000\t0001\t0\t0\t0\t{}\t0\t0\t0\n", hex(net.network()), hex(net.netmask()))
    }

    #[test]
    fn a_range_is_in_use_if_an_address_or_a_route_of_the_machine_is_in_it() {
        let range: Ipv4Net = "198.18.0.0/15".parse().unwrap();
        let head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n";
        let of = |routes: &[(&str, &str)]| {
            let table = routes.iter().map(|(device, net)| line(device, net)).collect::<String>();
            user(range, &(head.to_owned() + &table), &[])
        };
        let usual = [("sky0", "0.0.0.0/0"), ("tun0", "0.0.0.0/1"), ("tun0", "128.0.0.0/1"), ("lan0", "192.0.2.0/24")];
        assert_eq!(of(&usual), None);
        for (net, device) in [("198.18.5.0/24", "lab0"), ("198.19.255.255/32", "lab0"), ("198.0.0.0/8", "vpn0")] {
            let found = of(&[usual[0], (device, net)]).unwrap();
            assert_eq!(found, format!("a route leads {net} to the device {device}"));
        }
        assert_eq!(of(&[("lan0", "198.20.0.0/16")]), None);
        let local = ["192.0.2.1", "198.19.0.1"].map(|text| text.parse().unwrap());
        assert_eq!(user(range, "", &local).unwrap(), "this machine has the address 198.19.0.1");
        assert_eq!(user(range, "", &local[..1]), None);
    }
}
