//! The health endpoint (`listen.health`): `/ready` for load balancers, and `/live` for those who restart a box.
//!
//! The supervisor states the facts that it knows. A request asks the children for the others, so a response is never old.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use longhaul_config::{Settings, WhenDown};
use longhaul_observe::Endpoint;
use longhaul_observe::measure::PairEnd;

use super::log::Level;
use super::probe::{is_ready, link_is_up};
use super::say;
use crate::web::{HostPolicy, Resource, Server, Site};

/// The phase of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not all listeners serve yet.
    #[default]
    Starting,
    /// All listeners serve.
    Serving,
    /// From SIGTERM on.
    Draining,
}

/// The facts of a run on which its health depends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Vitals {
    pub(super) phase: Phase,
    /// The admin interface of Envoy, if its process exists.
    pub(super) envoy: Option<Endpoint>,
    /// The socket of CoreDNS's `/ready`, if its process exists.
    pub(super) coredns: Option<SocketAddr>,
    /// This end of a pair, if the box serves nobody without the other end.
    pub(super) needs: Option<PairEnd>,
}

/// The reason why a box should get no clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum NotReady {
    #[error("this box starts")]
    Starting,
    #[error("this box drains before its end")]
    Draining,
    #[error("Envoy does not respond")]
    Envoy,
    #[error("CoreDNS does not respond")]
    CoreDns,
    #[error("the ground does not respond")]
    Link,
}

fn readiness(
    vitals: &Vitals,
    envoy: impl FnOnce(&Endpoint) -> bool,
    coredns: impl FnOnce(SocketAddr) -> bool,
    link: impl FnOnce(&Endpoint, &PairEnd) -> bool,
) -> Result<(), NotReady> {
    match vitals.phase {
        Phase::Starting => return Err(NotReady::Starting),
        Phase::Draining => return Err(NotReady::Draining),
        Phase::Serving => {}
    }
    let admin = vitals.envoy.as_ref().ok_or(NotReady::Envoy)?;
    let ready = vitals.coredns.ok_or(NotReady::CoreDns)?;
    if !envoy(admin) {
        return Err(NotReady::Envoy);
    }
    if !coredns(ready) {
        return Err(NotReady::CoreDns);
    }
    if vitals.needs.as_ref().is_some_and(|end| !link(admin, end)) { Err(NotReady::Link) } else { Ok(()) }
}

/// Returns the first process that does not exist. Until all listeners serve, the processes start one after the other.
fn liveness(vitals: &Vitals) -> Result<(), NotReady> {
    match vitals {
        Vitals { phase: Phase::Starting, .. } => Ok(()),
        Vitals { envoy: None, .. } => Err(NotReady::Envoy),
        Vitals { coredns: None, .. } => Err(NotReady::CoreDns),
        Vitals { .. } => Ok(()),
    }
}

fn page(vitals: &Vitals, path: &str) -> Option<Resource> {
    let outcome = match path {
        "/ready" => {
            let link = |admin: &Endpoint, end: &PairEnd| link_is_up(admin, WhenDown::Error, end) != Some(false);
            readiness(vitals, Endpoint::serves, is_ready, link)
        }
        "/live" => liveness(vitals),
        _ => return None,
    };
    Some(match outcome {
        Ok(()) => Resource::text("ok\n".to_owned()),
        Err(why) => Resource::unavailable(format!("{why}\n")),
    })
}

/// The server. It serves nothing while `listen.health` is off.
#[derive(Debug, Default)]
pub(super) struct HealthServer {
    vitals: Arc<Mutex<Vitals>>,
    serving: Option<(SocketAddr, Server)>,
    /// The socket that could not be bound. The reason has been reported.
    busy: Option<SocketAddr>,
}

impl HealthServer {
    /// States the facts, and starts, stops or moves the server as the settings want. Call it often.
    pub(super) fn tend(&mut self, settings: &Settings, vitals: Vitals) {
        *self.vitals.lock().unwrap_or_else(PoisonError::into_inner) = vitals;
        let wanted = settings.listen.health;
        if self.serving.as_ref().map(|(socket, _)| *socket) == wanted {
            return;
        }
        self.serving = None;
        let Some(socket) = wanted else { return };
        let shared = Arc::clone(&self.vitals);
        let pages = move |path: &str| {
            let vitals = shared.lock().unwrap_or_else(PoisonError::into_inner).clone();
            page(&vitals, path)
        };
        match Server::start(socket, Site { hosts: HostPolicy::all(), pages: Arc::new(pages) }) {
            Ok(server) => (self.serving, self.busy) = (Some((socket, server)), None),
            Err(error) if self.busy != Some(socket) => {
                say(Level::Error, &format!("cannot serve {socket}, set by `listen.health`: {error}; trying again"));
                self.busy = Some(socket);
            }
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use longhaul_config::load_text;

    use super::*;

    /// Returns a remote's end of a pair.
    fn remote() -> PairEnd {
        let pem = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/config/files/pep");
        let text = format!(
            "role: remote\nlink: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
             split: {{ peer: \"198.51.100.40:8443\", cert: {pem}.pem, key: {pem}.key, ca: {pem}.pem }}\n"
        );
        PairEnd::of(&load_text(Path::new("longhaul.yaml"), text).unwrap().settings).unwrap()
    }

    #[test]
    fn a_box_is_ready_while_all_that_clients_need_responds() {
        let admin = Endpoint::Unix("admin.sock".into());
        let ready: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let well = || Vitals {
            phase: Phase::Serving,
            envoy: Some(admin.clone()),
            coredns: Some(ready),
            needs: Some(remote()),
        };
        let judged = |vitals, envoy, coredns, link| readiness(&vitals, |_| envoy, |_| coredns, |_, _| link);
        assert_eq!(judged(well(), true, true, true), Ok(()));
        assert_eq!(judged(well(), false, true, true), Err(NotReady::Envoy));
        assert_eq!(judged(well(), true, false, true), Err(NotReady::CoreDns));
        assert_eq!(judged(well(), true, true, false), Err(NotReady::Link));
        assert_eq!(judged(Vitals { needs: None, ..well() }, true, true, false), Ok(()));
        assert_eq!(judged(Vitals { envoy: None, ..well() }, true, true, true), Err(NotReady::Envoy));
        assert_eq!(judged(Vitals { coredns: None, ..well() }, true, true, true), Err(NotReady::CoreDns));
        for (phase, why) in [(Phase::Starting, NotReady::Starting), (Phase::Draining, NotReady::Draining)] {
            assert_eq!(judged(Vitals { phase, ..well() }, true, true, true), Err(why));
            assert_eq!(liveness(&Vitals { phase, ..well() }), Ok(()));
        }
        assert_eq!(liveness(&Vitals { envoy: None, ..well() }), Err(NotReady::Envoy));
        assert_eq!(liveness(&Vitals::default()), Ok(()), "nothing has started yet");
    }
}
