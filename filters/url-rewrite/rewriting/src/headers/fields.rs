//! A header list to read, and what to do to it. Names are lower case, as HTTP/2 and Envoy have them.

use std::borrow::Cow;

/// Room for nearly every header list without growing.
const USUAL_FIELDS: usize = 32;

/// A header list, borrowed from wherever the proxy keeps it.
#[derive(Debug, Clone, Default)]
pub struct Fields<'a>(Vec<(&'a [u8], &'a [u8])>);

impl<'a> FromIterator<(&'a [u8], &'a [u8])> for Fields<'a> {
    fn from_iter<I: IntoIterator<Item = (&'a [u8], &'a [u8])>>(pairs: I) -> Self {
        let mut list = Vec::with_capacity(USUAL_FIELDS);
        list.extend(pairs);
        Self(list)
    }
}

impl<'a> Fields<'a> {
    /// The first value of `name`, without surrounding white space.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// Every value of `name`, in order.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().filter(move |(key, _)| *key == name.as_bytes()).map(|(_, value)| value.trim_ascii())
    }

    /// Every name and value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        self.0.iter().copied()
    }

    /// Whether any value of the comma-separated list `name` is `token`, in any case, parameters aside.
    pub fn lists(&self, name: &str, token: &str) -> bool {
        self.all(name).flat_map(|value| value.split(|&byte| byte == b',')).any(|item| {
            item.split(|&byte| byte == b';')
                .next()
                .unwrap_or_default()
                .trim_ascii()
                .eq_ignore_ascii_case(token.as_bytes())
        })
    }
}

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
    pub(crate) const fn remove(name: &'static str) -> Self {
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
    /// The path names no origin we serve.
    Refused(url_mapping::Refusal),
    /// A transparent request for a port that is not listed.
    PortNotListed,
    /// An upgrade or CONNECT to the proxy's own origin.
    NotAnObject,
}
