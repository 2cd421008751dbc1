//! The agreement of the two ends that a remote names its client in front of the client's bytes.
//!
//! A connection that passes unread is opened over the link before it has a client. Its first bytes name the client, so that
//! the ground can give it its share. An older ground would take them for bytes of the client. So the remote asks the
//! ground on the pipe, whenever the pipe is new, and tells Envoy (runtime). Until the ground has agreed, no client is named.
//!
//! Of several grounds, or of several addresses of one, each may get the next connection that passes its health checks. So
//! each is asked, on a connection of its own. No client is named until all of them have agreed. One that fails its checks does
//! not count.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use longhaul_config::Settings;
use longhaul_derive::Derived;
use longhaul_observe::Endpoint;
use longhaul_render::NAMES_KEY;

use super::held_connections::HeldConnections;
use super::pipe_question::{Asking, PipeQuestion, on_the_pipe, patience};
use super::probe::Passing;
use crate::pair::Peer;

/// The URL of the question, and the status by which a ground agrees (`rds_pipe.yaml`). An older one finds no such name, and
/// sends an error.
const URL: &str = "https://names.pair.invalid/";
const YES: u16 = 204;

/// The state of the agreement.
#[derive(Debug, Default)]
pub(super) struct ClientNames {
    question: PipeQuestion,
    each: EachGround,
    /// The process of Envoy that has the last word, and the word.
    told: Option<(u32, bool)>,
}

impl ClientNames {
    /// Asks the grounds that are due, and tells Envoy what changed. Call it often.
    pub(super) fn tend(
        &mut self,
        settings: &Settings,
        derived: &Derived,
        held: &HeldConnections,
        envoy: Option<(u32, &Endpoint)>,
    ) {
        let shares = derived.neighbours.sent_by(&settings.role).is_some();
        if !shares || derived.warm.is_none_or(|warm| warm.number == 0) {
            *self = Self::default();
            return;
        }
        let several = settings.role.grounds().len() > 1 || held.passing().len() > 1;
        let names = if several {
            self.each.tend(held.pipe(), held.passing(), |ground| on_its_own(settings, ground))
        } else {
            let admin = envoy.map(|(_, admin)| admin);
            self.question.tend(held.pipe(), || on_the_pipe(settings, admin, "/", YES))
        };
        if let Some((process, admin)) = envoy
            && self.told != Some((process, names))
            && admin.order(&format!("/runtime_modify?{NAMES_KEY}={}", if names { 100 } else { 0 }))
        {
            self.told = Some((process, names));
        }
    }
}

/// The agreement of several grounds.
#[derive(Debug, Default)]
struct EachGround(BTreeMap<SocketAddr, PipeQuestion>);

impl EachGround {
    /// Asks each ground of `passing` again for each pipe. Returns true if all of them have agreed. A ground that fails its
    /// checks is forgotten, because another version may run there afterwards.
    fn tend(&mut self, pipe: Option<u32>, passing: &[Passing], asking: impl Fn(&Passing) -> Option<Asking>) -> bool {
        self.0.retain(|address, _| passing.iter().any(|ground| ground.address == *address));
        let mut agreed = !passing.is_empty();
        for ground in passing {
            agreed &= self.0.entry(ground.address).or_default().tend(pipe, || asking(ground));
        }
        agreed
    }
}

/// Returns the way to ask a ground that need not be the one in use.
fn on_its_own(settings: &Settings, ground: &Passing) -> Option<Asking> {
    let (identity, at) = (settings.role.identity()?.clone(), settings.role.grounds().get(ground.ground)?.clone());
    let (address, patience) = (ground.address, patience(settings));
    Some(Box::new(move || Peer::at(at, address, &identity).is_ok_and(|peer| peer.status(URL, patience) == Some(YES))))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn ground(last: u8) -> Passing {
        Passing { ground: usize::from(last), address: SocketAddr::from(([192, 0, 2, last], 8443)) }
    }

    /// Calls until the result is `wanted`. The grounds with the numbers in `agree` agree.
    fn becomes(each: &mut EachGround, pipe: u32, passing: &[Passing], agree: &'static [usize], wanted: bool) -> bool {
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            let agreed = each.tend(Some(pipe), passing, |ground| {
                let agrees = agree.contains(&ground.ground);
                Some(Box::new(move || agrees))
            });
            if agreed == wanted && each.0.values().all(|question| !question.waits()) {
                return true;
            }
        }
        false
    }

    #[test]
    fn no_client_is_named_until_each_ground_that_responds_has_agreed() {
        let (both, mut each) = ([ground(0), ground(1)], EachGround::default());
        assert!(!each.tend(Some(0), &[], |_| None) && !each.tend(None, &both, |_| None));
        assert!(becomes(&mut each, 0, &both, &[0], false));
        // The older one fails its checks.
        assert!(becomes(&mut each, 0, &both[..1], &[0], true));
        // It is back, and agrees now.
        assert!(!each.tend(Some(0), &both, |_| None));
        assert!(becomes(&mut each, 0, &both, &[0, 1], true));
        // The pipe is new, so there may be another version at each.
        assert!(!each.tend(Some(1), &both, |_| None));
        assert!(becomes(&mut each, 1, &both, &[0, 1], true));
    }
}
