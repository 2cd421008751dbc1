//! Watches the link while a run serves, and says so if it is not the one that `link:` describes.
//!
//! A thread reads the kernel's figures of the connections that cross the link. It sends nothing. A wrong `link:` slows
//! every page without a fault, so nobody would look for it.

use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use longhaul_config::Settings;
use longhaul_observe::measure::{Noticed, Passive};

use super::events::Event;
use super::locate::local_addresses;
use super::log::Level;
use super::say;
use super::watch_thread::Watch;

/// The pause between two readings.
const PAUSE: Duration = Duration::from_secs(10);

/// Starts the thread. It reports to `events` when the measured link changes.
pub(super) fn watch(settings: &Settings, events: Sender<Event>) -> io::Result<Watch> {
    let mut passive = Passive::of(settings);
    Watch::start("link", move |changes| {
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
    })
}
