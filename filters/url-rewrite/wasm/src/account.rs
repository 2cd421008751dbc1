//! What the access log is told about a page: a handful of words, left with the stream under names of ours.
//!
//! Only a page that came to its end has an account: Envoy logs before the filter hears that a client has left.

use std::fmt::Write as _;

use filter_host::property;
use url_rewriting::{BailOut, UrlCounts};

/// Filter state `wasm.longhaul_*` of the access log's format (`envoy-config/templates/part/access_log.yaml.j2`).
const MOVED: &str = "longhaul_moved";
const LEFT: &str = "longhaul_left";
const BAIL_OUT: &str = "longhaul_bail_out";
const PAGE_BYTES: &str = "longhaul_page_bytes";
const HOSTS_SAVED: &str = "longhaul_hosts_saved";
const ROUND_TRIPS_SAVED: &str = "longhaul_round_trips_saved";
const LINK_BYTES_SAVED: &str = "longhaul_link_bytes_saved";

/// Leaves the account of one page of `page_bytes`, unpacked, with its stream. A log that lacks a word is no reason to
/// trouble the page.
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

/// `csp=2 document=31`: a reason is one word, and there are as many as [`url_mapping::Reason`] has.
fn left(tally: &UrlCounts) -> String {
    let mut text = String::new();
    for (reason, count) in tally.left() {
        let space = if text.is_empty() { "" } else { " " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{space}{reason}={count}");
    }
    text
}
