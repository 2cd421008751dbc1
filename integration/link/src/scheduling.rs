//! Being on time on a busy machine.
//!
//! The packets of an experiment share a few cores with a browser and a proxy that would take all they can get. Without a
//! real-time priority a packet waits for its turn behind them, for tens of milliseconds at worst (measured: README), and
//! the link is slower than its profile says. The loop sleeps whenever no packet is due, and the kernel keeps 5 % of the
//! time from real-time threads.

use nix::sys::mman::{MlockAllFlags, mlockall};
use serde::Serialize;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
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

/// Who is prompt. Both go before everything ordinary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// The link: before those who measure it.
    Link,
    /// Whoever measures the link from outside; an ordinary thread would measure the scheduler.
    Measuring,
}

/// Gives the calling thread a real-time priority and keeps the process in memory, as far as the system allows.
pub fn be_prompt(rank: Rank) -> Scheduling {
    // A page fault costs microseconds here (there is no swap in a test bed worth the name): refusal is harmless.
    let _ = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE);
    let priority = match rank {
        Rank::Link => 10,
        Rank::Measuring => 5,
    };
    let first_in_first_out = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let granted = ThreadPriorityValue::try_from(priority).is_ok_and(|priority: ThreadPriorityValue| {
        let priority = ThreadPriority::Crossplatform(priority);
        set_thread_priority_and_policy(thread_native_id(), priority, first_in_first_out).is_ok()
    });
    if granted { Scheduling::RealTime } else { Scheduling::Ordinary }
}
