//! Special addresses: ranges in which no web server of the Internet can be.
//!
//! A client chooses the host name, so it chooses the address. The guard refuses these ranges, the URL map moves no URL
//! of them, and `longhaul check` warns of a proxy address in them. All three read `special-addresses.txt` through this
//! module; the DNS plugin reads a copy that a test compares.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

/// The table, one range per row. Its head explains the columns.
const TABLE: &str = include_str!("../special-addresses.txt");

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| TABLE.lines().filter_map(Row::parse).collect());

/// The verdict on a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// No web server can be there, and connections are refused.
    No,
    /// An ordinary address.
    Yes,
    /// The IPv4 address in the last 32 bits decides.
    Embedded,
}

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first address.
    pub network: IpAddr,
    /// The prefix length in bits: at most 32 for IPv4, 128 for IPv6.
    pub length: u8,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The addresses that the row describes.
    pub range: Range,
    /// The verdict on them.
    pub origin: Origin,
    /// The RFC that assigns the range, for example `RFC1918`.
    pub source: &'static str,
    /// The purpose, in words.
    pub name: &'static str,
}

/// Returns every row of the table in order.
pub fn rows() -> &'static [Row] {
    &ROWS
}

/// Returns true if the proxy must not connect to `address` for a client. Ignores exceptions in the configuration.
pub fn is_refused(address: IpAddr) -> bool {
    rows().iter().filter(|row| row.range.contains(address)).any(|row| match row.origin {
        Origin::No => true,
        Origin::Yes => false,
        Origin::Embedded => embedded(address).is_some_and(is_refused),
    })
}

/// Ranges that browsers call local. A public page may load nothing from there, or asks the user first. Measured with
/// Chromium 156 and Firefox 153; the IPv6 ranges are those of the specification (WICG, Local Network Access).
const LOCAL_TO_BROWSERS: &[Range] = &[
    Range { network: IpAddr::V4(Ipv4Addr::UNSPECIFIED), length: 8 },
    Range { network: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), length: 8 },
    Range { network: IpAddr::V4(Ipv4Addr::new(100, 64, 0, 0)), length: 10 },
    Range { network: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), length: 8 },
    Range { network: IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0)), length: 16 },
    Range { network: IpAddr::V4(Ipv4Addr::new(172, 16, 0, 0)), length: 12 },
    Range { network: IpAddr::V4(Ipv4Addr::new(192, 168, 0, 0)), length: 16 },
    Range { network: IpAddr::V6(Ipv6Addr::LOCALHOST), length: 128 },
    Range { network: IpAddr::V6(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0)), length: 7 },
    Range { network: IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), length: 10 },
];

/// Returns true if browsers keep public pages from loading objects at `address`.
pub fn is_local_to_browsers(address: IpAddr) -> bool {
    let address = address.to_canonical();
    LOCAL_TO_BROWSERS.iter().any(|range| range.contains(address))
}

/// Returns the refused ranges, for programs that match addresses themselves. [`is_refused`] is true exactly inside
/// them. IPv4 ranges appear a second time behind each prefix that embeds IPv4 addresses.
pub fn refused() -> impl Iterator<Item = Range> {
    let plain = rows().iter().filter(|row| row.origin == Origin::No).map(|row| row.range);
    let behind = rows().iter().filter(|row| row.origin == Origin::Embedded).flat_map(|prefix| {
        let ipv4 = rows().iter().filter(|row| row.origin == Origin::No);
        ipv4.filter_map(|row| row.range.behind(prefix.range.network))
    });
    plain.chain(behind)
}

impl Range {
    /// Returns true if `address` is of the same family and in the range.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                same_prefix(u32::from(network).into(), u32::from(address).into(), 32_u8.saturating_sub(self.length))
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                same_prefix(network.into(), address.into(), 128_u8.saturating_sub(self.length))
            }
            _ => false,
        }
    }

    /// Returns an IPv4 range as seen through a /96 that embeds IPv4 addresses. Returns None for an IPv6 range.
    fn behind(self, prefix: IpAddr) -> Option<Self> {
        let (IpAddr::V4(network), IpAddr::V6(prefix)) = (self.network, prefix) else { return None };
        let network = u128::from(prefix) | u128::from(u32::from(network));
        Some(Self { network: IpAddr::V6(Ipv6Addr::from(network)), length: 96 + self.length })
    }
}

