//! The limits beyond which a part of a request's way is a cause of slowness. A limit that is too low accuses a healthy
//! part, which costs an operator an evening, so each lies clearly beyond what is usual.

use std::time::Duration;

use super::finding::Cause;

/// The limit of a cause. A part must reach both bounds.
#[derive(Debug)]
pub(super) struct Limit {
    /// The cause.
    pub cause: Cause,
    /// The least time.
    pub time: Duration,
    /// The least share in percent, of the value that `why` names. 0: no such bound.
    pub percent: u64,
    /// The least number of connections, segments or times.
    pub samples: u64,
    /// The reason for these numbers.
    pub why: &'static str,
}

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Every limit. `docs/src/why-is-it-slow.md` has the same numbers.
#[rustfmt::skip]
pub(super) static LIMITS: std::sync::LazyLock<[Limit; 8]> = std::sync::LazyLock::new(|| [
    Limit { cause: Cause::RoundTrip, time: MS(50), percent: 150, samples: 1,
        why: "Percent of `link.rtt`. Transport settings fit a round trip up to half longer (`longhaul measure` warns from twice on)." },
    Limit { cause: Cause::Queue, time: MS(100), percent: 25, samples: 1,
        why: "Percent of the round trip. Delayed acknowledgements add up to 40 ms, and BBR queues a quarter while it probes." },
    Limit { cause: Cause::Loss, time: MS(0), percent: 1, samples: 300,
        why: "Percent of the segments sent. Wired and satellite links lose less than 0.1 %. At 1 %, one response of ten segments in ten waits longer." },
    Limit { cause: Cause::Rate, time: MS(0), percent: 70, samples: 1,
        why: "Percent of `link.down` or `link.up` over a minute. From there on, bytes wait more than twice as long as they are sent (M/M/1)." },
    Limit { cause: Cause::Resolver, time: MS(150), percent: 0, samples: 3,
        why: "The median of queries, without the way to the origins. Public resolvers respond within 50 ms near an exchange, also where they ask others." },
    Limit { cause: Cause::Place, time: MS(80), percent: 0, samples: 3,
        why: "The median of connections. Most sites have servers within 30 ms of a data centre; 80 ms are an ocean." },
    Limit { cause: Cause::Origin, time: MS(500), percent: 0, samples: 3,
        why: "The median of first bytes, without that way. Half of all pages on the web have theirs within 500 ms, with the connection." },
    Limit { cause: Cause::ClientNetwork, time: MS(100), percent: 0, samples: 1,
        why: "The shortest round trip of a client. Cables and Wi-Fi have 1 to 30 ms." },
]);

/// A connection with a shorter round trip does not cross a slow link.
pub(super) const SHORTEST_RTT_US: u32 = 1_000;

/// Returns the limit of a cause.
pub(super) fn limit(cause: Cause) -> Option<&'static Limit> {
    LIMITS.iter().find(|limit| limit.cause == cause)
}

/// Returns true if a client's shortest round trip shows a slow network of its own, `link_us` being the way of all.
pub(super) fn client_is_slow(rtt_us: u64, link_us: u64) -> bool {
    let least = limit(Cause::ClientNetwork).map_or(u64::MAX, |limit| micros(limit.time));
    rtt_us >= link_us.saturating_add(least) && rtt_us >= link_us.saturating_add(link_us / 4)
}

/// Returns a time in microseconds.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
