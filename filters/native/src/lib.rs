//! Every filter as one dynamic module of Envoy: `longhaul_filters.so`. README.md describes it.
//!
//! | module | does |
//! |---|---|
//! | `abi` | the functions of Envoy, as safe calls |
//! | `hooks` | the functions that Envoy calls |
//! | `config` | one configuration of a filter, for all workers |
//! | `worker` | the filter of one worker, and its streams |
//! | `host` | the calls of filters, made to Envoy |
//! | `ways` | the ways of filters' own requests from the main thread to the workers |
//! | `door` | the filter that notes where the ways end |
//! | `outgoing` | a response that a filter gives |
//! | `confined` | the lock around a worker's filter |
//! | `board` | values that all workers see |
//! | `timer` | ticks |
//! | `share` | the shares of a link among its clients |
//! | `panics` | what a panic leaves behind |
//! | `filters` | the table of filters |

mod abi;
mod board;
mod config;
mod confined;
mod door;
#[cfg(test)]
mod fake;
mod filters;
mod hooks;
mod host;
mod outgoing;
mod panics;
mod share;
#[cfg(test)]
mod tests;
mod timer;
mod ways;
mod worker;
