//! The behaviour of a remote towards a ground that does not respond: its health checks, its retries, and the ejection of
//! grounds that refuse connections.

use std::time::Duration;

use longhaul_config::{Link, Remote, WhenDown, show_duration};

use super::capacity::Reasoned;
use super::intervals::Intervals;
use super::timers::{Timer, Traffic};

/// The longest wait before the first retry. It must be negligible beside a round trip, because a request whose
/// compressed headers the ground could not read waits, too, before it is sent again in another form. Doubling it
/// reaches a second within eight attempts.
const RETRY_FIRST: Duration = Duration::from_millis(10);
/// The longest wait before a retry. A request notices at most this late that the ground is back.
const RETRY_LAST: Duration = Duration::from_secs(2);
/// The least number of retries: one for a pipe that broke, and one for headers that the ground could not read.
const LEAST_RETRIES: u32 = 2;
/// The least number of failed checks in a row. Any link may lose one check.
const LEAST_FAILURES: u32 = 2;
/// The attempts on each way, where there are several. Envoy ejects a ground after as many refusals.
const ATTEMPTS_ON_EACH: u32 = 2;
/// The refused connections in a row after which Envoy leaves the only ground alone for a while.
const REFUSALS_OF_THE_ONLY_WAY: u32 = 5;

/// The ways of a remote to origins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ways {
    /// Over grounds, and directly while none responds (`when_down: direct`).
    Direct,
    /// Over one ground alone.
    OneGround,
    /// Over the first of several grounds that responds.
    SeveralGrounds,
}

impl Ways {
    fn of(remote: &Remote) -> Self {
        match (remote.when_down, remote.grounds.as_slice()) {
            (WhenDown::Direct, _) => Self::Direct,
            (WhenDown::Error, [_, _, ..]) => Self::SeveralGrounds,
            (WhenDown::Error, _) => Self::OneGround,
        }
    }
}

/// The checks, retries and ejections of a remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failover {
    /// The time between two health checks of a ground that responds.
    pub check: Timer,
    /// The time between two checks after a failed one.
    pub check_again: Timer,
    /// The time for the response to a check.
    pub check_answer: Timer,
    /// The number of failed checks in a row after which a ground counts as down.
    pub failures: Reasoned<u32>,
    /// The number of retries of a request that the pipe lost. They are for requests that are safe to repeat.
    pub retries: Reasoned<u32>,
    /// The number of retries of a client's connection that found nothing open, where there is one way to origins. Without
    /// Longhaul, such a client would wait for as long as TCP does. Each connection to the ground that times out costs all
    /// waiting clients one, so their number alone says little about the time.
    pub connection_retries: Reasoned<u32>,
    /// The longest wait before the first retry. It doubles before each further one, up to `retry_last`.
    pub retry_first: Duration,
    /// The longest wait before a retry.
    pub retry_last: Duration,
    /// The ejection of grounds that refuse connections.
    pub ejection: Ejection,
}

/// The ejection of grounds that refuse connections: Envoy tries none of them for some seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ejection {
    /// The number of refused connections in a row after which a ground is ejected.
    pub after: u32,
    /// The largest share of grounds that may be ejected at a time, in percent.
    pub most_percent: u32,
    /// The attempts to connect for one client, so that each way gets two. None: there is one way.
    pub attempts: Option<u32>,
}

