//! One impairment a file. Each is a small value that says what it does to *one* packet; the order in which a packet meets
//! them is [`crate::direction`]'s business.

pub mod burst_loss;
pub mod delay;
pub mod duplication;
pub mod jitter;
pub mod outage;
pub mod queue;
pub mod random_loss;
pub mod rate;
pub mod reordering;
