//! Watches a pair's connections: whether the ground still responds, whether large packets arrive at the other end, and whether
//! Envoy has connections that are gone.
//!
//! A thread reads the kernel's figures of the connections twice a second, and sends nothing. Envoy gives a ground up after
//! several health checks, because requests wait for a restart meanwhile. An operator should know earlier.

use std::fs;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use longhaul_config::Settings;
use longhaul_derive::{HostFacts, derive};
use longhaul_observe::Endpoint;
use longhaul_observe::measure::{BlackHole, Checks, Kernel, Listening, PairEnd, Silent};
use longhaul_observe::report::Silence;

use super::events::Event;
use super::log::Level;
use super::lost_connections::{Counted, LostConnections, LostPaths, in_envoy};
use super::probe::stats;
use super::publisher::now;
use super::say;
use super::watch_thread::Watch;

/// The pause between two readings.
const PAUSE: Duration = Duration::from_millis(500);

/// The packets that this kernel has dropped by their source (`rp_filter`), since a moment at which the ground was heard.
#[derive(Debug, Default)]
struct DroppedBySource {
    when_heard: u64,
}

impl DroppedBySource {
    /// Packets that mean more than one stray of another network.
    const FEW: u64 = 3;

    /// Returns the kind of a silence.
    fn explains(&mut self, kind: Option<Silent>) -> Option<Silent> {
        let now = reverse_path_drops();
        match kind {
            None => self.when_heard = now,
            Some(Silent::Link) if now >= self.when_heard + Self::FEW => return Some(Silent::ReversePath),
            Some(_) => {}
        }
        kind
    }
}

/// Returns the kernel's counter. 0 if it has none.
fn reverse_path_drops() -> u64 {
    fs::read_to_string("/proc/net/netstat").ok().and_then(|table| counter(&table, "IPReversePathFilter")).unwrap_or(0)
}

/// Returns a value of `/proc/net/netstat`: a line of names stands above each line of values.
fn counter(table: &str, name: &str) -> Option<u64> {
    let lines: Vec<&str> = table.lines().collect();
    lines.chunks_exact(2).find_map(|pair| {
        let [names, values] = pair else { return None };
        let place = names.split_whitespace().position(|one| one == name)?;
        values.split_whitespace().nth(place)?.parse().ok()
    })
}

/// Starts the thread. It reports to `events` when a silence, or the last connection, begins or ends. Envoy responds at `admin`.
pub(super) fn watch(settings: &Settings, admin: Endpoint, events: Sender<Event>) -> io::Result<Watch> {
    let mut settings = settings.clone();
    Watch::start("silence", move |changes| {
        loop {
            let next = match PairEnd::of(&settings) {
                Some(end) => listen(&end, Watched::of(&settings), &admin, &events, &changes),
                None => changes.recv().ok(),
            };
            let Some(next) = next else { break };
            settings = next;
        }
    })
}

/// The connections that Envoy may have lost without its knowledge.
struct Watched {
    /// Unused ones for clients' bytes.
    pool: Option<LostConnections>,
    /// Those of Multipath TCP.
    paths: Option<LostPaths>,
}

impl Watched {
    fn of(settings: &Settings) -> Self {
        let derived = derive(settings, &HostFacts::unknown());
        Self { pool: LostConnections::of(settings, &derived), paths: LostPaths::of(&derived) }
    }

    /// Goes on with the present counts of what `next` watches, too.
    fn follow(&mut self, next: Self) {
        keep(&mut self.pool, next.pool, LostConnections::watches_the_same);
        keep(&mut self.paths, next.paths, LostPaths::watches_the_same);
    }
}

/// Replaces a watch by the next one, unless both watch the same.
fn keep<W>(watch: &mut Option<W>, next: Option<W>, same: fn(&W, &W) -> bool) {
    if !matches!((&*watch, &next), (Some(now), Some(next)) if same(now, next)) {
        *watch = next;
    }
}

