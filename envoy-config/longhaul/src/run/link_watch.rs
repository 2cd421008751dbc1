//! Watches the link while a run serves, and says so if it is not the one that `link:` describes.
//!
//! A thread reads the kernel's figures of the connections that cross the link. It sends nothing. A wrong `link:` slows
//! every page without a fault, so nobody would look for it.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::Settings;
use longhaul_observe::measure::{Noticed, Passive};

use super::events::Event;
use super::locate::local_addresses;
use super::log::Level;
use super::say;

/// The pause between two readings.
const PAUSE: Duration = Duration::from_secs(10);

/// The thread that watches. It ends when this is dropped.
pub(super) struct LinkWatch {
    settings: Sender<Settings>,
}

impl LinkWatch {
    /// Starts the thread. It reports to `events` when the measured link changes.
    pub(super) fn start(settings: &Settings, events: Sender<Event>) -> io::Result<Self> {
        let (sender, changes) = mpsc::channel();
        let mut passive = Passive::of(settings);
        thread::Builder::new().name("link".to_owned()).spawn(move || {
            let start = Instant::now();
            let (mut last, mut logged) = (Noticed::default(), None);
            loop {
                let noticed = match passive.read(start.elapsed(), &local_addresses()) {
                    Ok(noticed) => noticed,
                    Err(error) => {
                        say(Level::Info, &format!("the link is not measured: the kernel gives no figures: {error}"));
                        break;
                    }
                };
                if let Some(news) = noticed.news(logged.as_ref()) {
                    say(Level::Warning, &news);
                    logged = Some(noticed.clone());
                }
                if noticed != last && events.send(Event::Link(noticed.clone())).is_err() {
                    break;
                }
                last = noticed;
                match changes.recv_timeout(PAUSE) {
                    Ok(next) if passive.describes(&next) => {}
                    Ok(next) => (passive, logged) = (Passive::of(&next), None),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        })?;
        Ok(Self { settings: sender })
    }

    /// Compares the link with changed settings from now on.
    pub(super) fn follow(&self, settings: &Settings) {
        let _ = self.settings.send(settings.clone());
    }
}
