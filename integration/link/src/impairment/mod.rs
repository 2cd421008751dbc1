//! The impairments, one file each. Each is a small value that decides the fate of *one* packet. [`crate::direction`]
//! defines the order in which a packet meets them.

pub mod burst_loss;
pub mod delay;
pub mod duplication;
pub mod fair_queue;
pub mod handover;
pub mod jitter;
pub mod levels;
pub mod outage;
pub mod queue;
pub mod random_loss;
pub mod rate;
pub mod reordering;