/// The row of a remote in the table of its ways.
struct Row {
    check: (Duration, &'static str),
    failures: Reasoned<u32>,
    retries: Reasoned<u32>,
    ejection: Ejection,
}

impl Row {
    /// Returns the row of the table:
    ///
    /// | ways | why |
    /// |---|---|
    /// | direct | one failed check is enough, because going direct for a while costs less than waiting |
    /// | one ground | a restart must not fail a request, and there is nowhere else to go |
    /// | several grounds | one lost check does not move all clients to a ground where nothing is known of them. One always stays |
    fn of(remote: &Remote, link: &Link, intervals: &Intervals, user_timeout: Duration) -> Self {
        let (grounds, wait) = (count(remote.grounds.len().max(1)), remote.restart_wait);
        let soon = (intervals.check_before_a_switch, intervals.check_before_a_switch_reason);
        let seldom = (intervals.check, intervals.check_reason);
        let fixed = |value, reason: &str| Reasoned { value, reason: reason.to_owned() };
        let for_a_restart = |value| Reasoned { value, reason: format!("`split.restart_wait` {}", show_duration(wait)) };

        let at_once = fixed(1, "going direct costs less than waiting");
        let lost = fixed(LEAST_FAILURES, "any link may lose one");
        let down = of_the_only_way(wait, user_timeout, link);
        let on_each_way = |ways| fixed(ATTEMPTS_ON_EACH * ways, "two on each way");
        let restarted = for_a_restart(retries_in(wait, link.rtt));
        let all = |ways| Ejection::among(ways, 100);
        let all_but_one = Ejection::among(grounds, 100 * (grounds - 1) / grounds);
        match Ways::of(remote) {
            Ways::Direct => {
                let ways = grounds + 1;
                Self { check: soon, failures: at_once, retries: on_each_way(ways), ejection: all(ways) }
            }
            Ways::OneGround => Self { check: seldom, failures: down, retries: restarted, ejection: all(1) },
            Ways::SeveralGrounds => Self { check: soon, failures: lost, retries: restarted, ejection: all_but_one },
        }
    }
}

impl Ejection {
    fn among(ways: u32, most_percent: u32) -> Self {
        let is_the_only_way = ways == 1;
        Self {
            after: if is_the_only_way { REFUSALS_OF_THE_ONLY_WAY } else { ATTEMPTS_ON_EACH },
            most_percent,
            attempts: (!is_the_only_way).then_some(ATTEMPTS_ON_EACH * ways),
        }
    }
}

impl Failover {
    /// `user_timeout` is the time for which TCP waits in an outage.
    pub(super) fn of(remote: &Remote, link: &Link, intervals: &Intervals, user_timeout: Duration) -> Self {
        let Row { check, failures, retries, ejection } = Row::of(remote, link, intervals, user_timeout);
        let patience = remote.restart_wait.max(user_timeout);
        let connection_retries = Reasoned {
            value: retries_in(patience, link.rtt),
            reason: format!("the longer of `split.restart_wait` and user_timeout: {}", show_duration(patience)),
        };
        let timer = |purpose, (time, formula): (Duration, &str)| Timer {
            traffic: &[Traffic::Pipe],
            purpose,
            time,
            formula: formula.to_owned(),
        };
        Self {
            check: timer("a ground responds: its next health check", check),
            check_again: timer("a health check has failed: the next one", check_again(link)),
            check_answer: timer("a health check has no response: it has failed", check_answer(link)),
            failures,
            retries,
            connection_retries,
            retry_first: RETRY_FIRST,
            retry_last: RETRY_LAST,
            ejection,
        }
    }

