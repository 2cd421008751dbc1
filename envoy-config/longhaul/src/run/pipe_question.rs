//! A question to the ground, asked on each new pipe until the ground agrees.
//!
//! The ground may be of an earlier version, and another one may be behind each pipe. An error may be the link's, so the
//! question is asked again, ever more seldom.

use std::io;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::Settings;
use longhaul_observe::Endpoint;
use longhaul_render::names_socket;

/// The waits between questions on one pipe. They double from the first to the longest.
const FIRST_WAIT: Duration = Duration::from_secs(4);
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// The time for the response, beside round trips: the link may be full.
const PATIENCE: Duration = Duration::from_secs(20);

/// Asks a ground, and returns true if it agreed. It takes as long as the link does.
pub(super) type Asking = Box<dyn FnOnce() -> bool + Send>;

/// The state of the agreement.
#[derive(Debug, Default)]
pub(super) struct PipeQuestion {
    /// The pipe on which the ground agreed, by the number of pipes that broke before it.
    agreed: Option<u32>,
    asked: Option<Asked>,
    /// The pipe of the last question, the next time to ask on it, and the wait behind that.
    again: Option<(u32, Instant, Duration)>,
}

#[derive(Debug)]
struct Asked {
    pipe: u32,
    response: Receiver<bool>,
}

impl PipeQuestion {
    /// Asks if that is due. `pipe` is the number of pipes that broke, and None while there is no pipe. `asking` is None while
    /// there is no way to ask. Returns true if the ground has agreed on this pipe. Call it often.
    pub(super) fn tend(&mut self, pipe: Option<u32>, asking: impl FnOnce() -> Option<Asking>) -> bool {
        self.take_response();
        if let Some(pipe) = pipe
            && self.asked.is_none()
            && self.agreed != Some(pipe)
            && let Some(wait) = self.due(pipe)
            && let Some(asking) = asking()
        {
            self.plan(pipe, wait);
            self.asked = ask(pipe, asking).ok();
        }
        pipe.is_some() && self.agreed == pipe
    }

    /// Returns true if a question has no response yet.
    #[cfg(test)]
    pub(super) fn waits(&self) -> bool {
        self.asked.is_some()
    }

    /// Returns the wait behind a question on this pipe, if it is time for one.
    fn due(&self, pipe: u32) -> Option<Duration> {
        match self.again {
            Some((of, at, wait)) if of == pipe => (Instant::now() >= at).then_some(wait),
            _ => Some(FIRST_WAIT),
        }
    }

    fn plan(&mut self, pipe: u32, wait: Duration) {
        self.again = Some((pipe, Instant::now() + wait, (wait * 2).min(LONGEST_WAIT)));
    }

    fn take_response(&mut self) {
        let Some(asked) = &self.asked else { return };
        match asked.response.try_recv() {
            Err(TryRecvError::Empty) => return,
            Ok(true) => self.agreed = Some(asked.pipe),
            Ok(false) | Err(TryRecvError::Disconnected) => {}
        }
        self.asked = None;
    }
}

/// Returns the way to ask on the pipe: `path` leads there, and the ground agrees with the status `yes`. `admin` is the interface
/// of the Envoy that serves.
pub(super) fn on_the_pipe(settings: &Settings, admin: Option<&Endpoint>, path: &str, yes: u16) -> Option<Asking> {
    let Endpoint::Unix(admin) = admin? else { return None };
    let (socket, path, patience) = (Endpoint::Unix(names_socket(admin)), path.to_owned(), patience(settings));
    Some(Box::new(move || socket.status(&path, patience) == Some(yes)))
}

/// Returns the time for a response.
pub(super) fn patience(settings: &Settings) -> Duration {
    PATIENCE + settings.slowest_link().rtt * 10
}

/// Asks in a thread of its own, because the response crosses the link.
fn ask(pipe: u32, asking: Asking) -> io::Result<Asked> {
    let (sender, response) = mpsc::channel();
    thread::Builder::new().name("question".to_owned()).spawn(move || {
        let _ = sender.send(asking());
    })?;
    Ok(Asked { pipe, response })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ground_is_asked_on_each_pipe_and_ever_more_seldom() {
        let mut question = PipeQuestion::default();
        let is_due =
            |question: &mut PipeQuestion, pipe| question.due(pipe).map(|wait| question.plan(pipe, wait)).is_some();
        assert_eq!([0, 0, 1].map(|pipe| is_due(&mut question, pipe)), [true, false, true]);
        let soon = question.again.unwrap();
        question.again = Some((1, Instant::now(), soon.2));
        assert!(is_due(&mut question, 1));
        assert_eq!(question.again.unwrap().2, FIRST_WAIT * 4);
    }
}
