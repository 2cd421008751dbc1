//! A small HTTP server for read-only pages about a run.
//!
//! `server` holds the connections and their limits. `respond` has the rules for one request. `host_name` decides under
//! which names a browser may ask. The pages come from outside.

mod host_name;
mod respond;
mod server;

pub(crate) use host_name::HostPolicy;
pub(crate) use respond::Resource;
pub(crate) use respond::{Pages, Site};
pub(crate) use server::Server;
