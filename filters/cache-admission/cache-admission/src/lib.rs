//! Which requests may enter Envoy's `cache_v2`.
//!
//! `cache_v2` has no back pressure for a response that it does not store: such a body comes into memory at the origin's
//! speed, whatever the client's. Whether a response may be stored is known when its headers arrive; which requests enter
//! the cache is decided before. So admission is earned: a request enters the cache only where an earlier response showed
//! that the next one is storable and bounded, and a judge behind the cache catches an origin that has changed its mind.
//!
//! | module | job |
//! |---|---|
//! | [`request`] | the way of a request, and why |
//! | [`plain`] | request fields that keep no request from the cache |
//! | [`lesson`] | what a response teaches, and the headers that tidy up behind the cache |
//! | [`judge`] | whether the cache may have a response, between the cache and the origin |
//! | [`edit`] | changes to header lists |
//! | [`table`] | what all workers know, bounded |
//! | [`config`] | the position of a filter |
//!
//! The crate is pure: it knows neither Envoy nor time; a [`shared_board::Board`] stands for the values that all workers share.

pub mod config;
pub mod edit;
pub mod judge;
pub mod lesson;
pub mod plain;
pub mod request;
pub mod table;

pub use config::{Admit, Config, Position, Rules};
pub use edit::Edit;
pub use plain::PlainField;
pub use table::{Known, Table, Url};

/// Headers between our own hops. None reaches a client or an origin.
pub mod marks {
    use http_semantics::Fields;

    /// On a request: its way, `hit` or `fill`; a request without it passes the cache by.
    pub const WAY: &str = "x-longhaul-cache";
    /// On a request that fills: what may be stored already is asked for anew. Its value is [`anew`].
    pub const ANEW: &str = "x-longhaul-anew";

    /// The value of [`ANEW`]: it carries the client's own `Cache-Control` past the cache, behind a `=`.
    pub(crate) fn anew(fields: &Fields<'_>) -> Vec<u8> {
        let said: Vec<&[u8]> = fields.all("cache-control").collect();
        if said.is_empty() { b"1".to_vec() } else { [&b"="[..], &said.join(&b", "[..])].concat() }
    }

    /// On a request behind the cache: its response is judged.
    pub const JUDGE: &str = "x-longhaul-judge";
    /// On a response of the judge: `cut` (asked for again past the cache), or `passed` (not to be stored).
    pub const VERDICT: &str = "x-longhaul-uncached";
    /// On a response that the cache has: the `Age` of the origin, which `cache_v2` drops on a miss.
    pub const AGE: &str = "x-longhaul-age";
    /// On a response that came through the cache of the hop `fetch`.
    pub const STORED: &str = "x-longhaul-stored";
}

/// Every bound, by name.
pub mod limits {
    /// Buckets of the table. With [`BUCKET_ENTRIES`] of 14 bytes each and a name, the table takes less than 3 MiB.
    pub const BUCKETS: u64 = 16_384;
    /// URLs of one bucket; the oldest makes room.
    pub const BUCKET_ENTRIES: usize = 4;
    /// For so many seconds a fetch of our own is believed to be under way.
    pub const COMING_S: u32 = 30;
    /// A response that may not be stored passes the judge all the same up to this length: what one client can make the
    /// proxy hold.
    pub const PASSED_BYTES: u64 = 256 * 1024;
    /// Bytes that one worker gives the cache at once: what a slow disk can make the proxy hold.
    pub const BURST_BYTES: u64 = 32 * 1024 * 1024;
    /// Bytes a second that one worker gives the cache for long.
    pub const STEADY_BYTES_PER_S: u64 = 32 * 1024 * 1024;
    /// What a body of unknown length needs of the budget to begin with.
    pub const UNKNOWN_BYTES: u64 = 256 * 1024;
}
