//! The names by which an end of a pair accepts the certificate of the other.

use std::fmt;

use super::names::{Host, HostName, NameError};

const SPIFFE: &str = "spiffe://";

/// A name that an accepted certificate has among its subject alternative names (RFC 5280 section 4.2.1.6).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PeerName {
    /// This DNS name.
    Exact(HostName),
    /// `*.NAME`: a DNS name with exactly one label in front of this one.
    Below(HostName),
    /// A SPIFFE ID (SPIFFE-ID section 2), which is a URI.
    Spiffe {
        /// The ID, or its beginning. It has a trust domain, and a path if it is a beginning.
        id: String,
        /// True if any ID that begins with `id` is accepted: the file has a `*` behind it.
        is_prefix: bool,
    },
}

/// The reason why a text is not such a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PeerNameError {
    /// It is not a DNS name.
    #[error("{0}")]
    Name(NameError),
    /// A `*` in another place than the first label.
    #[error("a `*` stands for the first label or the end of a SPIFFE ID")]
    Star,
    /// A trust domain that is empty, or has other characters than `a-z`, `0-9`, `.`, `-` and `_`.
    #[error("the trust domain is not in lower case, or is empty")]
    TrustDomain,
    /// A path with an empty segment, `.`, `..`, or characters other than letters, digits, `.`, `-` and `_`.
    #[error("the path has an empty segment or a character that SPIFFE IDs do not have")]
    Path,
}

impl PeerName {
    /// Returns true if no other end can have this name.
    #[must_use]
    pub fn is_one(&self) -> bool {
        matches!(self, Self::Exact(_) | Self::Spiffe { is_prefix: false, .. })
    }

    /// Parses a name as it stands in a configuration file.
    ///
    /// # Errors
    /// The text is neither a DNS name, nor `*.` and a DNS name, nor a SPIFFE ID, nor its beginning and a `*`.
    pub(crate) fn parse(text: &str) -> Result<Self, PeerNameError> {
        if let Some(rest) = text.strip_prefix(SPIFFE) {
            return spiffe(text, rest);
        }
        let (name, below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        if name.contains('*') {
            return Err(PeerNameError::Star);
        }
        let name = HostName::parse(name).map_err(PeerNameError::Name)?;
        Ok(if below { Self::Below(name) } else { Self::Exact(name) })
    }
}

impl PeerName {
    /// Returns the host that it names. None if it names several, or none.
    pub(crate) fn one_host(&self) -> Option<Host> {
        match self {
            Self::Exact(name) => Some(Host::Name(name.clone())),
            Self::Below(_) | Self::Spiffe { .. } => None,
        }
    }
}

fn spiffe(text: &str, rest: &str) -> Result<PeerName, PeerNameError> {
    let is_prefix = text.ends_with('*');
    let rest = rest.strip_suffix('*').unwrap_or(rest);
    let (domain, path) = match rest.split_once('/') {
        Some((domain, path)) => (domain, Some(path)),
        None => (rest, None),
    };
    let in_domain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'_');
    if domain.is_empty() || !domain.bytes().all(in_domain) {
        return Err(if domain.contains('*') { PeerNameError::Star } else { PeerNameError::TrustDomain });
    }
    // A `*` behind the bare domain would accept every domain that begins like it.
    if is_prefix && path.is_none() {
        return Err(PeerNameError::Star);
    }
    let mut segments: Vec<&str> = path.map(|path| path.split('/').collect()).unwrap_or_default();
    if is_prefix && segments.last() == Some(&"") {
        segments.pop();
    }
    let in_path = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
    let is_segment = |segment: &&str| !matches!(*segment, "" | "." | "..") && segment.bytes().all(in_path);
    if !segments.iter().all(is_segment) {
        return Err(if rest.contains('*') { PeerNameError::Star } else { PeerNameError::Path });
    }
    Ok(PeerName::Spiffe { id: text.strip_suffix('*').unwrap_or(text).to_owned(), is_prefix })
}

impl fmt::Display for PeerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name.as_str()),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Spiffe { id, is_prefix } => write!(f, "{id}{}", if *is_prefix { "*" } else { "" }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_wildcards_and_spiffe_ids_are_read_and_written_alike() {
        for text in [
            "ship.example",
            "*.ships.example",
            "spiffe://fleet.example/ship/7",
            "spiffe://fleet.example",
            "spiffe://fleet.example/*",
            "spiffe://fleet.example/ship/*",
            "spiffe://fleet.example/ship-*",
        ] {
            assert_eq!(PeerName::parse(text).map(|name| name.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn a_pattern_that_would_accept_strangers_is_refused() {
        for (text, expected) in [
            ("*", PeerNameError::Star),
            ("a.*.example", PeerNameError::Star),
            ("ship*.example", PeerNameError::Star),
            ("spiffe://fleet.example*", PeerNameError::Star),
            ("spiffe://*/ship", PeerNameError::Star),
            ("spiffe://fleet.example/*/7", PeerNameError::Star),
            ("spiffe:///ship", PeerNameError::TrustDomain),
            ("spiffe://Fleet.example/ship", PeerNameError::TrustDomain),
            ("spiffe://fleet.example:8443/ship", PeerNameError::TrustDomain),
            ("spiffe://fleet.example/ship//7", PeerNameError::Path),
            ("spiffe://fleet.example/../7", PeerNameError::Path),
            ("spiffe://fleet.example/", PeerNameError::Path),
            ("spiffe://fleet.example/a?b", PeerNameError::Path),
            ("*.", PeerNameError::Name(NameError::Empty)),
            ("192.0.2.1", PeerNameError::Name(NameError::Address)),
        ] {
            assert_eq!(PeerName::parse(text), Err(expected), "{text}");
        }
    }
}
