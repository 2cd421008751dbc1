//! Bounds the number of new names that one client may make the proxy look up.
//!
//! Envoy keeps a bounded table of the names that it looked up. A full table refuses every new name of every client. So
//! a new name takes a token from the budget of the requesting client. A client without a token is refused. A token pays
//! for the name for [`limits::PERIOD`], for every client.
//!
//! | module | job |
//! |---|---|
//! | [`budget`] | the outcome of a request: known, new or refused |
//! | [`client`] | owners of budgets |
//! | [`name`] | the name that Envoy looks up for a request |
//! | [`config`] | the size of a budget |
//!
//! The crate is pure: it knows neither Envoy nor time. A [`shared_board::Board`] stands for the values that all workers
//! share.

pub mod budget;
pub mod client;
pub mod config;
pub mod name;

pub use budget::{Budgets, Outcome, Reason};
pub use client::Client;
pub use config::Config;
pub use name::Name;

/// Header fields between Longhaul's own hops. None reaches a client or an origin.
pub mod marks {
    /// On a request: the address of the client, or `self` for a request of Longhaul itself.
    pub const CLIENT: &str = "x-longhaul-client";
    /// On a request: the scheme of the request to the origin.
    pub const SCHEME: &str = "x-longhaul-scheme";
    /// On a connection that is passed on unread: the name and port, if the authority cannot have them.
    pub const NAME: &str = "x-longhaul-name";
    /// On a connection that is passed on unread: the address and port that the client dialled.
    pub const DIALLED: &str = "x-longhaul-dialled";
    /// On a connection that is passed on unread: the number of the attempt. The first one goes to [`DIALLED`].
    pub const ATTEMPT: &str = "x-longhaul-attempt";
}

/// Every bound, by name.
pub mod limits {
    use std::time::Duration;

    /// The time for which a token pays for a name, and in which an empty budget becomes full. Envoy removes a name
    /// after the same time without a request (`host_ttl`).
    pub const PERIOD: Duration = Duration::from_mins(1);
    /// Names that Envoy's table holds (`max_hosts` of `envoy-config/render/templates/part/dns_cache.yaml.j2`).
    pub const TABLE: u32 = 4096;
    /// The smallest budget: a page with many third parties must pass.
    pub const LEAST: u32 = 64;
    /// The largest budget. A name leaves the table at most two periods after somebody paid for it. In two periods a
    /// client spends at most three budgets: a full one at once, and two that it gains.
    pub const MOST: u32 = 1300;
    /// The budget of a client unless the operator sets another. Longhaul's own requests have a budget of the same size.
    /// Both together leave room in the table.
    pub const DEFAULT: u32 = 600;
    const _: () = assert!(3 * MOST < TABLE && 2 * 3 * DEFAULT < TABLE);
    /// Buckets of names that are paid for. With [`BUCKET_ENTRIES`] of 16 bytes each, the entries take at most 256 KiB.
    pub const NAME_BUCKETS: u64 = 2048;
    /// Buckets of clients whose budget is not full.
    pub const CLIENT_BUCKETS: u64 = 1024;
    /// Names or clients in one bucket. The entry that ends first makes room.
    pub const BUCKET_ENTRIES: usize = 8;
}
