//! Equal shares of the link for the clients of a pair (`link.fill`).
//!
//! A box that sends a little less than the link carries owns the queue in front of it, and decides whose bytes go next.
//! The ground does it for what comes down, and the remote for what goes up. Envoy's own filter counts the payload of streams,
//! so its limit leaves room for the headers of all layers. The filter `link-share` counts them, too.

use std::time::Duration;

use longhaul_config::{EngineWish, Fill, PeerName, Rate, Role, Settings, show_duration};

/// The part of the link that leaves the modem's queue empty, in percent. At 98 % the queue of a ship's link held 300 ms,
/// and at 100 % 360 to 600 ms.
const AUTO_PERCENT: u32 = 94;
/// The payload within the bytes that cross the link, in thousandths. Twenty streams that share 200 KiB a second leave 11
/// to 13 % to headers.
const PAYLOAD_DOWN: u64 = 875;
/// The same for the other direction, which also carries the acknowledgements of what comes down.
const PAYLOAD_UP: u64 = 770;
/// The bytes of one fill of the bucket. Streams wait for the next one, so many streams take small pieces. At 50 ms and 200
/// KiB a second, pieces of 150 bytes cost 32 % of headers; at 200 ms they cost 12 %.
const FILL_KIB: u64 = 40;
const SHORTEST_FILL_MS: u64 = 50;
/// Envoy keeps a second of the rate for bursts, less one interval. With its longest one of 1 s, each response of a page would wait
/// for its turn: on a cell of 78 kbit/s, a light page took 31 s instead of 12 s.
const LONGEST_FILL_MS: u64 = 250;
/// The slowest limit. Envoy counts whole KiB a second, so a slower one would be wrong by more than an eighth.
const LEAST_KIB: u32 = 4;

/// The sharing of the link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Neighbours {
    /// Each client has an equal share of both directions.
    Fair {
        /// The limit of what comes down to each remote, at the ground. None: the link is too slow for a limit in whole KiB
        /// a second.
        down: Option<Limit>,
        /// The limit of what goes up, at the remote. None as for `down`.
        up: Option<Limit>,
        /// True if wasm filters cannot share: a pattern stands for remotes that nobody has named. The filter `link-share` gives
        /// each a link of its own when it comes, and Envoy's filter has its buckets from the configuration.
        needs_native: bool,
    },
    /// Nothing is limited.
    Unshared(Unshared),
}

/// The limit on the payload of one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// KiB of payload a second, for Envoy's filter.
    pub kib_per_second: u32,
    /// Bytes a second with the headers of all layers, for the filter `link-share`.
    pub wire_bytes_per_second: u64,
    /// Bytes a second of the link itself. No connection is quicker, also after a pause.
    pub link_bytes_per_second: u64,
    /// The time between two fills of the bucket.
    pub fill_interval: Duration,
    /// The formula of the rate.
    pub formula: String,
}

/// The reason for sharing nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unshared {
    /// `link.fill: off`.
    Off,
    /// A single box does not see what bypasses it, and has no box at the other end of the link.
    Edge,
    /// A pattern stands for remotes that nobody has named, and `engine: wasm` needs their names.
    RemotesByPattern,
}

impl Unshared {
    /// Returns the reason in words.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Off => "`link.fill` is off; `fill: auto` gives each client an equal share of the link",
            Self::Edge => {
                "one box cannot limit what bypasses it; `link.device` names the device that `longhaul host` shapes"
            }
            Self::RemotesByPattern => {
                "`split.peer` has a pattern, and wasm filters need the name of each remote; list the remotes, or write `engine: auto`"
            }
        }
    }
}

