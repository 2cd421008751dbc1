//! The account of a page for the access log: a few fields in the stream's filter state, under Longhaul's own names.
//!
//! Only a page that ended has an account, because Envoy logs before the filter learns that a client has disconnected.

use std::fmt::Write as _;

use filter_host::property;
use url_rewriting::{BailOut, UrlCounts};

/// Filter state `wasm.longhaul_*` of the access log's format (`envoy-config/render/templates/part/access_log.yaml.j2`).
const MOVED: &str = "longhaul_moved";
const LEFT: &str = "longhaul_left";
const BAIL_OUT: &str = "longhaul_bail_out";
const PAGE_BYTES: &str = "longhaul_page_bytes";
const HOSTS_SAVED: &str = "longhaul_hosts_saved";
const ROUND_TRIPS_SAVED: &str = "longhaul_round_trips_saved";
const LINK_BYTES_SAVED: &str = "longhaul_link_bytes_saved";

/// Writes the account of one page to its stream's filter state. `page_bytes` counts the decompressed bytes. An error
/// here only omits a field of the log.
pub(crate) fn leave(tally: &UrlCounts, bail_out: Option<BailOut>, page_bytes: u64) {
    let savings = tally.savings();
    let numbers = [
        (MOVED, tally.moved),
        (PAGE_BYTES, page_bytes),
        (HOSTS_SAVED, savings.hosts),
        (ROUND_TRIPS_SAVED, savings.round_trips),
        (LINK_BYTES_SAVED, savings.bytes),
    ];
    for (name, number) in numbers {
        let _ = property::set(name, number.to_string().as_bytes());
    }
    let left = left(tally);
    if !left.is_empty() {
        let _ = property::set(LEFT, left.as_bytes());
    }
    if let Some(cause) = bail_out {
        let _ = property::set(BAIL_OUT, cause.as_str().as_bytes());
    }
}

/// Returns the counts by reason, for example `csp=2 document=31`. A reason is one word, and [`url_mapping::Reason`]
/// bounds their number.
fn left(tally: &UrlCounts) -> String {
    let mut text = String::new();
    for (reason, count) in tally.left() {
        let space = if text.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{space}{reason}={count}");
    }
    text
}
