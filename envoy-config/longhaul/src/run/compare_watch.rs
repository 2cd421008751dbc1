//! Measures the connections of `compare` while a run serves.
//!
//! A thread reads copies of packets that the rules of `longhaul host` make. It sends nothing, and a packet never waits for
//! it.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::Settings;
use longhaul_config::share::Share;
use longhaul_observe::compare::Measurement;

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
                    Some(share) => measure(share, &changes, &events),
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

/// Measures `share` until another one is configured.
fn measure(share: Share, changes: &Receiver<Option<Share>>, events: &Sender<Event>) -> Next {
    let (mut reported, mut last) = (None, None);
    let mut measurement = Measurement::of(share, PATIENCE);
    loop {
        let read = measurement.read();
        if let Err(fault) = &read {
            if fault.is_new {
                say(Level::Warning, &format!("`compare` measures nothing: {fault}"));
            }
            reported = None;
        }
        if reported.is_none_or(|at: Instant| at.elapsed() >= PAUSE) {
            let compared = measurement.compared();
            if last.as_ref() != Some(&compared) && events.send(Event::Compared(Some(compared.clone()))).is_err() {
                return Next::End;
            }
            (reported, last) = (Some(Instant::now()), Some(compared));
        }
        let next = if read.is_ok() { changes.try_recv().map_err(is_end) } else { wait(changes) };
        match next {
            Ok(next) if next == Some(share) => {}
            Ok(next) => return Next::Share(next),
            Err(true) => return Next::End,
            Err(false) => {}
        }
    }
}

/// Waits for changed settings. The error is true at the end of the run.
fn wait(changes: &Receiver<Option<Share>>) -> Result<Option<Share>, bool> {
    changes.recv_timeout(RETRY).map_err(|error| error == RecvTimeoutError::Disconnected)
}

fn is_end(error: TryRecvError) -> bool {
    error == TryRecvError::Disconnected
}
