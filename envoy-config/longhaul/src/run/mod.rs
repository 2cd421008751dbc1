//! Runs the proxy: starts processes from checked settings, and applies changes without cutting connections.
//!
//! One thread owns everything (`supervisor`). Signals, changed files and dead children reach it as events, so it
//! handles one at a time. Its effects on the outside world stand in files of their own.

mod acceptance;
mod access_log;
mod accounts;
mod apply;
mod bound;
mod cache_fit;
mod cache_name;
mod challenges;
mod child;
mod client_names;
mod clients;
mod clock;
mod compare_watch;
mod costs;
mod debounce;
mod diagnosis;
mod disk_space;
mod drain;
mod ending;
mod engine;
mod envoy;
mod error;
mod events;
mod exchange;
mod former_cache;
mod generation;
mod ground_reports;
mod health;
mod held_connections;
mod here;
mod history;
mod joined_pages;
mod known_addresses;
mod lineage;
mod link_watch;
mod links_here;
mod links_in_use;
mod locate;
mod log;
mod lost_connections;
mod metrics_page;
mod notices;
mod notify;
mod page_server;
mod pipe_question;
mod ports;
mod preflight;
mod private;
mod probe;
mod problem_log;
mod problem_watch;
mod publisher;
mod rate_watch;
mod remote_reports;
mod resolvers;
mod restarts;
mod rounds;
mod service;
mod service_user;
mod shared_memory;
mod shifts;
mod side_program;
mod silence_watch;
#[cfg(test)]
mod simulation;
mod start;
mod state;
mod status_page;
mod stop;
mod supervisor;
mod taken_range;
mod takeover;
mod tree;
mod watch_thread;
mod watches;

pub(crate) use access_log::{Destination, SERVICE_FOLDER};
pub(crate) use bound::{end_with, exec_bound_to_parent};
pub(crate) use locate::Overridden;
pub(crate) use log::{Form, Level};

pub(crate) use error::RunError;
pub(crate) use here::{Fact, OwnSocket, SocketHolder, Weight, engine_here, facts, own_sockets};
pub(crate) use supervisor::{Options, run};
pub(crate) use tree::write_tree;

pub(crate) use bound::{BOUND_COMMAND, COMPANION_COMMAND};
pub(crate) use generation::{Generation, RunContext};
pub(crate) use locate::{filters, local_addresses, native_place, trusted_ca};
pub(crate) use log::{flush, say, start};
