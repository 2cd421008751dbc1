//! The end of a run: a drain on SIGTERM, and the end of the children.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use longhaul_config::{Settings, Sockets};
use longhaul_observe::Endpoint;
use longhaul_observe::measure::Kernel;

use super::child::stop_all;
use super::drain::{Drain, DrainStep, Ending, STATS, UnderWay};
use super::error::RunError;
use super::events::Event;
use super::health::Phase;
use super::held_connections::HeldConnections;
use super::log::Level;
use super::probe::stats;
use super::say;
use super::supervisor::{Run, TICK};

/// The longest time for an orderly end.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

impl Run {
    /// Serves on for `drain.wait`, accepts no more connections, and waits until nothing is under way, or for
    /// `drain.time`. A second signal ends it at once.
    pub(super) fn drain(&mut self) -> Result<(), RunError> {
        let settings = &self.generation.settings;
        let round_trip = if settings.role.stands_beside_clients() { Duration::ZERO } else { settings.link.rtt };
        let mut drain = Drain::begin(settings.drain, round_trip, Instant::now());
        self.phase = Phase::Draining;
        self.tend_health();
        self.manager.stopping(drain.longest() + STOP_PATIENCE + TICK);
        say(Level::Info, "draining (SIGTERM); a second signal ends the run at once");
        // The connections that this process holds open itself carry nothing.
        self.holders = HeldConnections::default();
        let (mut announced, mut reaped_at) = (false, Instant::now());
        loop {
            self.publish();
            self.tend_health();
            self.tend_metrics();
            self.status_page.tend(&self.generation.settings);
            // While another Envoy takes over, none of the two takes orders. It is ready soon, or ends.
            if self.envoy.is_taking_over() {
                self.envoy.tend(&self.generation);
            } else if self.envoy.ended().is_some() {
                say(Level::Warning, "Envoy has ended, so the drain is over");
                return Ok(());
            } else if let Some(admin) = self.envoy.admin().cloned() {
                announced = announced || announce(&admin);
                match drain.next(Instant::now(), || under_way(&admin, &self.generation.settings)) {
                    DrainStep::Serve | DrainStep::Await => {}
                    DrainStep::Close => {
                        admin.order("/drain_listeners");
                    }
                    DrainStep::End(Ending::NothingUnderWay) => return Ok(()),
                    DrainStep::End(Ending::TimeOver(left)) => {
                        say(Level::Warning, &format!("`drain.time` is over: {left} break off"));
                        return Ok(());
                    }
                }
            } else {
                return Ok(());
            }
            self.dns.tend();
            self.tend_side_programs();
            self.challenges.tend(&self.generation.settings, self.machine.near);
            self.reap(&mut reaped_at);
            let status = self.status_line();
            self.manager.alive(&status);
            // No change of the files applies any more.
            if self.take_events().stop.is_some() {
                return Err(RunError::Interrupted);
            }
        }
    }

    /// Ends the children. With `at_once`, it waits for none of them.
    pub(super) fn stop(&mut self, at_once: bool) -> Result<(), RunError> {
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
        let events = &self.events;
        let mut hurried = at_once;
        stop_all(&mut children, STOP_PATIENCE, || {
            hurried |= events.try_iter().any(|event| matches!(event, Event::Stop(_)));
            hurried
        });
        self.envoy.clean_up();
        if hurried { Err(RunError::Interrupted) } else { Ok(()) }
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
