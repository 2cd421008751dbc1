//! Runs the proxy: starts processes from checked settings, and applies changes without cutting connections.
//!
//! One thread owns everything (`supervisor`). Signals, changed files and dead children reach it as events, so it
//! handles one at a time. Its effects on the outside world stand in files of their own.

mod apply;
mod bound;
mod challenges;
mod child;
mod compare_watch;
mod debounce;
mod diagnosis;
mod disk_space;
mod dns_report;
mod drain;
mod endpoint;
mod envoy;
mod error;
mod events;
mod generation;
mod health;
mod held_connections;
mod here;
mod image_program;
mod known_addresses;
mod lineage;
mod link_watch;
mod locate;
mod log;
mod metrics_page;
mod notify;
mod open_files;
mod page_server;
mod ports;
mod preflight;
mod private;
mod probe;
mod report;
mod resolvers;
mod service;
mod set_up;
mod shared_memory;
mod start;
mod state;
mod status_page;
mod stop;
mod supervisor;
mod tree;
mod watches;

pub use bound::{end_with, exec_bound_to_parent};
pub use generation::GenerateError;
pub use locate::{FilterPaths, LocateError, Located, Overridden, locate};
pub use log::{Form, Level, Outcome, PageLoad, PageReport};

pub use dns_report::{DnsReport, ResolverReport};
pub use endpoint::Endpoint;
pub use error::RunError;
pub use here::{Fact, Weight, facts};
pub use open_files::OpenFiles;
pub use ports::PortError;
pub use report::{ChildReport, NoRun, Refusal, RunReport, Sockets, find};
pub use set_up::{CacheReport, CertificateReport, LinkReport, SetUp};
pub use state::StateError;
pub use status_page::StatusPages;
pub use supervisor::{Options, run};
pub use tree::{WriteError, Written, write_tree};

pub(crate) use bound::{BOUND_COMMAND, COMPANION_COMMAND};
pub(crate) use disk_space::free as free_disk;
pub(crate) use endpoint::page_at;
pub(crate) use generation::{Generation, RunContext};
pub(crate) use locate::{filters, local_addresses, trusted_ca};
pub(crate) use log::{flush, say, start};
pub(crate) use probe::serves;
