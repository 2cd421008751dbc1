//! Edits of a header list, and local responses.

use std::borrow::Cow;

pub use http_semantics::Fields;

/// One edit of a header list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Replace all values by this one.
    Set(&'static str, Vec<u8>),
    /// Add one more value.
    Add(&'static str, Vec<u8>),
    /// Remove all values.
    Remove(Cow<'static, str>),
}

impl Edit {
    /// Returns the removal of a name that is known at compile time.
    pub const fn remove(name: &'static str) -> Self {
        Self::Remove(Cow::Borrowed(name))
    }

    /// Returns the name of the field that it changes.
    pub fn name(&self) -> &str {
        match self {
            Self::Set(name, _) | Self::Add(name, _) => name,
            Self::Remove(name) => name,
        }
    }
}

/// A local response, sent instead of the origin's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Headers besides the status.
    pub headers: Vec<(&'static str, Vec<u8>)>,
    /// One line for a person, a page, or nothing.
    pub body: String,
    /// The reason, for metrics.
    pub because: ReplyReason,
}

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
