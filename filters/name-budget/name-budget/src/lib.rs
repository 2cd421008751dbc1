//! How many new names one client may make the proxy look up.
//!
//! Envoy keeps a bounded table of the names that it looked up. A full table refuses every new name, whoever asks. So a new
//! name takes a token from the budget of the client that asks, and a client without a token is refused. A token pays for
//! the name for [`limits::PERIOD`], for everybody.
//!
//! | module | job |
//! |---|---|
//! | [`budget`] | known, new or refused |
//! | [`client`] | who asks |
//! | [`times`] | what all workers know, bounded |
//! | [`config`] | the size of a budget |
//!
//! The crate is pure: it knows neither Envoy nor time; a [`shared_board::Board`] stands for the values that all workers share.

pub mod budget;
pub mod client;
pub mod config;
pub mod times;

pub use budget::{Budgets, Name, Outcome, Reason};
pub use client::Client;
pub use config::Config;

/// Headers between our own hops. None reaches a client or an origin.
pub mod marks {
    /// On a request: the address of the client that asks, or `self` for a request of our own.
    pub const CLIENT: &str = "x-longhaul-client";
    /// On a request: the scheme that its origin is asked with.
    pub const SCHEME: &str = "x-longhaul-scheme";
}

/// Every bound, by name.
pub mod limits {
    use std::time::Duration;

    /// A token pays for a name for so long, and an empty budget is full again after so long. Envoy forgets a name that
    /// nobody asked for during the same time (`host_ttl`).
    pub const PERIOD: Duration = Duration::from_mins(1);
    /// Names that Envoy's table holds (`max_hosts` of `envoy-config/templates/part/dns_cache.yaml.j2`).
    pub const TABLE: u32 = 4096;
    /// The smallest budget: a page with many third parties must pass.
    pub const LEAST: u32 = 64;
    /// The largest budget. A client takes at most three times its budget of the table: a full budget at once, and two
    /// periods in which the names that it paid for leave the table.
    pub const MOST: u32 = 1300;
    /// The budget of a client unless the operator sets another. The budget of our own requests has the same size. Both
    /// together leave names in the table.
    pub const DEFAULT: u32 = 600;
    const _: () = assert!(3 * MOST < TABLE && 2 * 3 * DEFAULT < TABLE);
    /// Buckets of the names that are paid for. With [`BUCKET_ENTRIES`] of 16 bytes each, the names take about 0.5 MiB.
    pub const NAME_BUCKETS: u64 = 2048;
    /// Buckets of the clients that have used their budget in the last period.
    pub const CLIENT_BUCKETS: u64 = 1024;
    /// Names or clients of one bucket. The one that ends first makes room.
    pub const BUCKET_ENTRIES: usize = 8;
}
