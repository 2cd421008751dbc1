//! The outcomes of a look into the store.

use http_semantics::labelled;

labelled! {
    /// The outcome of a request that may have a stored response.
    Glance {
        /// The reader served the response.
        Hit = "hit", "The reader served the stored response.";
        /// The store has nothing.
        Absent = "absent", "The cache has no response, and the program fetches it.";
        /// The program knows that responses are not stored.
        Past = "past", "Responses for the URL were not stored lately, so the request goes past the cache.";
        /// The stored response is not fresh for this request, or the request sets a condition that the origin judges.
        Origin = "origin", "The stored response is stale, or the request wants the origin's.";
        /// The body is too large for the reader.
        Large = "large", "The program serves the response, because its body is large.";
        /// The disk would have to be waited for.
        Cold = "cold", "The program reads the response from the disk.";
        /// Slow clients hold too many bytes.
        Busy = "busy", "The program serves the response, because the reader's memory is full of responses on their way.";
        /// The folder cannot be read.
        Unreadable = "unreadable", "The reader cannot read the folder of the cache.";
    }
}
