//! The end of a run: a drain on SIGTERM, and the end of the children.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use longhaul_config::{Settings, Sockets};
use longhaul_observe::Endpoint;
use longhaul_observe::measure::Kernel;

use super::clock::MachineClock;
use super::drain::{Drain, Ending, STATS, UnderWay};
use super::ending::stop_all;
use super::error::RunError;
use super::health::Phase;
use super::held_connections::HeldConnections;
use super::log::{self, Level};
use super::probe::stats;
use super::rounds::{self, DrainEnd, Draining, EnvoyNow, Serving};
use super::say;
use super::supervisor::{Run, TICK};

/// The longest time for an orderly end.
pub(super) const STOP_PATIENCE: Duration = Duration::from_secs(5);

impl Run {
    /// Serves on for `drain.wait`, accepts no more connections, and waits until nothing is under way, or for
    /// `drain.time`. A second signal ends it at once.
    pub(super) fn drain(&mut self) -> Result<(), RunError> {
        log::serves(false);
        let settings = &self.generation.settings;
        let round_trip = if settings.role.stands_beside_clients() { Duration::ZERO } else { settings.link.rtt };
        let drain = Drain::begin(settings.drain, round_trip, Instant::now());
        self.phase = Phase::Draining;
        self.tend_health();
        self.manager.stopping(drain.longest() + STOP_PATIENCE + TICK);
        say(Level::Info, "draining (SIGTERM); a second signal ends the run at once");
        // The connections that this process holds open itself carry nothing.
        self.holders = HeldConnections::default();
        match rounds::drain(self, drain) {
            DrainEnd::Over(Ending::NothingUnderWay) | DrainEnd::NoEnvoy => {}
            DrainEnd::Over(Ending::TimeOver(left)) => {
                say(Level::Warning, &format!("`drain.time` is over: {left} break off"));
            }
            DrainEnd::EnvoyEnded => say(Level::Warning, "Envoy has ended, so the drain is over"),
            DrainEnd::Interrupted => return Err(RunError::Interrupted),
        }
        Ok(())
    }

    /// Ends the children. With `at_once`, it waits for none of them.
    pub(super) fn stop(&mut self, at_once: bool) -> Result<(), RunError> {
        log::serves(false);
        if self.phase != Phase::Draining {
            self.manager.stopping(STOP_PATIENCE + TICK);
        }
        let mut children: Vec<_> = self
            .envoy
            .take_all()
            .into_iter()
            .chain(self.dns.take())
            .chain(self.images.take_all())
            .chain(self.objects.take_all())
            .collect();
        let events = &mut self.events;
        let mut hurried = at_once;
        stop_all(&mut MachineClock, &mut children, STOP_PATIENCE, || {
            hurried |= events.has_stop();
            hurried
        });
        self.envoy.clean_up();
        if hurried { Err(RunError::Interrupted) } else { Ok(()) }
    }
}

impl Draining for Run {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn envoy(&mut self) -> EnvoyNow {
        if self.envoy.is_taking_over() {
            EnvoyNow::TakesOver
        } else if self.envoy.ended().is_some() {
            EnvoyNow::Ended
        } else if self.envoy.admin().is_some() {
            EnvoyNow::Serves
        } else {
            EnvoyNow::Gone
        }
    }

    fn tend_takeover(&mut self) {
        self.envoy.tend(&self.generation);
    }

    fn announce(&mut self) -> bool {
        announce(self.envoy.admin_interface())
    }

    fn under_way(&mut self) -> Option<UnderWay> {
        under_way(self.envoy.admin_interface(), &self.generation.settings)
    }

    fn close(&mut self) {
        self.envoy.admin_interface().order("/drain_listeners");
    }

    fn tend_others(&mut self) {
        self.publish();
        self.tend_health();
        self.tend_metrics();
        self.status_page.tend(&self.generation.settings);
        self.dns.tend();
        self.tend_side_programs();
        self.challenges.tend(&self.generation.settings, self.machine.near);
        self.reap();
        let status = self.status_line();
        self.manager.alive(&status);
    }

    fn is_asked_to_stop(&mut self) -> bool {
        self.take_events().stop.is_some()
    }
}

/// Makes Envoy end each client connection after its present response: HTTP/1 by `Connection: close`, HTTP/2 and 3 by
/// GOAWAY. New connections are still accepted.
fn announce(admin: &Endpoint) -> bool {
    admin.order("/healthcheck/fail") && admin.order("/drain_listeners?graceful&skip_exit")
}

fn under_way(admin: &Endpoint, settings: &Settings) -> Option<UnderWay> {
    let listen = &settings.listen;
    let ports: BTreeSet<u16> = listen.web().map(Sockets::port).collect();
    // A kernel that does not tell counts as one without any.
    let handshakes =
        Kernel::open().and_then(|kernel| ports.iter().try_fold(0, |sum, port| Ok(sum + kernel.handshakes_at(*port)?)));
    Some(UnderWay::parse(&stats(admin, STATS)?, &ports).and_handshakes(handshakes.unwrap_or_default()))
}
