//! The outcome of mapping a reference, in the terms of the metrics and of `longhaul explain`.

use std::fmt;

use http_semantics::labels::labelled;

/// The outcome for one reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It moves to the proxy. Holds the new absolute URL, unescaped.
    Moved(String),
    /// It may not move, but it cannot stay as written, because it is a relative reference in a moved style sheet. Holds
    /// the absolute URL that it meant, and why it may not move. Only [`Base::on_proxy`](crate::Base::on_proxy) leads
    /// here.
    Pinned(String, Reason),
    /// It stays, byte for byte. Holds the reason.
    Left(Reason),
}

impl Outcome {
    /// Returns the text that replaces the reference, if it changes.
    pub fn replacement(&self) -> Option<&str> {
        match self {
            Self::Moved(url) | Self::Pinned(url, _) => Some(url),
            Self::Left(_) => None,
        }
    }
}

labelled! {
    /// Why a reference stays.
    ///
    /// The labels are the values of the `reason` label of the metric `urls_left`. Dashboards depend on them, so never
    /// rename one.
    Reason {
        // ----- the reference itself
        /// The value is empty.
        Empty = "empty", "The value is empty.";
        /// A fragment of the document itself.
        Fragment = "fragment", "It points into the document itself.";
        /// Neither http nor https.
        Scheme = "scheme", "Its scheme is neither http nor https, so there is nothing to fetch through the proxy.";
        /// Refused by the WHATWG parser.
        Malformed = "malformed", "Browsers do not accept it as a URL.";
        /// Longer than `limits.url_bytes`.
        TooLong = "too_long", "It is longer than the limit url_bytes.";
        /// Carries a user name or password.
        UserInfo = "user_info", "It carries a user name or a password, which the proxy must not handle.";
        // ----- its origin
        /// On the page's own host, below level full.
        SameHost = "same_host", "It is on the page's own host, which only level full moves.";
        /// Already on the proxy.
        AlreadyMoved = "already_moved", "It points to the proxy already.";
        /// A relative reference in a moved style sheet that resolves to its moved URL.
        Relative = "relative", "It is relative to an object that was moved, so it moved with it.";
        /// A cookie of the page may reach it.
        Cookie = "cookie", "Its host may receive cookies of the page, and a request to the proxy carries none of them.";
        /// Under `rewrite.exclude`.
        Excluded = "excluded", "Its host is under rewrite.exclude.";
        /// A host that cannot stand in a path: no dot, a trailing dot, characters outside letters, digits, `-` and `_`.
        HostForm = "host_form", "Its host name has no dot, or has characters that a moved URL cannot hold.";
        /// A literal address that means another machine at the proxy than at the client.
        PrivateAddress = "private_address", "Its address is private or special: the proxy refuses it, or it names another machine there.";
        /// The port is not under `upstream.ports`.
        Port = "port", "Its port is not one of upstream.ports.";
        /// http on port 443, or https on another port than 443.
        Unsayable = "unsayable", "A moved URL can say https only with port 443 and http only with another one.";
        // ----- the targets
        /// `rewrite.level: off`.
        Off = "off", "Rewriting is off.";
        /// Neither https nor http targets.
        NoTarget = "no_target", "No target is configured, or rewrite.target chose to move nothing on this link.";
        /// An https object, and there is no https target.
        NoSecureTarget = "no_secure_target", "It is https, and the proxy has no https name to move it to.";
        /// An http object on an https page. Browsers upgrade or block it, and a move would change which of these
        /// happens.
        MixedContent = "mixed_content", "It is an http object of an https page, which browsers upgrade or block by themselves.";
        // ----- its use
        /// This use moves only at level full.
        Level = "level", "Objects used like this are moved only at level full.";
        /// `a`, `form`, `iframe`, `frame`, `embed`, `object`: a navigation or a document.
        Document = "document", "It is a document or a navigation, which never moves.";
        /// Module scripts, import maps and module preloads.
        Module = "module", "It is a module: its imports are relative to its place and it is identified by its URL.";
        /// SVG `use`, `pattern` and the like, which browsers fetch from the same origin only.
        SameOriginOnly = "same_origin_only", "Browsers fetch this only from the page's own origin.";
        /// `integrity` on an object that a move would fetch without CORS, or change.
        Integrity = "integrity", "Its integrity attribute could not be checked after the move.";
        /// `crossorigin=use-credentials`, or a CORS request that a move would break.
        Cors = "cors", "It is fetched with CORS in a way that a move would break.";
        /// The page's Content-Security-Policy does not allow it, or cannot be translated for it.
        Csp = "csp", "The page's Content-Security-Policy cannot allow the moved URL without allowing more than now.";
        /// Hints, manifests, dictionaries, prefetched documents and all other link types.
        LinkRel = "link_rel", "Links of this kind are not moved.";
        /// A preload, or an object that an earlier preload names.
        Preload = "preload", "A script may be the consumer of this preload, or a preload of it stays; a move would fetch it twice.";
        /// A `srcset` attribute that the WHATWG algorithm does not accept as written.
        Srcset = "srcset", "The candidate list cannot be changed without changing its meaning.";
        /// Browsers do not fetch it because of its type attribute (`script type=text/template`).
        NotFetched = "not_fetched", "Browsers do not fetch it.";
        // ----- limits
        /// More candidates than `limits.srcset_candidates`.
        SrcsetLimit = "srcset_limit", "The list has more candidates than the limit srcset_candidates.";
        /// The document's encoding cannot express the moved URL, or the value could not be read.
        Encoding = "encoding", "The value cannot be read or written in the document's encoding.";
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
