//! What is happening? The facts about a run and its traffic, for `longhaul status`, `log`, `measure` and the status page.
//!
//! | module | answers |
//! |---|---|
//! | [`report`] | what a run says of itself, and where its report is |
//! | [`status`] | the state of a run: its report with the counters of Envoy and CoreDNS, and every problem in it |
//! | [`access_log`] | what Envoy's access log says of a request, in words and in sums |
//! | [`bill`] | the bytes of groups of clients, and of clients and sites, over the link of a pair |
//! | [`measure`] | the link, from the connections of the kernel |
//! | [`history`] | the configurations that a box had, and how it was with each |
//! | [`why`] | the part of a request's way that costs the time |
//! | [`compare`] | the times of clients that pass untouched beside those that Longhaul serves |
//!
//! The texts for a terminal stand beside the values, in [columns](table()).
//!
//! Nothing here starts a process or writes a file.

pub mod access_log;
pub mod bill;
pub mod compare;
mod disk;
mod endpoint;
mod histogram;
pub mod history;
pub mod measure;
mod open_files;
pub mod report;
mod scrape;
pub mod status;
mod table;
mod unix_http;
pub mod why;

pub(crate) use endpoint::serves;
pub use {
    disk::Disk,
    endpoint::Endpoint,
    open_files::OpenFiles,
    scrape::Scrape,
    table::{rows, table},
    unix_http::NoPage,
};
