//! The ways in which a request ends.

use http_semantics::labelled;

labelled! {
    /// The response that a client got.
    Outcome {
        /// A stored response that is fresh.
        Hit = "hit", "The cache has the response, and it is fresh.";
        /// A stale response, while the origin validates it (RFC 5861 section 3).
        StaleWhileRevalidate = "stale_while_revalidate", "The response is stale for a short time. The origin validates it meanwhile.";
        /// A stale response, because the origin failed (RFC 5861 section 4).
        StaleIfError = "stale_if_error", "The response is stale, and the origin did not respond or failed.";
        /// A stored response that the origin has validated.
        Revalidated = "revalidated", "The origin said that the stored response is still true.";
        /// The origin's response, which is stored for others.
        Stored = "stored", "The response came from the origin, and the cache stores it.";
        /// A response that another client's request fetches.
        Joined = "joined", "Another client's request fetched the response.";
        /// The origin's response, which the cache does not store.
        Past = "past", "The response came from the origin, and the cache does not store it.";
        /// A 504: the request wanted a stored response alone (`only-if-cached`).
        Unavailable = "unavailable", "The client wanted a stored response alone, and there is none.";
        /// No response. Envoy repeats the request past the program.
        Unanswered = "unanswered", "The origin could not be reached through the cache, and Envoy repeats the request past it.";
    }
}

impl Outcome {
    /// Reads the label.
    pub fn of_label(label: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.as_str() == label)
    }

    /// Returns true if the client got stored bytes.
    pub const fn is_from_store(self) -> bool {
        matches!(self, Self::Hit | Self::StaleWhileRevalidate | Self::StaleIfError | Self::Revalidated)
    }
}
