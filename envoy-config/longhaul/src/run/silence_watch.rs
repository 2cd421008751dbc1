//! Watches at a remote whether the ground still responds.
//!
//! A thread reads the kernel's figures of the connections to the ground twice a second, and sends nothing. Envoy gives a
//! ground up after several health checks, because requests wait for a restart meanwhile. An operator should know earlier.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::{Link, Role, Settings};
use longhaul_observe::Endpoint;
use longhaul_observe::measure::{Checks, Connection, Kernel, Listening, Watched};
use longhaul_observe::report::Silence;

use super::events::Event;
use super::log::Level;
use super::probe::stats;
use super::publisher::now;
use super::say;

/// The pause between two readings.
const PAUSE: Duration = Duration::from_millis(500);

/// The thread that watches. It ends when this is dropped.
pub(super) struct SilenceWatch {
    settings: Sender<Settings>,
}

/// The connections to listen to. None at an edge and at a ground.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grounds {
    link: Link,
    watched: Watched,
    ports: Vec<u16>,
}

impl Grounds {
    fn of(settings: &Settings) -> Option<Self> {
        let Role::Remote(remote) = &settings.role else { return None };
        let mut ports: Vec<u16> = remote.grounds.iter().map(|at| at.port).collect();
        ports.sort_unstable();
        ports.dedup();
        Some(Self { link: settings.link, watched: Watched::of(settings), ports })
    }

    fn connections(&self, kernel: &Kernel) -> io::Result<Vec<Connection>> {
        let mut connections = Vec::new();
        for port in &self.ports {
            connections.extend(kernel.connections_to(*port)?);
        }
        connections.retain(|connection| self.watched.leads_to(connection.id.remote));
        Ok(connections)
    }
}

impl SilenceWatch {
    /// Starts the thread. It reports to `events` when a silence begins or ends. Envoy responds at `admin`.
    pub(super) fn start(settings: &Settings, admin: Endpoint, events: Sender<Event>) -> io::Result<Self> {
        let (sender, changes) = mpsc::channel::<Settings>();
        let mut grounds = Grounds::of(settings);
        thread::Builder::new().name("silence".to_owned()).spawn(move || {
            loop {
                let next = match &grounds {
                    Some(grounds) => listen(grounds, &admin, &events, &changes),
                    None => changes.recv().ok(),
                };
                let Some(next) = next else { break };
                grounds = Grounds::of(&next);
            }
        })?;
        Ok(Self { settings: sender })
    }

    /// Listens as changed settings say from now on.
    pub(super) fn follow(&self, settings: &Settings) {
        let _ = self.settings.send(settings.clone());
    }
}

/// Listens until the settings change in what matters here, and returns them. None: the run ends.
fn listen(
    grounds: &Grounds,
    admin: &Endpoint,
    events: &Sender<Event>,
    changes: &mpsc::Receiver<Settings>,
) -> Option<Settings> {
    let (start, mut listening) = (Instant::now(), Listening::over(&grounds.link));
    let mut last = None;
    let mut kernel = None;
    loop {
        let read = match kernel.take().map_or_else(Kernel::open, Ok) {
            Ok(open) => grounds.connections(kernel.insert(open)),
            Err(error) => Err(error),
        };
        let at = start.elapsed();
        let silent = match read {
            Ok(connections) => listening.add(at, &connections, || checks(admin)),
            Err(error) => {
                say(Level::Info, &format!("silence of the ground shows late: the kernel gives no figures: {error}"));
                return changes.recv().ok();
            }
        };
        if silent != last {
            let silence = silent
                .map(|(kind, since)| Silence { kind, since: now().saturating_sub(at.saturating_sub(since).as_secs()) });
            events.send(Event::Silence(silence)).ok()?;
            last = silent;
        }
        match changes.recv_timeout(PAUSE) {
            Ok(next) if Grounds::of(&next).as_ref() == Some(grounds) => {}
            Ok(next) => {
                events.send(Event::Silence(None)).ok()?;
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
