//! Fetching a page's moved objects into the cache while the page streams by, so that the browser's requests, a round trip
//! of the slow link later, find them there.
//!
//! Which objects, in what order and with which headers is decided here; whoever owns the sockets sends what
//! [`Fetcher::next`] gives it and says how it ended. What is fetched is what the browser is about to ask for anyway, under
//! the same name and with the same words, so nothing reaches an origin that it would not see a moment later.
//!
//! | module | job |
//! |---|---|
//! | `template` | what of the page's request its objects' requests repeat |
//! | `observer` | which of a page's moved objects the browser is certain to want |
//! | `fetcher` | order and bounds: one a worker |
//! | `memory` | what was learned about objects, bounded and forgotten with age |

use http_semantics::labels::labelled;

mod fetcher;
mod memory;
mod observer;
mod template;

pub use fetcher::{Ended, Fetcher, Order};
pub use observer::{Candidate, Candidates, PrefetchObserver};
pub use template::RequestTemplate;

/// Every bound of prefetching, by name.
mod limits {
    /// Of one page. A browser that finds more of them waits for the first ones anyway.
    pub(super) const OBJECTS_A_PAGE: usize = 96;
    /// Of one page, of one host: what is asked for on behalf of one visitor.
    pub(super) const OBJECTS_A_HOST: usize = 48;
    /// Of one worker at one time. Each holds one answer in memory, up to Envoy's `http.async_response_buffer_limit`.
    pub(super) const IN_FLIGHT: usize = 48;
    /// Of one worker at one time at one host: what one browser would open there (six connections of HTTP/1.1).
    pub(super) const IN_FLIGHT_A_HOST: usize = 6;
    /// Waiting for their turn in one worker.
    pub(super) const WAITING: usize = 512;
    /// What has waited so long is being asked for by the browser itself.
    pub(super) const LATE_MS: u64 = 3_000;
    /// Objects that are remembered in one worker.
    pub(super) const REMEMBERED: usize = 8_192;
    /// How long what an origin does with a path is believed.
    pub(super) const BELIEVED_MS: u64 = 3_600_000;
    /// An object that could not be had, or was too large to be looked at, is left alone for so long.
    pub(super) const LEFT_ALONE_MS: u64 = 60_000;
}

labelled! {
    /// Why an object was not fetched ahead, or, where it says so, nothing of a page.
    Skip {
        /// Nothing of a page: asked for with another method than GET.
        Method = "method";
        /// Nothing of a page: its reader saves data (`Save-Data`).
        SaveData = "save_data";
        /// Nothing of a page: it is itself fetched ahead of need (`Sec-Purpose`, `Purpose`, `X-Moz`).
        Speculative = "speculative";
        /// Nothing of a page: it is reloaded past all caches.
        Reload = "reload";
        /// Nothing of a page: it is an error page.
        Status = "status";
        /// The browser may not want it: lazy, one of several candidates, for browsers without scripts, in a template, an
        /// icon, a picture of a sheet, a link for later.
        Uncertain = "uncertain";
        /// Fetched with CORS: the answer is for one origin.
        Cors = "cors";
        /// Large, and fetched in ranges: sound and video.
        Media = "media";
        /// Its URL holds characters that browsers write in another way, which may depend on the page's encoding.
        Spelling = "spelling";
        /// It is in the cache since it was last fetched or seen.
        Held = "held";
        /// The cache does not keep what comes from there.
        Uncacheable = "uncacheable";
        /// A picture with a query, of which nobody knows yet whether it is kept: it may count readers.
        Unproven = "unproven";
        /// It could not be had, or was too large, a moment ago.
        LeftAlone = "left_alone";
        /// Beyond what is fetched for one page.
        PageLimit = "page_limit";
        /// Too much is waiting already.
        QueueFull = "queue_full";
        /// It waited until the browser must have asked for it.
        Late = "late";
    }
}

labelled! {
    /// Why a fetch was of no use.
    Failure {
        /// It could not be sent.
        NotSent = "not_sent";
        /// No answer, or a larger one than is held.
        NoAnswer = "no_answer";
        /// Another status than 200.
        Status = "status";
        /// The cache does not keep the answer: what comes from there is not fetched ahead again.
        Uncacheable = "uncacheable";
    }
}
