//! Connections to Envoy that a remote holds open, so that Envoy keeps others open over the link.
//!
//! Envoy's pools open connections in advance only in proportion to those in use: none at start, and at most two more
//! for each in use. So a remote keeps some in use all the time, without sending on them. For clients' bytes, these are
//! half of the warm connections, or one stream for each place in the rotation of each worker. For the pipe, it is one
//! per worker. They break with the link. Opening them again, with back-off, refills the pools before a client needs them.
//! Those for clients' bytes are opened one after the other, because a client may use the link meanwhile.

use std::cmp::Ordering;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use longhaul_config::{Host, HostPort, Link, Remote, Role, Settings, WhenDown};
use longhaul_derive::{Carrier, Derived, Warm};
use longhaul_render::NearSockets;

use super::log::Level;
use super::probe::Passing;
use super::say;

/// On loopback, Envoy accepts at once or does not run.
const CONNECT_PATIENCE: Duration = Duration::from_millis(250);
/// The waits between attempts while the ground does not respond. They double from the first to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// Opening connections takes at most this part of the uplink.
const PART_OF_UPLINK: u32 = 4;
/// On a fast link, the handshakes of both ends take more time than their bytes.
const LEAST_GAP: Duration = Duration::from_millis(100);
/// The interval of queries to Envoy while the ground is away, and of those for the ground in use among several.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// The interval of queries for the addresses of one ground by name.
const ASK_FOR_ADDRESSES_EVERY: Duration = Duration::from_secs(30);
/// A connection that lived this long was connected. On most links an attempt of Envoy to connect cannot hang longer.
const PROVEN: Duration = Duration::from_secs(15);

/// The connections that a remote holds open.
#[derive(Debug, Default)]
pub(super) struct HeldConnections {
    warm: Group,
    pipe: Group,
    /// True if the ground responded at the last query. None before the first.
    linked: Option<bool>,
    asked_at: Option<Instant>,
    /// The number of the ground in use, if there are several. None before one responds.
    ground: Option<usize>,
    /// The addresses of grounds that pass their health checks. Empty if there is one ground by its address.
    passing: Vec<Passing>,
    ground_asked_at: Option<Instant>,
    /// The number of times that a pipe broke, or that requests moved to another ground.
    broken: u32,
}

/// Connections to one of Envoy's sockets.
#[derive(Debug, Default)]
struct Group {
    held: Vec<Held>,
    wait: Duration,
    again_at: Option<Instant>,
}

#[derive(Debug)]
struct Held {
    stream: TcpStream,
    since: Instant,
}

impl HeldConnections {
    /// Drops connections that broke and opens missing ones when their wait is over. Call it often.
    pub(super) fn tend(
        &mut self,
        settings: &Settings,
        derived: &Derived,
        near: NearSockets,
        link_is_up: impl FnOnce(WhenDown) -> Option<bool>,
    ) {
        let (Role::Remote(remote), Some(ahead)) = (&settings.role, derived.warm) else {
            *self = Self::default();
            return;
        };
        let (warm, pipe) = wanted(ahead, derived.capacity.workers.value);
        let pipe_broke = self.pipe.tend(near.hold_pipe, pipe, Duration::ZERO);
        self.broken += u32::from(pipe_broke);
        let broke = self.warm.tend(near.hold, warm, gap(&settings.link, ahead.carrier)) | pipe_broke;
        let whole = self.pipe.held.len() == pipe && self.warm.held.is_empty() == (warm == 0);
        let due = self.asked_at.is_none_or(|at| at.elapsed() >= ASK_EVERY);
        // Envoy itself switches to origins and back, regardless of the connections held here.
        let turns = remote.when_down == WhenDown::Direct;
        if broke || (due && (turns || (whole && self.linked != Some(true)))) {
            self.asked_at = Some(Instant::now());
            self.announce(broke || turns, link_is_up(remote.when_down), remote);
        }
    }