/// Listens until the settings change in what matters here, and returns them. None: the run ends.
fn listen(
    end: &PairEnd,
    mut watched: Watched,
    admin: &Endpoint,
    events: &Sender<Event>,
    changes: &Receiver<Settings>,
) -> Option<Settings> {
    let (start, mut listening) = (Instant::now(), Listening::over(&end.link));
    let (mut hole, mut dropped) = (BlackHole::beyond(end.link.mtu), DroppedBySource::default());
    let (mut last, mut vanishing, mut unconnected) = (None, None, false);
    let mut kernel = None;
    loop {
        let read = match kernel.take().map_or_else(Kernel::open, Ok) {
            Ok(open) => end.read(kernel.insert(open)),
            Err(error) => Err(error),
        };
        let at = start.elapsed();
        let (silent, bytes, is_unconnected) = match read {
            Ok(connections) => {
                let established = connections.iter().filter(|one| one.is_open).count();
                let count = |counters: &str| {
                    Some(Counted { envoy: in_envoy(admin, counters)?, kernel: end.opened(kernel.as_ref()?).ok()? })
                };
                let paths = || end.without_paths(kernel.as_ref()?).ok();
                let gone = [
                    watched.pool.as_mut().and_then(|pool| pool.add(at, established, count)),
                    watched.paths.as_mut().and_then(|watch| watch.add(at, established, paths)),
                ];
                for lost in gone.into_iter().flatten() {
                    events.send(Event::Lost(lost)).ok()?;
                }
                let silent = end.hears().then(|| listening.add(at, &connections, || checks(admin))).flatten();
                let is_unconnected = end.hears() && !PairEnd::is_connected(&connections);
                (silent, hole.add(at, &connections), is_unconnected)
            }
            Err(error) => {
                say(Level::Info, &format!("silence of the ground shows late: the kernel gives no figures: {error}"));
                return changes.recv().ok();
            }
        };
        if bytes != vanishing {
            events.send(Event::Vanishing(bytes)).ok()?;
            vanishing = bytes;
        }
        if is_unconnected != unconnected {
            events.send(Event::Unconnected(is_unconnected)).ok()?;
            unconnected = is_unconnected;
        }
        let kind = dropped.explains(silent.map(|(kind, _)| kind));
        let silent = silent.and_then(|(_, since)| Some((kind?, since)));
        if silent != last {
            let silence = silent.map(|(kind, since)| Silence {
                kind,
                since: now().saturating_sub(at.saturating_sub(since).as_secs()),
                port: end.port(),
            });
            events.send(Event::Silence(silence)).ok()?;
            last = silent;
        }
        match changes.recv_timeout(PAUSE) {
            Ok(next) if PairEnd::of(&next).as_ref() == Some(end) => {
                watched.follow(Watched::of(&next));
            }
            Ok(next) => {
                events.send(Event::Silence(None)).ok()?;
                events.send(Event::Vanishing(None)).ok()?;
                events.send(Event::Unconnected(false)).ok()?;
                return Some(next);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
}

/// Returns the results of Envoy's health checks.
fn checks(admin: &Endpoint) -> Option<Checks> {
    let text = stats(admin, r"^cluster\.pipe\.health_check\.(success|failure)$")?;
    let of = |name: &str| {
        let (_, value) = text.lines().filter_map(|line| line.rsplit_once(": ")).find(|(key, _)| key.ends_with(name))?;
        value.trim().parse().ok()
    };
    Some(Checks { answered: of("success")?, failed: of("failure")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_goes_on_unless_the_next_one_watches_something_else() {
        let kept = |now: Option<u32>, next| {
            let mut watch = now;
            keep(&mut watch, next, |now, next| now % 2 == next % 2);
            watch
        };
        assert_eq!(kept(Some(1), Some(3)), Some(1));
        assert_eq!(kept(Some(1), Some(4)), Some(4));
        assert_eq!([kept(None, Some(1)), kept(Some(1), None)], [Some(1), None]);
    }

    #[test]
    fn a_counter_of_the_kernel_is_found_below_its_name() {
        let table = "TcpExt: SyncookiesSent IPReversePathFilter TW\nTcpExt: 0 17 4\nIpExt: InNoRoutes\nIpExt: 3\n";
        assert_eq!(counter(table, "IPReversePathFilter"), Some(17));
        assert_eq!(counter(table, "InNoRoutes"), Some(3));
        assert_eq!(counter(table, "Other"), None);
    }

    #[test]
    fn only_a_silence_of_the_link_is_explained_by_dropped_packets() {
        let mut dropped = DroppedBySource { when_heard: u64::MAX - DroppedBySource::FEW };
        assert_eq!(dropped.explains(Some(Silent::Link)), Some(Silent::Link));
        assert_eq!(dropped.explains(Some(Silent::Program)), Some(Silent::Program));
        assert_eq!(dropped.explains(None), None);
    }
}
