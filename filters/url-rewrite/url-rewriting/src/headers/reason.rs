//! Reasons for local responses.

/// The reason for a local response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyReason {
    /// A redirect to the true URL: the proxy's own origin serves sub-resources only.
    Redirected,
    /// A page that offers the link, for a navigation that did not come from the target's own site.
    LinkOffered,
    /// The path names no origin that the proxy serves.
    Refused(url_mapping::Refusal),
    /// A transparent request for a port that is not listed.
    PortNotListed,
    /// An upgrade or CONNECT to the proxy's own origin.
    NotAnObject,
}
