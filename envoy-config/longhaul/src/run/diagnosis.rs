//! The reason why the other end of the link does not respond.
//!
//! Envoy retries without a word. While the link is down, the end that dials tries the handshake of `longhaul pair check`
//! itself, and logs its result when it changes.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::Settings;

use super::log::Level;
use super::say;
use crate::pair;

/// The interval of attempts during an outage. An attempt costs the link a handshake.
const EVERY: Duration = Duration::from_mins(1);

/// The present outage, as far as it is known.
#[derive(Debug, Default)]
pub(super) struct Diagnosis {
    tried_at: Option<Instant>,
    attempt: Option<Receiver<Option<String>>>,
    logged: Option<String>,
}

impl Diagnosis {
    /// Tries the handshake now and then while the other end is `away`. Call it often.
    pub(super) fn tend(&mut self, settings: &Settings, away: bool) {
        if !away {
            *self = Self::default();
            return;
        }
        match self.attempt.as_ref().map(Receiver::try_recv) {
            Some(Ok(found)) => {
                self.attempt = None;
                self.log(found);
            }
            Some(Err(TryRecvError::Disconnected)) => self.attempt = None,
            None if self.tried_at.is_none_or(|at| at.elapsed() >= EVERY) => self.attempt(settings.clone()),
            Some(Err(TryRecvError::Empty)) | None => {}
        }
    }

    /// Returns the reason of the present outage, as the last attempt found it.
    pub(super) fn found(&self) -> Option<&str> {
        self.logged.as_deref()
    }

    fn attempt(&mut self, settings: Settings) {
        self.tried_at = Some(Instant::now());
        let (sender, receiver) = channel();
        let spawned = thread::Builder::new().name("diagnosis".to_owned()).spawn(move || {
            // If the run has ended meanwhile, nobody waits for the result.
            let _ = sender.send(pair::problem(&settings));
        });
        self.attempt = spawned.ok().map(|_| receiver);
    }

    fn log(&mut self, found: Option<String>) {
        if found == self.logged {
            return;
        }
        if let Some(problem) = &found {
            say(Level::Warning, problem);
        }
        self.logged = found;
    }
}