    /// Reports a change of the ground in use, if there are several, and returns true if there is one. Connections that hold
    /// others open at the former ground are dropped and opened again, so that they hold some at the present one. Call it
    /// often.
    pub(super) fn follow_ground(
        &mut self,
        settings: &Settings,
        passing: impl FnOnce() -> Option<Vec<Passing>>,
    ) -> bool {
        let grounds = settings.role.grounds();
        let every = match grounds {
            [] | [HostPort { host: Host::Address(_), .. }] => {
                self.passing.clear();
                return false;
            }
            [_] if !self.passing.is_empty() => ASK_FOR_ADDRESSES_EVERY,
            _ => ASK_EVERY,
        };
        if self.ground_asked_at.is_some_and(|at| at.elapsed() < every) {
            return false;
        }
        self.ground_asked_at = Some(Instant::now());
        self.passing = passing().unwrap_or_default();
        let Some(now) = self.passing.iter().map(|one| one.ground).min() else { return false };
        let before = self.ground.replace(now).unwrap_or(0);
        let Some((level, text)) = moved(grounds, before, now) else { return false };
        say(level, &text);
        self.warm.held.clear();
        self.pipe.held.clear();
        self.broken += 1;
        true
    }

    /// Drops those for clients' bytes and opens them again at once, because the pool that they keep full is a new one.
    pub(super) fn fill_new_pool(&mut self) {
        self.warm.held.clear();
        self.warm.again_at = None;
    }

    /// Returns the number of pipes that broke before the present one. None while there is no pipe.
    pub(super) fn pipe(&self) -> Option<u32> {
        (self.linked == Some(true)).then_some(self.broken)
    }

    /// Returns the addresses of grounds that pass their health checks. Empty if there is one ground by its address.
    pub(super) fn passing(&self) -> &[Passing] {
        &self.passing
    }

    /// Returns the ground in use, as `split.peer` names it. None at an edge and at a ground.
    pub(super) fn ground_in_use<'s>(&self, settings: &'s Settings) -> Option<&'s HostPort> {
        settings.role.grounds().get(self.ground.unwrap_or(0))
    }

    /// Returns true if an outage has been reported and is not over.
    pub(super) fn is_away(&self) -> bool {
        self.linked == Some(false)
    }

    /// Reports a change of the link. A start is no outage: until a connection breaks, a link that is not up yet is
    /// being opened.
    fn announce(&mut self, broke: bool, up: Option<bool>, remote: &Remote) {
        match (self.linked, up) {
            (Some(false), Some(true)) => {
                say(Level::Info, is_back(remote.when_down));
                self.warm.again_at = None;
                self.pipe.again_at = None;
            }
            (None | Some(true), Some(false)) if broke => say(Level::Warning, &is_away(remote, self.linked.is_some())),
            (None, Some(true)) => {}
            _ => return,
        }
        self.linked = up;
    }
}

fn is_back(when_down: WhenDown) -> &'static str {
    match when_down {
        WhenDown::Direct => "the ground responds again, and requests use the pipe again",
        WhenDown::Error => "the ground responds again",
    }
}

/// Describes the outage. `was_there` is true if the ground responded earlier in this run; if not, a file may be wrong.
fn is_away(remote: &Remote, was_there: bool) -> String {
    let who = match remote.grounds.as_slice() {
        several @ [_, _, ..] => format!("no ground responds ({})", listed(several)),
        _ => "the ground does not respond".to_owned(),
    };
    let until = match remote.when_down {
        WhenDown::Error => "retrying until it does",
        WhenDown::Direct => "connecting to origins directly until it does",
    };
    let doubt = if was_there { "" } else { ". Check that it runs, and that its file has the same `split.transport`" };
    format!("{who}; {until}{doubt}")
}

/// Describes the change from one of several grounds to another. None if there is no change.
fn moved(grounds: &[HostPort], before: usize, now: usize) -> Option<(Level, String)> {
    let (from, to) = (grounds.get(before)?, grounds.get(now)?);
    match now.cmp(&before) {
        Ordering::Equal => None,
        Ordering::Greater => Some((Level::Warning, format!("the ground {from} does not respond; requests use {to}"))),
        Ordering::Less => Some((Level::Info, format!("the ground {to} responds again; requests use it"))),
    }
}

