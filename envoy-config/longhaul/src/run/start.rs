//! The start of a run: both children, one after the other, until the line `ready`.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use longhaul_config::{Role, Settings, Sockets};
use longhaul_observe::measure::PairEnd;

use super::child;
use super::error::RunError;
use super::events::Event;
use super::health::Phase;
use super::log;
use super::ports;
use super::probe::{XdsCounters, is_ready, link_is_up, no_ground_responds};
use super::supervisor::{Run, TICK};

/// The longest wait for a pipe. It takes a DNS query for a ground that is given by name, and a few round trips.
const LINK_PATIENCE: Duration = Duration::from_secs(8);

/// The longest wait for the programs beside Envoy.
const SIDE_PATIENCE: Duration = Duration::from_secs(3);

impl Run {
    /// Starts both children, one after the other. Returns false if asked to stop meanwhile.
    pub(super) fn start(&mut self) -> Result<bool, RunError> {
        self.watch.follow(&self.generation.inputs);
        self.tend_health();
        let failed = |name: &str, error: io::Error| RunError::Start(format!("cannot start {name}: {error}"));
        // They respond sooner than Envoy, so the first requests do not pass them by.
        self.tend_side_programs();
        self.envoy.start(&self.generation).map_err(|error| failed("Envoy", error))?;
        if !self.wait_for("Envoy", |run| run.envoy.is_ready())? {
            return Ok(false);
        }
        self.envoy.tend(&self.generation);
        self.refuse_half_started()?;
        // CoreDNS comes second: it does not steer clients to a proxy that does not respond, and would retry only after
        // a while.
        self.dns.start().map_err(|error| failed("CoreDNS", error))?;
        if !self.wait_for("CoreDNS", |run| is_ready(run.machine.dns_ready))? {
            return Ok(false);
        }
        if !self.wait_for_side_programs() || !self.wait_for_link() {
            return Ok(false);
        }
        self.phase = Phase::Serving;
        self.tend_health();
        self.challenges.tend(&self.generation.settings, self.machine.near);
        self.tend_metrics();
        self.status_page.tend(&self.generation.settings);
        // Published before the line that other programs wait for, so that they can query the run at once.
        self.record(true);
        self.publish();
        self.announce()?;
        log::serves(true);
        self.manager.ready(&self.status_line());
        Ok(true)
    }

    /// Starts, exchanges or ends the programs beside Envoy, as the configuration says.
    pub(super) fn tend_side_programs(&mut self) {
        self.images.tend(&self.generation.tree, &self.machine.root);
        self.objects.tend(&self.generation.tree, &self.machine.root);
    }

    /// Waits until the programs beside Envoy respond. Without them, requests pass them by, so the run does not wait for
    /// long. Returns false if asked to stop meanwhile.
    fn wait_for_side_programs(&mut self) -> bool {
        let deadline = Instant::now() + SIDE_PATIENCE;
        while (self.images.is_starting() || self.objects.is_starting()) && Instant::now() < deadline {
            if matches!(self.events.recv_timeout(TICK), Ok(Event::Stop(_)) | Err(RecvTimeoutError::Disconnected)) {
                return false;
            }
        }
        true
    }

    /// Waits until a remote's link is up or known to be down, so that the line `ready` and the health endpoint agree.
    /// Returns false if asked to stop meanwhile.
    fn wait_for_link(&mut self) -> bool {
        let deadline = Instant::now() + LINK_PATIENCE;
        while self.awaits_link() && Instant::now() < deadline {
            if matches!(self.events.recv_timeout(TICK), Ok(Event::Stop(_)) | Err(RecvTimeoutError::Disconnected)) {
                return false;
            }
        }
        true
    }

    /// Opens the connections of a remote. Returns true while no pipe is open and a ground may respond.
    fn awaits_link(&mut self) -> bool {
        let Role::Remote(remote) = &self.generation.settings.role else { return false };
        let when_down = remote.when_down;
        let end = PairEnd::of(&self.generation.settings);
        self.tend_link();
        let (Some(admin), Some(end)) = (self.envoy.admin(), end) else { return false };
        // Envoy was ready after the first health check of every ground with a known address.
        link_is_up(admin, when_down, &end) != Some(true) && !no_ground_responds(admin)
    }

    /// Waits until `ready`. Returns false if asked to stop meanwhile. A child that ends now is an error, because a
    /// restart would not help.
    fn wait_for(&mut self, name: &str, ready: impl Fn(&Self) -> bool) -> Result<bool, RunError> {
        let patience = self.generation.derived.capacity.start_patience;
        self.manager.starting(patience);
        let deadline = Instant::now() + patience;
        while !ready(self) {
            match self.events.recv_timeout(TICK) {
                Ok(Event::Stop(_)) | Err(RecvTimeoutError::Disconnected) => return Ok(false),
                // The first check while serving finds changes that came during the start.
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            }
            for (name, ended) in [("Envoy", self.envoy.ended()), ("CoreDNS", self.dns.ended())] {
                if let Some(status) = ended {
                    let how = child::describe(status);
                    return Err(RunError::Start(format!(
                        "{name} {how} before it was ready; its own messages are above"
                    )));
                }
            }
            if Instant::now() > deadline {
                let patience = patience.as_secs();
                return Err(RunError::Start(format!(
                    "{name} did not respond within {patience} s; its own messages are above"
                )));
            }
        }
        Ok(true)
    }

    /// Refuses a start with missing listeners. Envoy reports that it is ready even if it refused one.
    fn refuse_half_started(&self) -> Result<(), RunError> {
        let counters = XdsCounters::read(self.envoy.admin_interface()).unwrap_or_default();
        let refused = counters.refused_since(&XdsCounters::default());
        if refused.is_empty() {
            return Ok(());
        }
        Err(RunError::Start(format!(
            "Envoy refused part of its configuration ({}); its own messages are above",
            refused.join(", ")
        )))
    }

    /// Prints the only line on stdout.
    fn announce(&self) -> Result<(), RunError> {
        let line = ready_line(&self.generation.settings, self.metrics_page.socket());
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{line}")
            .and_then(|()| stdout.flush())
            .map_err(|error| RunError::Start(format!("cannot write to stdout: {error}")))
    }
}

/// Returns `ready http=127.0.0.1:8080 ...`: the sockets by their keys. `metrics` is the one that is served.
fn ready_line(settings: &Settings, metrics: Option<SocketAddr>) -> String {
    let listen = &settings.listen;
    let of_clients = |sockets: Option<&Sockets>| sockets.map(ToString::to_string);
    let own = |socket: Option<SocketAddr>| socket.map(|socket| socket.to_string());
    let sockets = [
        (ports::http_key(settings).trim_start_matches("listen."), of_clients(Some(&listen.http))),
        ("tls", of_clients(listen.tls.as_ref())),
        ("dns", of_clients(listen.dns.as_ref())),
        ("health", own(listen.health)),
        ("metrics", own(metrics)),
    ];
    let words = sockets.iter().filter_map(|(key, socket)| socket.as_ref().map(|socket| format!(" {key}={socket}")));
    format!("ready{}", words.collect::<String>())
}
