//! The agreement of the two ends that a remote names its client in front of the client's bytes.
//!
//! A connection that passes unread is opened over the link before it has a client. Its first bytes name the client, so that
//! the ground can give it its share. An older ground would take them for bytes of the client. So the remote asks the
//! ground on the pipe, whenever the pipe is new, and tells Envoy (runtime). Until the ground has agreed, no client is named.

use std::io;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use longhaul_config::Settings;
use longhaul_derive::Derived;
use longhaul_observe::Endpoint;
use longhaul_render::{NAMES_KEY, names_socket};

/// The status by which a ground agrees (`rds/pipe.yaml`). An older one finds no such name, and sends an error.
const YES: u16 = 204;
/// The waits between questions on one pipe. They double from the first to the longest: an error may be the link's.
const FIRST_WAIT: Duration = Duration::from_secs(4);
const LONGEST_WAIT: Duration = Duration::from_hours(1);
/// The time for the response, beside round trips: the link may be full.
const PATIENCE: Duration = Duration::from_secs(20);

/// The state of the agreement.
#[derive(Debug, Default)]
pub(super) struct ClientNames {
    /// The pipe on which the ground agreed, by the number of pipes that broke before it.
    agreed: Option<u32>,
    asked: Option<Asked>,
    /// The pipe of the last question, the next time to ask on it, and the wait behind that.
    again: Option<(u32, Instant, Duration)>,
    /// The process of Envoy that has the last word, and the word.
    told: Option<(u32, bool)>,
}

#[derive(Debug)]
struct Asked {
    pipe: u32,
    response: Receiver<bool>,
}

impl ClientNames {
    /// Asks the ground if the pipe is new, and tells Envoy what changed. `pipe` is the number of pipes that broke. It is
    /// None while there is no pipe. Call it often.
    pub(super) fn tend(
        &mut self,
        settings: &Settings,
        derived: &Derived,
        pipe: Option<u32>,
        envoy: Option<(u32, &Endpoint)>,
    ) {
        let shares = derived.neighbours.sent_by(&settings.role).is_some();
        // While one of several grounds takes over, connections reach it before anybody has asked it.
        let one_ground = settings.role.grounds().len() == 1;
        if !shares || !one_ground || derived.warm.is_none_or(|warm| warm.number == 0) {
            *self = Self::default();
            return;
        }
        self.take_response();
        if let Some(pipe) = pipe
            && let Some((_, admin)) = envoy
            && self.asked.is_none()
            && self.agreed != Some(pipe)
            && self.is_due(pipe)
        {
            self.asked = ask(settings, admin, pipe).ok();
        }
        let names = pipe.is_some() && self.agreed == pipe;
        if let Some((process, admin)) = envoy
            && self.told != Some((process, names))
            && admin.order(&format!("/runtime_modify?{NAMES_KEY}={}", if names { 100 } else { 0 }))
        {
            self.told = Some((process, names));
        }
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
fn ask(settings: &Settings, admin: &Endpoint, pipe: u32) -> io::Result<Asked> {
    let (sender, response) = mpsc::channel();
    let Endpoint::Unix(admin) = admin else { return Err(io::ErrorKind::Unsupported.into()) };
    let (socket, patience) = (Endpoint::Unix(names_socket(admin)), PATIENCE + settings.link.rtt * 10);
    thread::Builder::new().name("names".to_owned()).spawn(move || {
        let _ = sender.send(socket.status("/", patience) == Some(YES));
    })?;
    Ok(Asked { pipe, response })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ground_is_asked_on_each_pipe_and_ever_more_seldom() {
        let mut names = ClientNames::default();
        assert_eq!([names.is_due(0), names.is_due(0), names.is_due(1)], [true, false, true]);
        let soon = names.again.unwrap();
        names.again = Some((1, Instant::now(), soon.2));
        assert!(names.is_due(1));
        assert_eq!(names.again.unwrap().2, FIRST_WAIT * 4);
    }
}
