//! Reasons to act as if no cache existed.

use http_semantics::{Unshared, labelled};

labelled! {
    /// The reason why a response is not stored, or why a request gets no stored one.
    Past {
        /// The method is not GET (RFC 9111 section 3). A response to HEAD has no body to store.
        Method = "method", "The cache stores responses to GET only.";
        /// The message concerns a part of a body (RFC 9111 section 3.3).
        Partial = "partial", "The request or the response concerns a part of the body only.";
        /// The status is not one that is stored (RFC 9111 section 3).
        Status = "status", "The cache does not store this status, or not without a stated lifetime.";
        /// `CDN-Cache-Control` may allow less than `Cache-Control` (RFC 9213).
        Targeted = "targeted", "The origin has a policy of its own for content delivery networks.";
        /// `no-store` in the request or the response (RFC 9111 sections 5.2.1.5 and 5.2.2.5).
        NoStore = "no_store", "The client or the origin forbids storage.";
        /// `private` (RFC 9111 section 5.2.2.7).
        Private = "private", "The origin made the response for one client.";
        /// The response sets a cookie, or has another field by which the site recognises the client.
        SetCookie = "set_cookie", "The response marks its client, for example with a cookie.";
        /// The request has `Authorization`, and the response does not allow sharing (RFC 9111 section 3.5).
        Authorization = "authorization", "The client logs in, and the origin does not share the response explicitly.";
        /// The request has a cookie, and the response says neither `public` nor `s-maxage`.
        Cookie = "cookie", "The client sends a cookie, and the origin does not share the response explicitly.";
        /// `Vary` lists `*` or is malformed (RFC 9111 section 4.1).
        VaryStar = "vary_star", "The response depends on more than the fields of the request.";
        /// The body is larger than one object may be.
        TooLarge = "too_large", "The response is too large for the cache.";
        /// The disk has no room, or takes no writes.
        NoRoom = "no_room", "The disk of the cache is full or broken.";
        /// The response is not fresh and has no validator.
        NotUseful = "not_useful", "The response is stale at once, and the origin could not validate it.";
    }
}

impl From<Unshared> for Past {
    fn from(why: Unshared) -> Self {
        match why {
            Unshared::Method => Self::Method,
            Unshared::Partial => Self::Partial,
            Unshared::Status => Self::Status,
            Unshared::Targeted => Self::Targeted,
            Unshared::NoStore => Self::NoStore,
            Unshared::Private => Self::Private,
            Unshared::SetCookie => Self::SetCookie,
            Unshared::Authorization => Self::Authorization,
            Unshared::Cookie => Self::Cookie,
            Unshared::Vary => Self::VaryStar,
            // The purpose of this crate never gives these two.
            Unshared::NoCache | Unshared::NotFresh => Self::NotUseful,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_keeps_the_label_that_it_has_elsewhere() {
        for why in Unshared::ALL {
            let past = Past::from(*why);
            let expected = match why {
                Unshared::Vary => "vary_star",
                Unshared::NoCache | Unshared::NotFresh => "not_useful",
                _ => why.as_str(),
            };
            assert_eq!(past.as_str(), expected);
        }
    }

    #[test]
    fn every_reason_has_one_sentence() {
        assert!(Past::ALL.iter().all(|past| past.explanation().ends_with('.')));
    }
}
