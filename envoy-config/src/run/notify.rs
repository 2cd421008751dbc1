//! Notifies the service manager (`sd_notify(3)`), where `NOTIFY_SOCKET` is set.
//!
//! The units rely on it: packet rules are loaded once `READY=1` was sent, so no client is sent to a closed listener.

use std::time::{Duration, Instant};

use sd_notify::{NotifyState, notify, watchdog_enabled};

/// The service manager, as far as this process knows it.
#[derive(Debug)]
pub(super) struct ServiceManager {
    /// Half of `WATCHDOG_USEC`; None: it does not watch.
    every: Option<Duration>,
    last_alive: Option<Instant>,
    status: String,
    reloading: bool,
}

impl ServiceManager {
    /// Reads the environment.
    pub(super) fn of_environment() -> Self {
        let every = watchdog_enabled().map(|time| time / 2);
        Self { every, last_alive: None, status: String::new(), reloading: false }
    }

    /// All listeners serve.
    pub(super) fn ready(&mut self, status: &str) {
        status.clone_into(&mut self.status);
        send(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    /// A change is being applied. Said once, until [`Self::reloaded`].
    pub(super) fn reloading(&mut self) {
        if std::mem::replace(&mut self.reloading, true) {
            return;
        }
        match NotifyState::monotonic_usec_now() {
            Ok(now) => send(&[NotifyState::Reloading, now]),
            // Without the time, systemd ends the service.
            Err(_) => self.reloading = false,
        }
    }

    /// The change is applied, or refused.
    pub(super) fn reloaded(&mut self) {
        if std::mem::take(&mut self.reloading) {
            send(&[NotifyState::Ready]);
        }
    }

    /// No listener accepts connections any more.
    pub(super) fn stopping(&mut self) {
        self.reloading = false;
        send(&[NotifyState::Stopping]);
    }

    /// To be called by the supervisor's loop: a loop that hangs stops saying that it is alive.
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

/// A service manager that cannot be reached is no reason to stop serving.
fn send(states: &[NotifyState<'_>]) {
    let _ = notify(states);
}
