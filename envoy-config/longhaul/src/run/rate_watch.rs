//! Lowers the limit of a pair while its link carries less than `link` states, as in rain, and raises it again.
//!
//! A thread reads the kernel's figures of the connections each second, and sends nothing. Only the filter `link-share` of the
//! native engine takes a new limit for streams that run, so with wasm filters nobody watches.

use std::io;
use std::sync::mpsc::{self, RecvError, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::{Ground, Role, Settings};
use longhaul_derive::Derived;
use longhaul_observe::measure::{Carried, Kernel, PairEnd};
use longhaul_render::Weighing;

use super::events::Event;
use super::log::Level;
use super::say;

/// The pause between two readings.
const PAUSE: Duration = Duration::from_secs(1);

/// The thread that watches. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct RateWatch {
    links: Sender<Option<Limited>>,
    followed: Option<Limited>,
}

/// One link with a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Limited {
    end: PairEnd,
    bytes_per_second: u64,
}

impl Limited {
    /// Returns the link of this box. None: nothing limits it, or there are several, and the kernel does not know whose link a
    /// connection takes.
    fn of(settings: &Settings, derived: &Derived, weighing: &Weighing, is_native: bool) -> Option<Self> {
        let limit = derived.neighbours.sent_by(&settings.role).filter(|_| is_native)?;
        let bytes_per_second = match &settings.role {
            Role::Ground(Ground { remotes, .. }) => match remotes.as_slice() {
                [remote] => weighing.most_sent(limit, Some(&remote.to_string())),
                _ => return None,
            },
            Role::Remote(remote) if remote.grounds.len() == 1 => weighing.most_sent(limit, None),
            Role::Remote(_) | Role::Edge => return None,
        };
        Some(Self { end: PairEnd::of(settings)?, bytes_per_second })
    }
}

/// Returns the line of the log about another limit. Between the fall and the end of the rise, there is none.
pub(super) fn line(before: Option<u32>, now: Option<u32>) -> Option<String> {
    match (before, now) {
        (None, Some(percent)) => Some(format!(
            "the link carries less than `link` states: the limit of `link.fill` is {percent}% until it carries more"
        )),
        (Some(_), None) => {
            Some("the link carries what `link` states; the limit of `link.fill` is whole again".to_owned())
        }
        (None, None) | (Some(_), Some(_)) => None,
    }
}

impl RateWatch {
    /// Starts the thread. It reports to `events` when another limit fits the link, in percent of the stated one.
    pub(super) fn start(events: Sender<Event>) -> io::Result<Self> {
        let (links, changes) = mpsc::channel::<Option<Limited>>();
        thread::Builder::new().name("rate".to_owned()).spawn(move || {
            let mut link = None;
            loop {
                let next = match link {
                    Some(link) => watch(&link, &events, &changes),
                    None => changes.recv(),
                };
                let Ok(next) = next else { break };
                link = next;
            }
        })?;
        Ok(Self { links, followed: None })
    }

    /// Watches the link that these settings have.
    pub(super) fn follow(&mut self, settings: &Settings, derived: &Derived, weighing: &Weighing, is_native: bool) {
        let next = Limited::of(settings, derived, weighing, is_native);
        if next != self.followed {
            let _ = self.links.send(next.clone());
            self.followed = next;
        }
    }
}

/// Watches until the link changes, and returns the next one.
///
/// # Errors
/// The run ends.
fn watch(
    link: &Limited,
    events: &Sender<Event>,
    changes: &mpsc::Receiver<Option<Limited>>,
) -> Result<Option<Limited>, RecvError> {
    let (start, mut carried, mut last) = (Instant::now(), Carried::of(link.bytes_per_second), 100);
    let kernel = match Kernel::open() {
        Ok(kernel) => kernel,
        Err(error) => {
            say(Level::Info, &format!("the limit of `link.fill` is fixed: the kernel gives no figures: {error}"));
            return changes.recv();
        }
    };
    loop {
        // A reading that fails is one of a busy kernel, and the next one counts.
        if let Ok(connections) = link.end.read(&kernel) {
            let percent = carried.add(start.elapsed(), &connections);
            if percent != last {
                events.send(Event::Carried(percent)).map_err(|_| RecvError)?;
                last = percent;
            }
        }
        match changes.recv_timeout(PAUSE) {
            Ok(next) => {
                events.send(Event::Carried(100)).map_err(|_| RecvError)?;
                return Ok(next);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(RecvError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn the_log_says_when_a_lower_limit_begins_and_when_it_ends() {
        assert!(line(None, Some(55)).unwrap().contains("is 55% until it carries more"));
        assert!(line(Some(95), None).unwrap().contains("whole again"));
        assert_eq!((line(Some(55), Some(60)), line(None, None)), (None, None));
    }
}