fn listed(at: &[HostPort]) -> String {
    at.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Group {
    /// Opens missing connections, with `gap` between two of them. Returns true if any connection broke.
    fn tend(&mut self, socket: SocketAddr, wanted: usize, gap: Duration) -> bool {
        self.held.truncate(wanted);
        let before = self.held.len();
        let proven = self.held.iter().any(|held| held.since.elapsed() > PROVEN);
        self.held.retain_mut(|held| is_open(&mut held.stream));
        let broke = self.held.len() < before;
        if broke {
            self.wait = if proven { FIRST_WAIT } else { (self.wait * 2).clamp(FIRST_WAIT, LONGEST_WAIT) };
            self.again_at = Some(Instant::now() + self.wait);
        }
        while self.held.len() < wanted && self.again_at.is_none_or(|at| Instant::now() >= at) {
            let Ok(stream) = hold(socket) else {
                // Envoy is being restarted. Another part of the run handles that.
                self.again_at = Some(Instant::now() + FIRST_WAIT);
                break;
            };
            self.held.push(Held { stream, since: Instant::now() });
            self.again_at = (!gap.is_zero()).then(|| Instant::now() + gap);
        }
        broke
    }
}

/// Returns the time between two connections for clients' bytes.
fn gap(link: &Link, carrier: Carrier) -> Duration {
    (link.up.time_for(carrier.opened_by_one() * carrier.opening_bytes()) * PART_OF_UPLINK).max(LEAST_GAP)
}

fn hold(socket: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&socket, CONNECT_PATIENCE)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Returns true if the connection is open. No bytes are sent on it, so a read tells only that.
fn is_open(stream: &mut TcpStream) -> bool {
    match stream.read(&mut [0; 16]) {
        Ok(0) => false,
        Ok(_) => true,
        Err(error) => matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted),
    }
}

/// Returns the number of connections to hold for clients' bytes and for the pipe. Each worker has a pipe of its own.
fn wanted(ahead: Warm, workers: u32) -> (usize, usize) {
    let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let warm = ahead.rotation(workers).map_or_else(
        || u64::from(ahead.number).div_ceil(ahead.carrier.unused_by_one()),
        |places| u64::from(places * workers),
    );
    (number(warm), number(workers.into()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn missing_connections_open_at_once_and_broken_ones_after_a_pause() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = listener.local_addr().unwrap();
        let mut group = Group::default();
        assert!(!group.tend(socket, 3, Duration::ZERO));
        assert_eq!(group.held.len(), 3);
        let accepted: Vec<_> = (0..3).map(|_| listener.accept().unwrap()).collect();
        drop(accepted);
        let deadline = Instant::now() + Duration::from_secs(5);
        while !group.tend(socket, 3, Duration::ZERO) {
            assert!(Instant::now() < deadline, "a closed connection was taken for an open one");
        }
        assert!(group.held.len() < 3);
        assert!(group.again_at.is_some_and(|at| at > Instant::now()));
    }

    #[test]
    fn a_change_of_the_ground_in_use_names_both() {
        let grounds = ["a.example:8443", "b.example:8443"].map(|text| HostPort::parse(text).unwrap());
        assert_eq!(moved(&grounds, 1, 1), None);
        let (level, text) = moved(&grounds, 0, 1).unwrap();
        assert!(level == Level::Warning, "{text}");
        assert_eq!(text, "the ground a.example:8443 does not respond; requests use b.example:8443");
        let (_, text) = moved(&grounds, 1, 0).unwrap();
        assert_eq!(text, "the ground a.example:8443 responds again; requests use it");
    }

    #[test]
    fn fewer_wanted_are_fewer_held_and_open_ones_stay() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = listener.local_addr().unwrap();
        let mut group = Group::default();
        group.tend(socket, 4, Duration::ZERO);
        assert!(!group.tend(socket, 2, Duration::ZERO));
        assert_eq!(group.held.len(), 2);
        assert!(!group.tend(socket, 2, Duration::ZERO));
        assert_eq!(group.held.len(), 2);
    }

    #[test]
    fn connections_open_one_after_the_other() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = listener.local_addr().unwrap();
        let mut group = Group::default();
        let gap = Duration::from_millis(200);
        let began = Instant::now();
        group.tend(socket, 3, gap);
        assert_eq!(group.held.len(), 1);
        while group.held.len() < 3 {
            assert!(began.elapsed() < Duration::from_secs(10), "the others were not opened");
            group.tend(socket, 3, gap);
        }
        assert!(began.elapsed() >= 2 * gap);
    }
}
