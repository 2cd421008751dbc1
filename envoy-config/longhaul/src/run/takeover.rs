//! Carries the steps of a lineage out, in the order in which no serving process is lost. The processes themselves are
//! behind a trait: those of this machine are in `envoy.rs`.

use std::io;
use std::time::{Duration, Instant};

use super::lineage::{Id, Lineage, Loss, ProcessStep};

/// The processes of a lineage.
pub(super) trait Processes {
    /// The configuration that a process is started with.
    type Configuration;

    /// Returns the present time. Some queries take time.
    fn now(&self) -> Instant;

    /// Returns their lineage.
    fn lineage(&mut self) -> &mut Lineage;

    /// Returns the processes that have ended, and how.
    fn those_that_ended(&mut self) -> Vec<(Id, String)>;

    /// Returns true if the process serves. During a takeover its parent responds at the same socket, so the epoch
    /// decides.
    fn serves(&mut self, id: Id, epoch: u32) -> bool;

    /// Returns true if a successor that has died had taken over the sockets. Its parent then accepts no connections any
    /// more.
    fn took_over(&mut self, present: &Self::Configuration) -> bool;

    /// Returns true if the process that takes over has not yet told its parent to drain, or if that is not known.
    fn says_starting(&mut self) -> bool;

    /// Returns the time in which the predecessor of a process may finish its connections.
    fn drain_of(&self, id: Id) -> Duration;

    /// Notices that a process is ready.
    fn responds(&mut self);

    /// Starts the first process of a line.
    fn begin(&mut self, id: Id, present: &Self::Configuration) -> io::Result<()>;

    /// Starts a process that takes over the sockets of the present one.
    fn succeed(&mut self, id: Id, epoch: u32, present: &Self::Configuration) -> io::Result<()>;

    /// Asks a process to end.
    fn terminate(&mut self, id: Id);

    /// Ends a process at once.
    fn kill(&mut self, id: Id);

    /// Forgets a process that has ended. Returns its number, or None if it is not known.
    fn forget(&mut self, id: Id) -> Option<u32>;

    /// Reports the end of a process.
    fn report_end(&mut self, pid: u32, how: &str, loss: Loss);

    /// Reports that a process could not be started.
    fn report_no_start(&mut self, error: &io::Error, loss: Loss);
}

/// Notices processes that are ready or have ended, and takes the next steps. Call it often. `patience` is that of
/// [`Lineage::next`].
pub(super) fn tend<P: Processes>(processes: &mut P, present: &P::Configuration, patience: Duration) {
    // Deaths are collected first. A successor that is ready now survived the death of its parent.
    let ended = processes.those_that_ended();
    for (id, epoch) in processes.lineage().unready() {
        if processes.serves(id, epoch) {
            is_ready(processes, id);
            processes.responds();
        }
    }
    for (id, how) in ended {
        if processes.lineage().successor() == Some(id) && processes.took_over(present) {
            is_ready(processes, id);
        }
        bury(processes, id, &how);
    }
    loop {
        let now = processes.now();
        let Some(step) = processes.lineage().next(now, patience) else { break };
        take(processes, step, present);
    }
}

fn is_ready(processes: &mut impl Processes, id: Id) {
    let (now, drain) = (processes.now(), processes.drain_of(id));
    processes.lineage().ready(id, now, drain);
}

fn take<P: Processes>(processes: &mut P, step: ProcessStep, present: &P::Configuration) {
    let (id, started) = match step {
        ProcessStep::Begin(id) => (id, processes.begin(id, present)),
        ProcessStep::Succeed { id, epoch } => (id, processes.succeed(id, epoch, present)),
        ProcessStep::Terminate(id) => return processes.terminate(id),
        ProcessStep::Kill(id) => {
            // A parent that has drained has died, before its busy successor responded. The successor serves. If it does
            // not, it aborts.
            let lineage = processes.lineage();
            let is_orphan = lineage.present().is_none() && lineage.successor() == Some(id);
            if is_orphan && !processes.says_starting() {
                return is_ready(processes, id);
            }
            processes.kill(id);
            return bury(processes, id, "did not become ready and was killed");
        }
    };
    if let Err(error) = started {
        let now = processes.now();
        let loss = processes.lineage().ended(id, now);
        processes.report_no_start(&error, loss);
    }
}

fn bury(processes: &mut impl Processes, id: Id, how: &str) {
    let Some(pid) = processes.forget(id) else { return };
    let now = processes.now();
    let loss = processes.lineage().ended(id, now);
    processes.report_end(pid, how, loss);
}