impl Neighbours {
    pub(super) fn of(settings: &Settings) -> Self {
        let link = &settings.link;
        let by_pattern = match &settings.role {
            Role::Ground(ground) => !ground.remotes.iter().all(PeerName::is_one),
            Role::Remote(_) | Role::Edge => false,
        };
        let percent = match (link.fill, &settings.role) {
            (Fill::Off, _) => return Self::Unshared(Unshared::Off),
            (_, Role::Edge) => return Self::Unshared(Unshared::Edge),
            _ if by_pattern && settings.engine == EngineWish::Wasm => {
                return Self::Unshared(Unshared::RemotesByPattern);
            }
            (Fill::Auto, _) => AUTO_PERCENT,
            (Fill::Percent(percent), _) => u32::from(percent),
        };
        Self::Fair {
            down: Limit::of(link.down, percent, PAYLOAD_DOWN),
            up: Limit::of(link.up, percent, PAYLOAD_UP),
            needs_native: by_pattern,
        }
    }

    /// Returns true if only native filters share.
    #[must_use]
    pub fn needs_native(&self) -> bool {
        matches!(self, Self::Fair { needs_native: true, .. })
    }

    /// Returns the limit of the direction in which a box of this role sends over the link.
    #[must_use]
    pub fn sent_by(&self, role: &Role) -> Option<&Limit> {
        match (self, role) {
            (Self::Fair { down, .. }, Role::Ground(_)) => down.as_ref(),
            (Self::Fair { up, .. }, Role::Remote(_)) => up.as_ref(),
            _ => None,
        }
    }

    /// Returns the limits: name, value and formula.
    #[must_use]
    pub fn rows(&self) -> Vec<[String; 3]> {
        let Self::Fair { down, up, .. } = self else { return Vec::new() };
        let both = [("down", "at the ground", down), ("up", "at the remote", up)];
        let rows = both.into_iter().flat_map(|(direction, end, limit)| {
            let name = format!("{direction}, {end}");
            match limit {
                None => vec![[name, "off".to_owned(), format!("below {LEAST_KIB} KiB/s")]],
                Some(limit) => vec![
                    [name, limit.to_string(), limit.formula.clone()],
                    [
                        format!("{direction}, fill interval"),
                        show_duration(limit.fill_interval),
                        format!(
                            "{FILL_KIB} KiB of it, from {SHORTEST_FILL_MS} to {LONGEST_FILL_MS} ms: shorter ones make small packets, and longer ones delay pages"
                        ),
                    ],
                ],
            }
        });
        rows.collect()
    }
}

impl Limit {
    fn of(rate: Rate, percent: u32, payload: u64) -> Option<Self> {
        let sent = rate.bytes_in(Duration::from_secs(1)) * u64::from(percent) / 100;
        let bytes = sent * payload / 1000;
        let kib_per_second = u32::try_from(bytes >> 10).unwrap_or(u32::MAX);
        (kib_per_second >= LEAST_KIB).then(|| Self {
            kib_per_second,
            // Both directions have the headers of what they carry. Acknowledgements are the rest.
            wire_bytes_per_second: sent * payload / PAYLOAD_DOWN,
            link_bytes_per_second: rate.bytes_in(Duration::from_secs(1)),
            fill_interval: fill_interval(kib_per_second),
            formula: format!(
                "{percent}% of {rate} (`link.fill`), less {}.{}% of headers{}",
                (1000 - payload) / 10,
                (1000 - payload) % 10,
                if payload == PAYLOAD_UP { " and acknowledgements" } else { "" }
            ),
        })
    }
}

impl Limit {
    /// Returns the rate of the link itself.
    #[must_use]
    pub fn link_rate(&self) -> Rate {
        Rate { bits_per_second: self.link_bytes_per_second.saturating_mul(8) }
    }

    /// Returns `wire_bytes_per_second` for a link of another rate.
    #[must_use]
    pub fn wire_bytes_at(&self, rate: Rate) -> u64 {
        let (of, to) =
            (u128::from(self.link_bytes_per_second.max(1)), u128::from(rate.bytes_in(Duration::from_secs(1))));
        u64::try_from(u128::from(self.wire_bytes_per_second) * to / of).unwrap_or(u64::MAX)
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} KiB/s", self.kib_per_second)
    }
}

