//! A child that is restarted when it dies, with longer waits while it keeps dying.

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use longhaul_observe::report::ChildReport;
use rustix::process::Signal;

use super::child::{self, Deaths, Program, Running};
use super::log::Level;
use super::probe::is_ready;
use super::say;

/// The waits between restarts. They double from the first to the longest, and start over after a long life.
#[derive(Debug)]
pub(super) struct BackOff {
    next: Duration,
}

const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The lifetime after which a death no longer counts as a failed start.
const GOOD_WHILE: Duration = Duration::from_secs(30);

impl BackOff {
    pub(super) fn new() -> Self {
        Self { next: FIRST_WAIT }
    }

    /// Returns the wait after a child that lived for `lifetime`.
    pub(super) fn after(&mut self, lifetime: Duration) -> Duration {
        if lifetime >= GOOD_WHILE {
            self.next = FIRST_WAIT;
        }
        let wait = self.next;
        self.next = (wait * 2).min(LONGEST_WAIT);
        wait
    }
}

/// The way in which a program shows that it is ready.
#[derive(Debug)]
pub(super) enum Ready {
    /// It reports so on this socket, over HTTP.
    Http(SocketAddr),
    /// It accepts connections on this Unix socket.
    Socket(PathBuf),
}

impl Ready {
    fn responds(&self) -> bool {
        match self {
            Self::Http(socket) => is_ready(*socket),
            Self::Socket(path) => UnixStream::connect(path).is_ok(),
        }
    }
}

/// A program to keep running, and its present process.
#[derive(Debug)]
pub(super) struct Service {
    program: Program,
    ready: Ready,
    running: Option<Running>,
    back_off: BackOff,
    restart_at: Option<Instant>,
    /// True from its death until it responds again.
    recovering: bool,
    deaths: Deaths,
}

impl Service {
    pub(super) fn new(program: Program, ready: Ready) -> Self {
        Self {
            program,
            ready,
            running: None,
            back_off: BackOff::new(),
            restart_at: None,
            recovering: false,
            deaths: Deaths::default(),
        }
    }

    /// A program that [`Self::tend`] starts at once.
    pub(super) fn due(program: Program, ready: Ready) -> Self {
        Self { restart_at: Some(Instant::now()), ..Self::new(program, ready) }
    }

    pub(super) fn start(&mut self) -> io::Result<()> {
        self.running = Some(Running::start(&self.program)?);
        self.restart_at = None;
        Ok(())
    }

    /// Returns how its process ended. None while it runs, and once [`Self::tend`] has noticed the end.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.running.as_mut().and_then(Running::ended)
    }

    /// Notices a death, restarts the program when its wait is over, and reports when it responds. Call it often.
    pub(super) fn tend(&mut self) {
        if let Some(status) = self.ended() {
            self.died(status);
        }
        if self.restart_at.is_some_and(|at| Instant::now() >= at)
            && let Err(error) = self.start()
        {
            let wait = self.back_off.after(Duration::ZERO);
            say(
                Level::Error,
                &format!("cannot start {}: {error}; trying again in {} ms", self.program.name, wait.as_millis()),
            );
            self.restart_at = Some(Instant::now() + wait);
        }
        if self.recovering && self.running.is_some() && self.responds() {
            self.recovering = false;
            say(Level::Info, &format!("{} responds again", self.program.name));
        }
    }

    fn died(&mut self, status: ExitStatus) {
        let Some(running) = self.running.take() else { return };
        let wait = self.back_off.after(running.started.elapsed());
        say(
            Level::Error,
            &format!(
                "{} (process {}) {}; starting it again in {} ms",
                running.name,
                running.pid(),
                child::describe(status),
                wait.as_millis()
            ),
        );
        self.deaths.add(child::describe(status));
        self.restart_at = Some(Instant::now() + wait);
        self.recovering = true;
    }

    /// Returns its process, if one runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(Running::pid)
    }

    /// Returns its state for `longhaul status`.
    pub(super) fn report(&self) -> ChildReport {
        Running::report(self.running.as_ref(), &self.deaths)
    }

    /// Returns true if it shows that it is ready.
    pub(super) fn responds(&self) -> bool {
        self.ready.responds()
    }

    /// Sets the socket on which it reports from now on that it is ready.
    pub(super) fn answers_at(&mut self, ready: SocketAddr) {
        self.ready = Ready::Http(ready);
    }

    pub(super) fn is_running(&mut self) -> bool {
        self.running.is_some() && self.ended().is_none()
    }

    /// Makes CoreDNS read its Corefile again, by SIGUSR1. CoreDNS keeps the old one if it refuses the new one.
    pub(super) fn reload(&self) {
        if let Some(running) = &self.running {
            running.signal(Signal::USR1);
        }
    }

    /// Asks the process to end, and gives it away. It is not restarted.
    pub(super) fn retire(&mut self) -> Option<Running> {
        self.take().inspect(|running| running.signal(Signal::TERM))
    }

    /// Gives away the process, so that the caller can stop it. It is not restarted.
    pub(super) fn take(&mut self) -> Option<Running> {
        self.restart_at = None;
        self.running.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_a_bound_and_start_over_after_a_good_while() {
        let mut back_off = BackOff::new();
        let waits: Vec<u128> = (0..9).map(|_| back_off.after(Duration::ZERO).as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(back_off.after(GOOD_WHILE), FIRST_WAIT);
    }
}