    /// Returns the timers.
    pub(super) fn timers(&self) -> [&Timer; 3] {
        [&self.check, &self.check_again, &self.check_answer]
    }
}

/// Returns the time between two checks after a failed one, with its formula.
fn check_again(link: &Link) -> (Duration, &'static str) {
    (Duration::from_secs(1) + link.rtt * 2, "1 s + 2 x RTT")
}

/// Returns the time for the response to a check, with its formula. The first check on a connection takes three round trips.
fn check_answer(link: &Link) -> (Duration, &'static str) {
    let time = Duration::from_secs(2) + link.rtt * 4 + link.queueing_delay();
    (time, "2 s + 4 x RTT + 64kib at the lower rate: a page that fills a slow link is no outage")
}

/// Returns the number of failed checks in a row after which the only ground counts as down.
///
/// Envoy then gives up its connections. Once the link is back, a check takes three round trips, and a new pipe as many more.
/// There is no other way, so a silent ground stays in use for as long as TCP hopes for its connections. Clients wait, as they
/// would without Longhaul. A ground that refuses connections stays in use for `restart_wait` at least.
fn of_the_only_way(restart_wait: Duration, user_timeout: Duration, link: &Link) -> Reasoned<u32> {
    let again = check_again(link).0;
    let fits = |time: Duration, each: Duration| {
        u32::try_from(time.as_millis().div_ceil(each.as_millis())).unwrap_or(u32::MAX).max(LEAST_FAILURES)
    };
    let refused = fits(restart_wait, again + link.rtt);
    let silent = fits(user_timeout, again + check_answer(link).0);
    let reason = if silent > refused {
        format!("user_timeout {}: a link that is back finds the connections that it had", show_duration(user_timeout))
    } else {
        format!("`split.restart_wait` {}", show_duration(restart_wait))
    };
    Reasoned { value: refused.max(silent), reason }
}

/// Returns [`LEAST_RETRIES`] and as many more as fit into `restart_wait`, if each failed attempt takes a round trip.
fn retries_in(restart_wait: Duration, rtt: Duration) -> u32 {
    let (mut retries, mut longest, mut passed) = (LEAST_RETRIES, RETRY_FIRST, Duration::ZERO);
    while passed < restart_wait {
        retries += 1;
        // Envoy draws each wait uniformly from zero to the longest wait, so the mean is half of it.
        passed += longest / 2 + rtt;
        longest = (longest * 2).min(RETRY_LAST);
    }
    retries
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use longhaul_config::{HostPort, Identity, PipeTransport, Rate, Role, Udp443};

    use super::*;

    fn link(rtt: Duration, up: u64) -> Link {
        let down = Rate { bits_per_second: 20_000_000 };
        Link::of(rtt, down, Rate { bits_per_second: up })
    }

    fn of(grounds: u16, when_down: WhenDown) -> Failover {
        let remote = Remote {
            grounds: (0..grounds).map(|number| HostPort::parse(&format!("192.0.2.{number}:8443")).unwrap()).collect(),
            identity: Identity { cert: "a".into(), key: "b".into(), ca: "c".into() },
            warm: None,
            udp443: Udp443::Pass,
            instant_answers: true,
            pack_headers: true,
            when_down,
            restart_wait: Duration::from_secs(15),
            transport: PipeTransport::H2,
            multipath: longhaul_config::Multipath::Auto,
        };
        let link = link(Duration::from_millis(600), 20_000_000);
        let intervals = Intervals::of(&link, &Role::Remote(remote.clone()));
        Failover::of(&remote, &link, &intervals, Duration::from_secs(70))
    }

    #[test]
    fn a_remote_with_another_way_takes_it_soon_and_one_without_waits_for_a_restart() {
        let seen = |grounds, when_down| {
            let Failover { check, failures, retries, ejection, .. } = of(grounds, when_down);
            (check.time, failures.value, retries.value, ejection.after, ejection.most_percent, ejection.attempts)
        };
        let [seldom, soon] = [3_000, 2_200].map(Duration::from_millis);
        assert_eq!(seen(1, WhenDown::Error), (seldom, 11, 16, 5, 100, None));
        assert_eq!(seen(3, WhenDown::Error), (soon, 2, 16, 2, 66, Some(6)));
        assert_eq!(seen(1, WhenDown::Direct), (soon, 1, 4, 2, 100, Some(4)));
        assert_eq!(seen(3, WhenDown::Direct), (soon, 1, 8, 2, 100, Some(8)));
        // A file of an earlier release, without a ground.
        assert_eq!(seen(0, WhenDown::Error), seen(1, WhenDown::Error));
        assert_eq!(seen(0, WhenDown::Direct), seen(1, WhenDown::Direct));
    }

    /// Returns the longest time for which a request is retried. The mean of the waits is half as long.
    fn longest(retries: u32, rtt: Duration) -> Duration {
        let waits =
            (0..retries).scan(RETRY_FIRST, |wait, _| Some(std::mem::replace(wait, (*wait * 2).min(RETRY_LAST))));
        waits.sum::<Duration>() + rtt * retries
    }

    #[test]
    fn requests_are_sent_again_for_as_long_as_was_said_on_any_link() {
        for rtt in [20, 600, 2000].map(Duration::from_millis) {
            for wait in [2, 15, 120].map(Duration::from_secs) {
                let longest = longest(retries_in(wait, rtt), rtt);
                assert!((wait..wait * 2 + Duration::from_secs(9)).contains(&longest), "{rtt:?}, {wait:?}: {longest:?}");
            }
        }
        assert_eq!(retries_in(Duration::ZERO, Duration::ZERO), LEAST_RETRIES);
    }

    #[test]
    fn a_client_of_the_only_ground_waits_for_as_long_as_tcp_does() {
        let Failover { retries, connection_retries, .. } = of(1, WhenDown::Error);
        let longest = longest(connection_retries.value, Duration::from_millis(600));
        assert!(longest > Duration::from_secs(70) && connection_retries.value > retries.value, "{longest:?}");
    }

    #[test]
    fn the_only_ground_is_given_up_when_tcp_gives_up_and_no_sooner_than_a_restart_takes() {
        let rtt = Duration::from_millis(600);
        let link = link(rtt, 20_000_000);
        let times = |wait: u64, timeout: u64| {
            let down = of_the_only_way(Duration::from_secs(wait), Duration::from_secs(timeout), &link);
            let [refused, silent] = [rtt, check_answer(&link).0].map(|each| (check_again(&link).0 + each) * down.value);
            (refused.as_secs(), silent.as_secs(), down.reason)
        };
        let (refused, silent, reason) = times(15, 70);
        assert!(refused >= 15 && (70..77).contains(&silent), "{refused}, {silent}");
        assert!(reason.starts_with("user_timeout 70s"), "{reason}");
        let (refused, silent, reason) = times(60, 70);
        assert!((60..64).contains(&refused) && silent > 70, "{refused}, {silent}");
        assert_eq!(reason, "`split.restart_wait` 1m");
        assert_eq!(of_the_only_way(Duration::ZERO, Duration::ZERO, &link).value, LEAST_FAILURES);
    }

    #[test]
    fn a_check_outlasts_the_full_queue_of_a_slow_link() {
        let answer = |up| check_answer(&link(Duration::from_millis(600), up)).0.as_secs_f64();
        assert!(answer(30_000) > 4.4 + f64::from(60_000 * 8) / 30_000.0);
        assert!(answer(2_000_000) < 5.0);
    }
}
