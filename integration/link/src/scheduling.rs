//! Being on time on a busy machine.
//!
//! The packets of an experiment share two cores with a browser and a proxy that would take all they can get. Without a
//! real-time priority a packet waits for its turn behind them, for tens of milliseconds at worst (measured: README), and
//! the link is slower than its profile says. The priority is the lowest real-time one: enough to go before everything
//! ordinary. The loop sleeps whenever no packet is due, and the kernel keeps 5 % of the time from real-time threads.

use nix::sys::mman::{MlockAllFlags, mlockall};
use serde::Serialize;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// How the event loop is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// First in, first out, before every ordinary thread.
    RealTime,
    /// Like every other thread, because the system refused more: look at the lateness.
    Ordinary,
}

/// Gives the calling thread a real-time priority and keeps the process in memory, as far as the system allows.
pub fn be_prompt() -> Scheduling {
    // A page fault costs microseconds here (there is no swap in a test bed worth the name): refusal is harmless.
    let _ = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE);
    let first_in_first_out = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    match set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, first_in_first_out) {
        Ok(()) => Scheduling::RealTime,
        Err(_) => Scheduling::Ordinary,
    }
}
