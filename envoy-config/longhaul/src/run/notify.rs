//! Notifies the service manager (`sd_notify(3)`), if `NOTIFY_SOCKET` is set.
//!
//! The units rely on it: packet rules are loaded after `READY=1`, so that no client reaches a closed listener.

use std::time::{Duration, Instant};

use sd_notify::{NotifyState, notify, watchdog_enabled};

/// The service manager of this process.
#[derive(Debug)]
pub(super) struct ServiceManager {
    /// Half of `WATCHDOG_USEC`. None if the service has no watchdog.
    every: Option<Duration>,
    last_alive: Option<Instant>,
    status: String,
    reloading: bool,
}

impl ServiceManager {
    /// Reads the settings from the environment.
    pub(super) fn of_environment() -> Self {
        let every = watchdog_enabled().map(|time| time / 2);
        Self { every, last_alive: None, status: String::new(), reloading: false }
    }

    /// Reports that the start goes on, for at most `patience`. A unit with a shorter `TimeoutStartSec` waits as long.
    #[allow(clippy::unused_self, reason = "a notice goes to the manager")]
    pub(super) fn starting(&self, patience: Duration) {
        send(&[NotifyState::ExtendTimeoutUsec(u32::try_from(patience.as_micros()).unwrap_or(u32::MAX))]);
    }

    /// Reports that all listeners serve.
    pub(super) fn ready(&mut self, status: &str) {
        status.clone_into(&mut self.status);
        send(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// Reports that a change is being applied, once until [`Self::reloaded`].
    pub(super) fn reloading(&mut self) {
        if std::mem::replace(&mut self.reloading, true) {
            return;
        }
        match NotifyState::monotonic_usec_now() {
            Ok(now) => send(&[NotifyState::Reloading, now]),
            // systemd ends a service that sends this message without the time.
            Err(_) => self.reloading = false,
        }
    }

    /// Reports that the change is applied or refused.
    pub(super) fn reloaded(&mut self) {
        if std::mem::take(&mut self.reloading) {
            send(&[NotifyState::Ready]);
        }
    }

    /// Reports that the service ends, within `patience`. A unit with a shorter `TimeoutStopSec` waits as long.
    pub(super) fn stopping(&mut self, patience: Duration) {
        self.reloading = false;
        let micros = u32::try_from(patience.as_micros()).unwrap_or(u32::MAX);
        send(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(micros)]);
    }

    /// Sends the watchdog message when it is due. The supervisor's loop calls it, so a loop that hangs stops sending.
    pub(super) fn alive(&mut self, status: &str) {
        if self.status != status {
            status.clone_into(&mut self.status);
            send(&[NotifyState::Status(status)]);
        }
        let due = |every: &Duration| self.last_alive.is_none_or(|last| last.elapsed() >= *every);
        if self.every.as_ref().is_some_and(due) {
            self.last_alive = Some(Instant::now());
            send(&[NotifyState::Watchdog]);
        }
    }
}

/// Ignores errors: a service manager that cannot be reached is no reason to stop serving.
fn send(states: &[NotifyState<'_>]) {
    let _ = notify(states);
}