fn fill_interval(kib_per_second: u32) -> Duration {
    let exact = FILL_KIB * 1000 / u64::from(kib_per_second);
    Duration::from_millis((exact / 10 * 10).clamp(SHORTEST_FILL_MS, LONGEST_FILL_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kbit: u64, percent: u32, payload: u64) -> Option<Limit> {
        Limit::of(Rate { bits_per_second: kbit * 1000 }, percent, payload)
    }

    fn limit(kbit: u64, percent: u32, payload: u64) -> Option<(u32, u128)> {
        let limit = of(kbit, percent, payload)?;
        Some((limit.kib_per_second, limit.fill_interval.as_millis()))
    }

    #[test]
    fn a_filter_that_counts_headers_has_what_the_link_carries_less_acknowledgements() {
        let wire = |kbit, percent, payload| of(kbit, percent, payload).unwrap().wire_bytes_per_second;
        assert_eq!(wire(2000, AUTO_PERCENT, PAYLOAD_DOWN), 235_000);
        assert_eq!(wire(500, AUTO_PERCENT, PAYLOAD_UP), 51_700);
        assert_eq!(wire(2000, 50, PAYLOAD_DOWN), 125_000);
        let half = of(2000, 50, PAYLOAD_DOWN).unwrap();
        assert_eq!(half.link_bytes_per_second, 250_000);
        let at = |kbit: u64| half.wire_bytes_at(Rate { bits_per_second: kbit * 1000 });
        assert_eq!(
            (half.wire_bytes_at(half.link_rate()), at(2000), at(20_000), at(100)),
            (125_000, 125_000, 1_250_000, 6250),
            "another link, and the same part of it"
        );
    }

    #[test]
    fn a_pattern_leaves_the_shares_to_native_filters() {
        let pem = concat!(env!("CARGO_MANIFEST_DIR"), "/../longhaul/tests/config/files/pep");
        let of = |peer: &str, engine: &str| {
            let text = format!(
                "role: ground\nengine: {engine}\nlink: {{ rtt: 600ms, down: 20mbit, up: 5mbit, fill: auto }}\n\
                 upstream: {{ resolvers: [192.0.2.53] }}\n\
                 split: {{ peer: [ship.example, \"{peer}\"], cert: {pem}.pem, key: {pem}.key, ca: {pem}.pem }}\n"
            );
            let settings = longhaul_config::load_text("test.yaml".as_ref(), text).unwrap().settings;
            Neighbours::of(&settings)
        };
        assert!(
            of("*.ferries.example", "auto").needs_native() && of("spiffe://example/ferry/*", "native").needs_native()
        );
        assert_eq!(of("*.ferries.example", "wasm"), Neighbours::Unshared(Unshared::RemotesByPattern));
        let listed = of("ferry.example", "wasm");
        assert!(matches!(listed, Neighbours::Fair { needs_native: false, .. }), "{listed:?}");
    }

    #[test]
    fn the_limit_and_its_interval_follow_from_the_rate() {
        // A ship's link, both ways: the values that were measured.
        assert_eq!(limit(2000, AUTO_PERCENT, PAYLOAD_DOWN), Some((200, 200)));
        assert_eq!(limit(500, AUTO_PERCENT, PAYLOAD_UP), Some((44, 250)));
        // GEO, where the shortest interval holds, and a cell, where the longest does.
        assert_eq!(limit(20_000, AUTO_PERCENT, PAYLOAD_DOWN), Some((2008, 50)));
        assert_eq!(limit(78, AUTO_PERCENT, PAYLOAD_DOWN), Some((7, 250)));
        assert_eq!(limit(2000, 50, PAYLOAD_DOWN), Some((106, 250)));
        assert_eq!(limit(40, AUTO_PERCENT, PAYLOAD_UP), None, "3 KiB a second would be wrong by a fifth");
    }
}
