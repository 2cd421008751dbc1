//! Why is it slow? The part of a new request's time that each part of its way takes, and the parts that take too much.
//!
//! ```text
//! Envoy's and CoreDNS's counters ─► Reading ─┐
//!                                            ├─► Sampler ─► Measured ─► explain ─► Why
//! the kernel's figures of connections ───────┘                 ▲
//!                                          the ground's figures┘ (at a remote, over the pipe)
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `reading` | the counters of one moment |
//! | `sampler` | the readings of the last minute |
//! | `measured` | the figures of that minute |
//! | `limits` | the table of the limits beyond which a part is a cause, with their reasons |
//! | `finding` | the types of the result |
//! | `causes` | the arithmetic: figures in, parts and causes out |
//! | `words` | the evidence, the advice and the text |
//! | `meter` | all of these for a run |
//! | `hour` | the use of the link in the last hour, and the savings of today |

mod causes;
mod finding;
mod hour;
mod limits;
mod measured;
mod meter;
mod reading;
mod sampler;
#[cfg(test)]
mod tests;
mod words;

#[cfg(test)]
pub(crate) use reading::PASSED_THROUGH;
pub(crate) use reading::passes_through;
pub(crate) use {
    causes::explain,
    finding::{Cause, Verdict, Way, Why},
    hour::{Crossed, Minute, Today},
    measured::Timed,
    reading::Saved,
};
pub use {
    measured::{CostReport, Measured},
    meter::Meter,
    reading::Reading,
};
