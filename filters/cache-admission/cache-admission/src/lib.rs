//! Decides which requests may enter Envoy's `cache_v2`.
//!
//! `cache_v2` has no back pressure for a response that it does not store. Such a body enters the memory at the origin's
//! speed, regardless of the client's speed. The headers of a response show if it may be stored, but requests enter the
//! cache before that. So admission is earned: a request enters the cache only if an earlier response showed that the
//! next one is storable and bounded. A judge behind the cache catches an origin that has changed its mind.
//!
//! | module | job |
//! |---|---|
//! | [`request`] | the way of a request, and the reason for it |
//! | [`plain`] | request fields that do not keep a request from the cache |
//! | [`lesson`] | learning from responses, and removing our own fields from them |
//! | [`judge`] | the decision if the cache may have a response, between the cache and the origin |
//! | [`edit`] | changes to header lists |
//! | [`table`] | state that all workers share, bounded |
//! | [`config`] | the positions of the filter, and the rules of admission |
//!
//! The crate is pure: it knows neither Envoy nor time. A [`shared_board::Board`] stands for the values that all workers
//! share.

pub mod config;
pub mod judge;
pub mod lesson;
pub mod plain;
pub mod request;
pub mod table;

pub use config::{Admit, Config, Position, Rules};
pub use plain::PlainField;
pub use table::{Known, Table, Url};

/// Header fields between Longhaul's own hops. None reaches a client or an origin.
pub mod marks {
    use http_semantics::Fields;

    /// On a request: its way, `hit` or `fill`. A request without it bypasses the cache.
    pub const WAY: &str = "x-longhaul-cache";
    /// On a request that fills the cache: a stored response needs validation. The value is `=` and
    /// the client's own `Cache-Control`, or `1`.
    pub const ANEW: &str = "x-longhaul-anew";

    /// Returns the value of [`ANEW`]: `=` and the client's own `Cache-Control`, which thus bypasses the cache. Without
    /// such a field, returns `1`.
    pub(crate) fn anew(fields: &Fields<'_>) -> Vec<u8> {
        let said: Vec<&[u8]> = fields.all("cache-control").collect();
        if said.is_empty() { b"1".to_vec() } else { [&b"="[..], &said.join(&b", "[..])].concat() }
    }

    /// On a request that the cache may see, of a client that does not accept gzip: the `Accept-Encoding` for the origin,
    /// or `-` for none. The field itself says `gzip` then, so that the filter behind the cache compresses what the cache
    /// stores.
    pub const ACCEPT: &str = "x-longhaul-accept";

    /// Returns the value of [`ACCEPT`] for an `Accept-Encoding`.
    pub(crate) fn accept(heard: Option<&'static str>) -> Vec<u8> {
        heard.unwrap_or("-").into()
    }

    /// On a request behind the cache: the judge reads its response. The value names the sender of the request.
    pub const JUDGE: &str = "x-longhaul-judge";
    /// On a response of the judge. `cut`: the hop in front must repeat the request past the cache. `passed`: not to be
    /// stored. `vary`: likewise, and the judge added the `Vary`.
    pub const VERDICT: &str = "x-longhaul-uncached";
    /// On a response from the cache: the `Age` of the origin, which `cache_v2` drops on a miss.
    pub const AGE: &str = "x-longhaul-age";
    /// On a response from the cache: the outer hop decompresses the body, because the client does not accept gzip.
    pub const UNPACK: &str = "x-longhaul-unpack";
    /// On a response that came through the cache of the hop `fetch`.
    pub const STORED: &str = "x-longhaul-stored";
}

/// Every bound, by name.
pub mod limits {
    /// Buckets of the table. With [`BUCKET_ENTRIES`] of 13 bytes each and a name, the table takes less than 3 MiB.
    pub const BUCKETS: u64 = 16_384;
    /// URLs of one bucket. The oldest makes room.
    pub const BUCKET_ENTRIES: usize = 4;
    /// Seconds for which a fetch by Longhaul itself counts as under way.
    pub const COMING_S: u32 = 30;
    /// A response that may not be stored passes the judge anyway up to this length, in bytes. It bounds the memory that
    /// such a response can take.
    pub const PASSED_BYTES: u64 = 256 * 1024;
    /// Bytes that one worker gives the cache at once. It bounds the memory that a slow disk can cost.
    pub const BURST_BYTES: u64 = 32 * 1024 * 1024;
    /// Bytes per second that one worker gives the cache in the long run.
    pub const STEADY_BYTES_PER_S: u64 = 32 * 1024 * 1024;
    /// Bytes that a body of unknown length takes from the budget before it begins.
    pub const UNKNOWN_BYTES: u64 = 256 * 1024;
}