/// Returns true if all bits but the last `free` are equal.
fn same_prefix(network: u128, address: u128, free: u8) -> bool {
    // A shift by all 128 bits overflows. A range without a prefix contains every address.
    let bits = |value: u128| value.checked_shr(free.into()).unwrap_or_default();
    bits(network) == bits(address)
}

/// Returns the IPv4 address in the last 32 bits of an IPv6 address.
fn embedded(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else { return None };
    let [.., a, b, c, d] = address.octets();
    Some(IpAddr::V4(Ipv4Addr::new(a, b, c, d)))
}

impl Row {
    /// Reads a line of the table. Returns None for a comment. A test ensures that every other line is a row.
    fn parse(line: &'static str) -> Option<Self> {
        let (range, rest) = word(line);
        let (origin, rest) = word(rest);
        let (source, name) = word(rest);
        let (network, length) = range.split_once('/')?;
        let origin = match origin {
            "no" => Origin::No,
            "yes" => Origin::Yes,
            "embedded" => Origin::Embedded,
            _ => return None,
        };
        let range = Range { network: network.parse().ok()?, length: length.parse().ok()? };
        Some(Self { range, origin, source, name })
    }
}

/// Splits a line into its first word and the rest.
fn word(line: &str) -> (&str, &str) {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    (word, rest.trim_start())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refuses(address: &str) -> bool {
        is_refused(address.parse().unwrap())
    }

    #[test]
    fn every_line_of_the_table_is_a_row_or_a_comment() {
        let lines = TABLE.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(rows().len(), lines);
        for row in rows() {
            let Range { network, length } = row.range;
            let bits = if network.is_ipv4() { 32 } else { 128 };
            assert!(length > 0 && length <= bits, "{row:?}");
            let host_bits = match network {
                IpAddr::V4(address) => u128::from(u32::from(address)) & ((1 << (32 - length)) - 1),
                IpAddr::V6(address) => u128::from(address) & ((1 << (128 - length)) - 1),
            };
            assert_eq!(host_bits, 0, "{row:?} has bits behind its length");
            assert!(row.source.starts_with("RFC") && !row.name.is_empty(), "{row:?}");
            assert!(row.origin != Origin::Embedded || (network.is_ipv6() && length == 96), "{row:?}");
        }
    }

    #[test]
    fn a_range_ends_where_its_length_says() {
        for inside in ["100.64.0.0", "100.100.0.1", "100.127.255.255", "198.18.0.5", "198.19.255.255", "fec0::1"] {
            assert!(refuses(inside), "{inside}");
        }
        for outside in ["100.63.255.255", "100.128.0.0", "198.17.255.255", "198.20.0.0", "8.8.8.8", "2001:200::1"] {
            assert!(!refuses(outside), "{outside}");
        }
    }

    #[test]
    fn an_embedded_ipv4_address_decides_or_the_form_is_refused_whole() {
        for refused in [
            "::ffff:8.8.8.8",
            "::8.8.8.8",
            "::ffff:0:8.8.8.8",
            "2002:808:808::",
            "2001::1",
            "64:ff9b:1::8.8.8.8",
            "64:ff9b::10.0.0.1",
            "64:ff9b::100.64.0.1",
        ] {
            assert!(refuses(refused), "{refused}");
        }
        assert!(!refuses("64:ff9b::8.8.8.8") && !refuses("64:ff9b::198.51.100.7"));
    }

    proptest! {
        #[test]
        fn the_list_of_refused_ranges_and_the_question_agree(v4: u32, v6: u128, row in 0..rows().len(), low: u32) {
            let near = match rows()[row].range.network {
                IpAddr::V4(network) => IpAddr::V4(Ipv4Addr::from(u32::from(network) ^ (low >> 12))),
                IpAddr::V6(network) => IpAddr::V6(Ipv6Addr::from(u128::from(network) ^ u128::from(low))),
            };
            for address in [IpAddr::V4(v4.into()), IpAddr::V6(v6.into()), near] {
                prop_assert_eq!(refused().any(|range| range.contains(address)), is_refused(address), "{}", address);
            }
        }
    }
}
