//! Measures the connections of `compare` while a run serves.
//!
//! A thread reads copies of packets that the rules of `longhaul host` make. It sends nothing, and a packet never waits for
//! it.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::share::NFLOG_GROUP;
use longhaul_config::{Settings, Share};
use longhaul_observe::compare::{Compared, Comparison, PacketLog, Segment};

use super::events::Event;
use super::log::Level;
use super::say;

/// The pause between two reports.
const PAUSE: Duration = Duration::from_secs(5);
/// The longest wait for a packet. A changed setting waits as long.
const PATIENCE: Duration = Duration::from_millis(500);
/// The pause after a fault of the packet log.
const RETRY: Duration = Duration::from_secs(10);

/// The thread that measures. It ends when this is dropped.
pub(super) struct CompareWatch {
    share: Sender<Option<Share>>,
}

/// The reason why a thread stops measuring a share.
enum Next {
    /// Another share, or none, is configured.
    Share(Option<Share>),
    /// The run ends.
    End,
}

impl CompareWatch {
    /// Starts the thread. It reports to `events` when the figures change.
    pub(super) fn start(settings: &Settings, events: Sender<Event>) -> io::Result<Self> {
        let (sender, changes) = mpsc::channel();
        let mut next = Next::Share(settings.compare);
        thread::Builder::new().name("compare".to_owned()).spawn(move || {
            while let Next::Share(share) = next {
                next = match share {
                    Some(share) => Watching::of(share).measure(&changes, &events),
                    None if events.send(Event::Compared(None)).is_err() => Next::End,
                    None => changes.recv().map_or(Next::End, Next::Share),
                };
            }
        })?;
        Ok(Self { share: sender })
    }

    /// Measures the share of changed settings from now on.
    pub(super) fn follow(&self, settings: &Settings) {
        let _ = self.share.send(settings.compare);
    }
}

struct Watching {
    share: Share,
    start: Instant,
    comparison: Comparison,
    log: Option<PacketLog>,
    fault: Option<String>,
}

impl Watching {
    fn of(share: Share) -> Self {
        Self { share, start: Instant::now(), comparison: Comparison::default(), log: None, fault: None }
    }

    fn measure(mut self, changes: &Receiver<Option<Share>>, events: &Sender<Event>) -> Next {
        let (mut reported, mut last) = (None, None);
        loop {
            if let Err(error) = self.read() {
                self.log = None;
                let fault = in_words(&error);
                if self.fault.as_ref() != Some(&fault) {
                    say(Level::Warning, &format!("`compare` measures nothing: {fault}"));
                }
                (self.fault, reported) = (Some(fault), None);
            }
            if reported.is_none_or(|at: Instant| at.elapsed() >= PAUSE) {
                let compared = self.compared();
                if last.as_ref() != Some(&compared) && events.send(Event::Compared(Some(compared.clone()))).is_err() {
                    return Next::End;
                }
                (reported, last) = (Some(Instant::now()), Some(compared));
            }
            let next = if self.log.is_some() { changes.try_recv().map_err(is_end) } else { wait(changes) };
            match next {
                Ok(share) if share == Some(self.share) => {}
                Ok(share) => return Next::Share(share),
                Err(true) => return Next::End,
                Err(false) => {}
            }
        }
    }

    /// Reads the packets that came, and opens the log first if it is closed.
    fn read(&mut self) -> io::Result<()> {
        let log = match self.log.take() {
            Some(log) => log,
            None => PacketLog::open(PATIENCE)?,
        };
        self.fault = None;
        let copies = log.read()?;
        self.log = Some(log);
        let at = self.start.elapsed();
        for copy in copies {
            if let Some(segment) = Segment::read(&copy.packet) {
                self.comparison.add(at, copy.group, &segment);
            }
        }
        Ok(())
    }

    fn compared(&self) -> Compared {
        Compared::of(self.share.percent(), self.fault.clone(), &self.comparison)
    }
}

/// Waits for changed settings. The error is true at the end of the run.
fn wait(changes: &Receiver<Option<Share>>) -> Result<Option<Share>, bool> {
    changes.recv_timeout(RETRY).map_err(|error| error == RecvTimeoutError::Disconnected)
}

fn is_end(error: TryRecvError) -> bool {
    error == TryRecvError::Disconnected
}

/// Returns the error of the packet log with its remedy.
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "reading the packets of clients needs CAP_NET_ADMIN. Under systemd, run `systemctl edit longhaul`, add `[Service]`, `AmbientCapabilities=CAP_NET_ADMIN` and `CapabilityBoundingSet=CAP_NET_ADMIN`, and restart the service".to_owned(),
        io::ErrorKind::ResourceBusy => format!("another process reads the kernel's packet log {NFLOG_GROUP}"),
        _ => format!("the kernel's packet log {NFLOG_GROUP} cannot be read: {error}"),
    }
}
