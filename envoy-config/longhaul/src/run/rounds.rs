//! The rounds of a run: while it serves, and while it drains. Each effect is behind a trait, so that a simulation can
//! run the same rounds.

use std::time::{Duration, Instant};

use super::debounce::Debounce;
use super::drain::{Drain, DrainStep, Ending, UnderWay};
use super::events::Stop;

/// The interval at which the machine's addresses are checked, and files on filesystems that report no changes.
pub(super) const LOOK: Duration = Duration::from_secs(30);

/// The requests that came since the last round.
#[derive(Debug, Default)]
pub(super) struct Came {
    /// The first signal that ends the run.
    pub(super) stop: Option<Stop>,
    /// True after a SIGHUP.
    pub(super) reload: bool,
    /// True if something in a watched folder changed.
    pub(super) files: bool,
}

/// A run that serves.
pub(super) trait Serving {
    /// Returns the present time.
    fn now(&self) -> Instant;

    /// Waits for an event, one tick at most, and takes all that came.
    fn take_events(&mut self) -> Came;

    /// Notices a SIGHUP.
    fn begin_reload(&mut self);

    /// Returns true while a change must wait for an Envoy.
    fn defers_changes(&self) -> bool;

    /// Checks the files and applies a change. Returns true if another check is due soon.
    fn look(&mut self) -> bool;

    /// Looks after the children and everything else.
    fn tend(&mut self);
}

/// Serves until asked to stop. Returns how to stop.
pub(super) fn serve(run: &mut impl Serving) -> Stop {
    // The first check is due at once, because a file may have changed during the start.
    let mut settling = Debounce::default();
    settling.changed(run.now());
    let mut looked_at = run.now();
    loop {
        let came = run.take_events();
        if let Some(stop) = came.stop {
            return stop;
        }
        if came.reload {
            run.begin_reload();
        }
        if came.reload || came.files {
            settling.changed(run.now());
        }
        let now = run.now();
        let due = settling.is_due(now) || now.saturating_duration_since(looked_at) >= LOOK;
        if due && !run.defers_changes() {
            let again = run.look();
            settling.looked();
            looked_at = run.now();
            if again {
                settling.changed(looked_at);
            }
        }
        run.tend();
    }
}

/// The Envoy of a run that drains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EnvoyNow {
    /// Another one takes over. Until it is ready, none of the two takes orders.
    TakesOver,
    /// It takes orders.
    Serves,
    /// It has just ended.
    Ended,
    /// There is none.
    Gone,
}

/// A run that drains.
pub(super) trait Draining {
    /// Returns the present time.
    fn now(&self) -> Instant;

    /// Returns the state of Envoy.
    fn envoy(&mut self) -> EnvoyNow;

    /// Notices the end of a takeover.
    fn tend_takeover(&mut self);

    /// Makes Envoy end each connection after its present response. Returns false if it does not respond.
    fn announce(&mut self) -> bool;

    /// Returns what is under way. None while Envoy does not respond.
    fn under_way(&mut self) -> Option<UnderWay>;

    /// Closes the listeners.
    fn close(&mut self);

    /// Looks after everything but Envoy.
    fn tend_others(&mut self);

    /// Waits for an event, one tick at most. Returns true if a signal asks to stop.
    fn is_asked_to_stop(&mut self) -> bool;
}

/// The end of a drain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DrainEnd {
    /// Its time is over, or nothing is under way.
    Over(Ending),
    /// Envoy has ended.
    EnvoyEnded,
    /// There was no Envoy.
    NoEnvoy,
    /// A second signal came.
    Interrupted,
}

/// Serves on for `drain.wait`, accepts no more connections, and waits until nothing is under way, or for `drain.time`. A
/// second signal ends it at once.
pub(super) fn drain(run: &mut impl Draining, mut drain: Drain) -> DrainEnd {
    let mut announced = false;
    loop {
        run.tend_others();
        match run.envoy() {
            // A successor that hangs must not make the drain longer.
            EnvoyNow::TakesOver => match drain.over(run.now()) {
                Some(ending) => return DrainEnd::Over(ending),
                None => run.tend_takeover(),
            },
            EnvoyNow::Ended => return DrainEnd::EnvoyEnded,
            EnvoyNow::Gone => return DrainEnd::NoEnvoy,
            EnvoyNow::Serves => {
                announced = announced || run.announce();
                match drain.next(run.now(), || run.under_way()) {
                    DrainStep::Serve | DrainStep::Await => {}
                    DrainStep::Close => run.close(),
                    DrainStep::End(ending) => return DrainEnd::Over(ending),
                }
            }
        }
        // No change of the files applies any more.
        if run.is_asked_to_stop() {
            return DrainEnd::Interrupted;
        }
    }
}
