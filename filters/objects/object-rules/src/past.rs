//! Reasons to act as if no cache existed.

use http_semantics::{Unshared, labelled};

labelled! {
    /// The reason why a response is not stored, or why a request gets no stored one.
    Past {
        /// The method is not GET (RFC 9111 section 3). A response to HEAD has no body to store.
        Method = "method", "The cache stores responses to GET only.";
        /// The message concerns a part of a body (RFC 9111 section 3.3).
        Partial = "partial", "The request or the response concerns a part of the body only.";
        /// Parts of a response can be joined by a strong validator alone (RFC 9111 section 3.4).
        WeakTag = "weak_tag", "Parts of the response cannot be joined, because it has no strong `ETag`.";
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
        /// The request has an unkeyed field ([`crate::plain`]).
        Unkeyed = "unkeyed", "The request has a field by which an origin may choose its response, and `Vary` does not name it.";
        /// The body is larger than one object may be.
        TooLarge = "too_large", "The response is too large for the cache.";
        /// The disk has no room, or takes no writes.
        NoRoom = "no_room", "The disk of the cache is full or broken.";
        /// The response is not fresh and has no validator.
        NotUseful = "not_useful", "The response is stale at once, and the origin could not validate it.";
    }
}

/// The requests for a URL that bypass the cache for a while, because responses to them are not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastFor {
    /// Every request.
    All,
    /// Requests with a cookie. Others may get a response that is stored.
    WithCookie,
}

impl PastFor {
    /// Returns the name that the processes of a box use among themselves.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::WithCookie => "cookie",
        }
    }

    /// Reads the name.
    pub fn read(name: &[u8]) -> Option<Self> {
        [Self::All, Self::WithCookie].into_iter().find(|one| one.as_str().as_bytes() == name)
    }

    /// Returns true if a request is meant.
    pub const fn includes(self, has_cookie: bool) -> bool {
        match self {
            Self::All => true,
            Self::WithCookie => has_cookie,
        }
    }
}

impl Past {
    /// Returns the requests for which the same reason is to be expected. None if it says nothing about other requests.
    pub const fn foretells(self) -> Option<PastFor> {
        match self {
            Self::Method | Self::Partial | Self::WeakTag | Self::Authorization | Self::Unkeyed | Self::NoRoom => None,
            Self::Cookie => Some(PastFor::WithCookie),
            Self::Status
            | Self::Targeted
            | Self::NoStore
            | Self::Private
            | Self::SetCookie
            | Self::VaryStar
            | Self::TooLarge
            | Self::NotUseful => Some(PastFor::All),
        }
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
                _ => why.as_str(),
            };
            assert_eq!(past.as_str(), expected);
        }
    }

    #[test]
    fn a_name_is_read_back() {
        for one in [PastFor::All, PastFor::WithCookie] {
            assert_eq!(PastFor::read(one.as_str().as_bytes()), Some(one));
            assert!(one.includes(true));
        }
        assert!(PastFor::read(b"").is_none() && !PastFor::WithCookie.includes(false) && PastFor::All.includes(false));
    }

    #[test]
    fn every_reason_has_one_sentence() {
        assert!(Past::ALL.iter().all(|past| past.explanation().ends_with('.')));
    }
}
