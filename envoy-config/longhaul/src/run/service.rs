//! A child that is restarted when it dies, with longer waits while it keeps dying.

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Instant;

use longhaul_observe::report::ChildReport;
use rustix::process::Signal;

use super::child::{self, Deaths, Program, Running};
use super::log::Level;
use super::probe::is_ready;
use super::restarts::Restarts;
use super::say;

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
    restarts: Restarts,
    deaths: Deaths,
}

impl Service {
    pub(super) fn new(program: Program, ready: Ready) -> Self {
        Self { program, ready, running: None, restarts: Restarts::new(), deaths: Deaths::default() }
    }

    /// A program that [`Self::tend`] starts at once.
    pub(super) fn due(program: Program, ready: Ready) -> Self {
        Self { restarts: Restarts::due(Instant::now()), ..Self::new(program, ready) }
    }

    pub(super) fn start(&mut self) -> io::Result<()> {
        self.running = Some(Running::start(&self.program)?);
        self.restarts.settled();
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
        if self.restarts.is_due(Instant::now())
            && let Err(error) = self.start()
        {
            let wait = self.restarts.could_not_start(Instant::now());
            say(
                Level::Error,
                &format!("cannot start {}: {error}; trying again in {} ms", self.program.name, wait.as_millis()),
            );
        }
        let Self { restarts, running, ready, .. } = self;
        if restarts.has_recovered(|| running.is_some() && ready.responds()) {
            say(Level::Info, &format!("{} responds again", self.program.name));
        }
    }

    fn died(&mut self, status: ExitStatus) {
        let Some(running) = self.running.take() else { return };
        let wait = self.restarts.died(running.started.elapsed(), Instant::now());
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
    }

    /// Returns its process, if one runs.
    pub(super) fn pid(&self) -> Option<u32> {
        self.running.as_ref().map(Running::pid)
    }

    /// Returns the number of its deaths.
    pub(super) fn deaths(&self) -> u32 {
        self.deaths.count()
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
        self.restarts.settled();
        self.running.take()
    }
}
