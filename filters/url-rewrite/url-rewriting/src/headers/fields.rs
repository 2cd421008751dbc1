//! What to do to a header list, and responses of our own.

use std::borrow::Cow;

pub use http_semantics::Fields;

/// One thing to do to a header list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Exactly this one value from now on.
    Set(&'static str, Vec<u8>),
    /// One more value.
    Add(&'static str, Vec<u8>),
    /// No value.
    Remove(Cow<'static, str>),
}

impl Edit {
    /// Removal of a name known beforehand.
    pub const fn remove(name: &'static str) -> Self {
        Self::Remove(Cow::Borrowed(name))
    }

    /// The header it is about.
    pub fn name(&self) -> &str {
        match self {
            Self::Set(name, _) | Self::Add(name, _) => name,
            Self::Remove(name) => name,
        }
    }
}

/// A response of ours instead of the origin's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Headers besides the status.
    pub headers: Vec<(&'static str, Vec<u8>)>,
    /// One line for a person, or nothing.
    pub body: String,
    /// For access logs and metrics.
    pub because: ReplyReason,
}

/// Why we answered ourselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyReason {
    /// Sent to the true URL: the proxy's own origin serves sub-resources only.
    Redirected,
    /// A navigation that did not come from the target's own site: a page offers the link.
    LinkOffered,
    /// The path names no origin we serve.
    Refused(url_mapping::Refusal),
    /// A transparent request for a port that is not listed.
    PortNotListed,
    /// An upgrade or CONNECT to the proxy's own origin.
    NotAnObject,
}
