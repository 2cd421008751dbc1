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

/// The question.
#[derive(Debug)]
pub(super) struct Question {
    /// The path of the request.
    pub(super) path: String,
    /// The status by which a ground agrees.
    pub(super) yes: u16,
}

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
    /// Asks if that is due. `pipe` is the number of pipes that broke, and None while there is no pipe. `admin` is the
    /// interface of the Envoy that serves. Returns true if the ground has agreed on this pipe. Call it often.
    pub(super) fn tend(
        &mut self,
        settings: &Settings,
        pipe: Option<u32>,
        admin: Option<&Endpoint>,
        question: impl FnOnce() -> Question,
    ) -> bool {
        self.take_response();
        if let Some(pipe) = pipe
            && let Some(admin) = admin
            && self.asked.is_none()
            && self.agreed != Some(pipe)
            && self.is_due(pipe)
        {
            self.asked = ask(settings, admin, pipe, question()).ok();
        }
        pipe.is_some() && self.agreed == pipe
    }

    /// Returns true if it is time to ask on this pipe, and plans the next time.
    fn is_due(&mut self, pipe: u32) -> bool {
        let wait = match self.again {
            Some((of, at, wait)) if of == pipe => {
                if Instant::now() < at {
                    return false;
                }
                wait
            }
            _ => FIRST_WAIT,
        };
        self.again = Some((pipe, Instant::now() + wait, (wait * 2).min(LONGEST_WAIT)));
        true
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

/// Asks in a thread of its own, because the response crosses the link.
fn ask(settings: &Settings, admin: &Endpoint, pipe: u32, question: Question) -> io::Result<Asked> {
    let (sender, response) = mpsc::channel();
    let Endpoint::Unix(admin) = admin else { return Err(io::ErrorKind::Unsupported.into()) };
    let (socket, patience) = (Endpoint::Unix(names_socket(admin)), PATIENCE + settings.slowest_link().rtt * 10);
    thread::Builder::new().name("question".to_owned()).spawn(move || {
        let _ = sender.send(socket.status(&question.path, patience) == Some(question.yes));
    })?;
    Ok(Asked { pipe, response })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ground_is_asked_on_each_pipe_and_ever_more_seldom() {
        let mut question = PipeQuestion::default();
        assert_eq!([question.is_due(0), question.is_due(0), question.is_due(1)], [true, false, true]);
        let soon = question.again.unwrap();
        question.again = Some((1, Instant::now(), soon.2));
        assert!(question.is_due(1));
        assert_eq!(question.again.unwrap().2, FIRST_WAIT * 4);
    }
}
