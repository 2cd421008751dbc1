//! Real-time scheduling of the event loop, so that packets are on time on a busy machine.
//!
//! The emulator shares a few cores with a browser and a proxy that use all the CPU time they get. Without a real-time
//! priority a packet waits behind them, for tens of milliseconds in the worst case (measured: README). The link is then
//! slower than its profile says. The loop sleeps whenever no packet is due, and the kernel denies real-time threads 5 %
//! of the time.

use nix::sys::mman::{MlockAllFlags, mlockall};
use serde::Serialize;
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

/// Scheduling class of the event loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduling {
    /// First in, first out, before every ordinary thread.
    RealTime,
    /// Like every other thread, because the system refused a real-time priority. Look at the lateness.
    Ordinary,
}

/// A real-time rank. Both go before all ordinary threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// The link, which goes before the threads that measure it.
    Link,
    /// A thread that measures the link from outside. An ordinary thread would measure the scheduler instead.
    Measuring,
}

/// Gives the calling thread a real-time priority and locks the process in memory, as far as the system allows.
pub fn be_prompt(rank: Rank) -> Scheduling {
    // A refusal is harmless: without swap, as in most test beds, a page fault costs only microseconds.
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
