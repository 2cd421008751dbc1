//! Fetches a page's moved objects into the cache while the page streams by. The browser's requests arrive a round trip of
//! the slow link later and find them cached. Pure.
//!
//! This crate decides which objects to fetch, in what order and with which headers. The filter sends the requests that
//! [`Fetcher::next`] returns, and reports each result. The browser is about to send the same requests, with the same URL
//! and headers. So an origin sees nothing that it would not see a moment later.
//!
//! It implements the trait [`Observer`](url_rewriting::Observer) of `url-rewriting`, which does not depend on this crate.
//!
//! | module | job |
//! |---|---|
//! | `template` | the headers of the page's request that the requests for its objects repeat |
//! | `observer` | the moved objects of a page that the browser is certain to want |
//! | `fetcher` | order and bounds of the fetches of one worker |
//! | `memory` | facts that a worker learned about objects: bounded, and forgotten with age |
//! | `true_url` | the true URL of a moved object |

use http_semantics::labels::labelled;

mod fetcher;
mod memory;
mod observer;
mod template;
mod true_url;

pub use fetcher::{Ended, Fetcher, Order};
pub use observer::{Candidate, Candidates, PrefetchObserver};
pub use template::RequestTemplate;

/// Every bound of prefetching, by name.
mod limits {
    /// Objects of one page. A browser that finds more of them waits for the first ones anyway.
    pub(crate) const OBJECTS_A_PAGE: usize = 96;
    /// Objects of one page at one host. One visitor causes no more requests there.
    pub(crate) const OBJECTS_A_HOST: usize = 48;
    /// Requests of one worker in flight. Each holds one response in memory, up to Envoy's
    /// `http.async_response_buffer_limit`.
    pub(crate) const IN_FLIGHT: usize = 48;
    /// Requests of one worker in flight at one host: as many as one browser would send (six connections of HTTP/1.1).
    pub(crate) const IN_FLIGHT_A_HOST: usize = 6;
    /// Objects that wait for their turn in one worker.
    pub(crate) const WAITING: usize = 512;
    /// The browser itself has requested an object that waited longer than this, in milliseconds.
    pub(crate) const LATE_MS: u64 = 3_000;
    /// Objects that are remembered in one worker.
    pub(crate) const REMEMBERED: usize = 8_192;
    /// The lifetime of facts about a path, in milliseconds.
    pub(crate) const BELIEVED_MS: u64 = 3_600_000;
    /// The pause after an object could not be fetched, or was too large to be held, in milliseconds.
    pub(crate) const LEFT_ALONE_MS: u64 = 60_000;
}

labelled! {
    /// Why an object was not prefetched, or, where it says so, no object of a page.
    Skip {
        /// Page: its request has another method than GET.
        Method = "method";
        /// Page: its reader saves data (`Save-Data`).
        SaveData = "save_data";
        /// Page: the browser prefetches it (`Sec-Purpose`, `Purpose`, `X-Moz`).
        Speculative = "speculative";
        /// Page: its reload bypasses all caches.
        Reload = "reload";
        /// Page: it is an error page.
        Status = "status";
        /// The browser may not want it: lazy, one of several candidates, for browsers without scripts, in a template, an
        /// icon, a picture of a style sheet, a link for later.
        Uncertain = "uncertain";
        /// Fetched with CORS: the response is for one origin.
        Cors = "cors";
        /// Large, and fetched in ranges: sound and video.
        Media = "media";
        /// Its URL holds characters that browsers write in another way, which may depend on the page's encoding.
        Spelling = "spelling";
        /// It is cached since it was last fetched or seen.
        Held = "held";
        /// The cache does not store objects of this path.
        Uncacheable = "uncacheable";
        /// A picture with a query that may count readers: no cache is known to store it yet.
        Unproven = "unproven";
        /// It could not be fetched, or was too large, a moment ago.
        LeftAlone = "left_alone";
        /// Beyond the limits of one page.
        PageLimit = "page_limit";
        /// Too many objects are waiting already.
        QueueFull = "queue_full";
        /// It waited until the browser must have requested it.
        Late = "late";
    }
}

labelled! {
    /// Why a fetch was of no use.
    Failure {
        /// It could not be sent.
        NotSent = "not_sent";
        /// No response, or a larger one than Envoy holds.
        NoAnswer = "no_answer";
        /// Another status than 200.
        Status = "status";
        /// The cache does not store the response. Objects of this path are not prefetched again.
        Uncacheable = "uncacheable";
    }
}
