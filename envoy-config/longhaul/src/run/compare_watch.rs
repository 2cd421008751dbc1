//! Measures the connections of `compare` while a run serves.
//!
//! A thread reads copies of packets that the rules of `longhaul host` make. It sends nothing, and a packet never waits for
//! it.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

use longhaul_config::Settings;
use longhaul_config::share::Share;
use longhaul_observe::compare::Measurement;

use super::events::Event;
use super::log::Level;
use super::say;
use super::watch_thread::Watch;

/// The pause between two reports.
const PAUSE: Duration = Duration::from_secs(5);
/// The longest wait for a packet. A changed setting waits as long.
const PATIENCE: Duration = Duration::from_millis(500);
/// The pause after a fault of the packet log.
const RETRY: Duration = Duration::from_secs(10);

/// The reason why a thread stops measuring a share.
enum Next {
    /// Another share, or none, is configured.
    Share(Option<Share>),
    /// The run ends.
    End,
}

/// Starts the thread. It reports to `events` when the figures change.
pub(super) fn watch(settings: &Settings, events: Sender<Event>) -> io::Result<Watch> {
    let mut next = Next::Share(settings.compare);
    Watch::start("compare", move |changes| {
        while let Next::Share(share) = next {
            next = match share {
                Some(share) => measure(share, &changes, &events),
                None if events.send(Event::Compared(None)).is_err() => Next::End,
                None => changes.recv().map_or(Next::End, |next| Next::Share(next.compare)),
            };
        }
    })
}

/// Measures `share` until another one is configured.
fn measure(share: Share, changes: &Receiver<Settings>, events: &Sender<Event>) -> Next {
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
            Ok(next) if next.compare == Some(share) => {}
            Ok(next) => return Next::Share(next.compare),
            Err(true) => return Next::End,
            Err(false) => {}
        }
    }
}

/// Waits for changed settings. The error is true at the end of the run.
fn wait(changes: &Receiver<Settings>) -> Result<Settings, bool> {
    changes.recv_timeout(RETRY).map_err(|error| error == RecvTimeoutError::Disconnected)
}

fn is_end(error: TryRecvError) -> bool {
    error == TryRecvError::Disconnected
}
