//! One source of a policy, and the rules by which it matches (Content Security Policy Level 3, 6.7.2).
//!
//! Browsers differ from the text and from each other in places. Matching here takes the narrower rule: an object that
//! is not matched stays, which is never wrong.

use super::normal_port;
use url_mapping::{Base, Scheme};

/// The present or future URL of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) scheme: Scheme,
    pub(super) host: &'a str,
    pub(super) port: Option<u16>,
    pub(super) path: &'a str,
}

impl<'a> Place<'a> {
    /// Returns the place of an absolute http or https URL as serialized by the URL parser.
    pub(super) fn of_url(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = Scheme::from_name(scheme.as_bytes())?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end)?;
        let (host, port) = split_port(authority);
        let path = path.split(['?', '#']).next().unwrap_or_default();
        Some(Self { scheme, host, port: normal_port(scheme, port), path })
    }
}

/// The origin that `'self'` means. Sources without a scheme inherit its scheme.
#[derive(Debug, Clone)]
pub(super) struct PageOrigin {
    scheme: Scheme,
    host: String,
    port: Option<u16>,
}

impl PageOrigin {
    pub(super) fn of(base: &Base) -> Self {
        Self { scheme: base.page_scheme(), host: base.page_host().to_owned(), port: base.page_port() }
    }
}

/// The sources of one directive.
#[derive(Debug, Clone, Default)]
pub(super) struct SourceList {
    pub(super) sources: Vec<Source>,
    /// True with a nonce, a hash or `strict-dynamic`.
    pub(super) has_nonces: bool,
}

impl SourceList {
    pub(super) fn read<'a>(tokens: impl Iterator<Item = &'a str>) -> Self {
        let mut list = Self::default();
        for token in tokens {
            if token.eq_ignore_ascii_case("'self'") {
                list.sources.push(Source::Itself);
            } else if let Some(keyword) = token.strip_prefix('\'') {
                let keyword = keyword.to_ascii_lowercase();
                list.has_nonces |= ["strict-dynamic", "nonce-", "sha256-", "sha384-", "sha512-"]
                    .iter()
                    .any(|start| keyword.starts_with(start));
            } else {
                list.sources.extend(Source::read(token));
            }
        }
        list
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// `*`
    Any,
    /// `'self'`
    Itself,
    /// `https:`
    Scheme(Scheme),
    /// `https://*.example.org:8080/path`. All parts but the host are optional.
    Host { scheme: Option<Scheme>, host: Host, port: Port, path: Option<String> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Host {
    /// `*`
    Any,
    /// `*.example.org`, stored with the leading dot.
    Below(String),
    Exactly(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Port {
    Default,
    Any,
    Exactly(u16),
}

impl Source {
    /// Reads a token. `None` if no http object can match it: keywords, other schemes, invalid tokens.
    fn read(token: &str) -> Option<Self> {
        if token == "*" {
            return Some(Self::Any);
        }
        if let Some(scheme) = token.strip_suffix(':') {
            return Scheme::from_name(scheme.as_bytes()).map(Self::Scheme);
        }
        let (scheme, rest) = match token.split_once("://") {
            Some((scheme, rest)) => (Some(Scheme::from_name(scheme.as_bytes())?), rest),
            None => (None, token),
        };
        let (authority, path) = match rest.find('/') {
            Some(slash) => (rest.get(..slash)?, rest.get(slash..)),
            None => (rest, None),
        };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, "*")) => (host, Port::Any),
            Some((host, port)) => (host, Port::Exactly(port.parse().ok()?)),
            None => (authority, Port::Default),
        };
        let host = host.to_ascii_lowercase();
        let letters = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
        };
        let host = match host.strip_prefix('*') {
            Some("") => Host::Any,
            Some(below) if below.starts_with('.') && letters(below) => Host::Below(below.to_owned()),
            None if letters(&host) => Host::Exactly(host),
            _ => return None,
        };
        // A path of `/` matches like no path.
        let path = path.filter(|&path| path != "/").map(str::to_owned);
        Some(Self::Host { scheme, host, port, path })
    }

    /// Returns true if the source matches `place` (6.7.2.5 to 6.7.2.12).
    pub(super) fn matches(&self, page: &PageOrigin, place: &Place<'_>) -> bool {
        match self {
            Self::Any => true,
            Self::Itself => {
                place.host == page.host
                    && place.port == page.port
                    && (place.scheme == page.scheme || (place.scheme == Scheme::Https && page.port.is_none()))
            }
            Self::Scheme(scheme) => reaches(*scheme, place.scheme),
            Self::Host { scheme, host, port, path } => {
                reaches(scheme.unwrap_or(page.scheme), place.scheme)
                    && host.matches(place.host)
                    && match port {
                        Port::Any => true,
                        Port::Default => place.port.is_none(),
                        Port::Exactly(port) => *port == place.port.unwrap_or(place.scheme.default_port()),
                    }
                    && path.as_deref().is_none_or(|path| path_matches(path, place.path))
            }
        }
    }

    /// Returns true if the source covers more than one host, and so may cover the proxy without translation.
    pub(super) fn covers_hosts(&self) -> bool {
        match self {
            Self::Any | Self::Scheme(_) => true,
            Self::Itself => false,
            Self::Host { host, path, .. } => !matches!(host, Host::Exactly(_)) && path.is_none(),
        }
    }

    /// Returns true if the source names one host and so has a moved form at `target`. A policy can name no IP address
    /// but 127.0.0.1.
    pub(super) fn is_translated(&self, target: &Place<'_>) -> bool {
        let one_host = match self {
            Self::Itself => true,
            Self::Any | Self::Scheme(_) => false,
            Self::Host { host, port, .. } => matches!(host, Host::Exactly(_)) && *port != Port::Any,
        };
        one_host && !is_unnamable(target.host)
    }

    /// Returns every origin that the source matches, with its path, if it names one host.
    pub(super) fn places<'a>(&'a self, page: &'a PageOrigin) -> Vec<Place<'a>> {
        let (host, port, path) = match self {
            Self::Itself => (page.host.as_str(), page.port, "/"),
            Self::Host { host: Host::Exactly(host), port, path, .. } => {
                let port = match port {
                    Port::Exactly(port) => Some(*port),
                    Port::Default | Port::Any => None,
                };
                (host.as_str(), port, path.as_deref().unwrap_or("/"))
            }
            _ => return Vec::new(),
        };
        let candidates =
            [Scheme::Http, Scheme::Https].map(|scheme| Place { scheme, host, port: normal_port(scheme, port), path });
        candidates.into_iter().filter(|place| self.matches(page, place)).collect()
    }
}

impl Host {
    fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Below(suffix) => host.len() > suffix.len() && host.ends_with(suffix.as_str()),
            Self::Exactly(name) => name == host && !is_unnamable(host),
        }
    }
}

/// Returns true if a source of scheme `source` covers `place` (6.7.2.9): http also covers https.
fn reaches(source: Scheme, place: Scheme) -> bool {
    source == place || place == Scheme::Https
}

/// Returns true if the path matches (6.7.2.12): equal, or a prefix that ends with a slash. Both are percent-decoded
/// first.
fn path_matches(source: &str, path: &str) -> bool {
    let (source, path) = (percent_decoded(source), percent_decoded(path));
    if source.ends_with(b"/") { path.starts_with(&source) } else { path == source }
}

fn percent_decoded(path: &str) -> Vec<u8> {
    let mut bytes = path.bytes();
    let mut decoded = Vec::with_capacity(path.len());
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (byte, digit(ahead.next()), digit(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                decoded.extend(u8::try_from(high * 16 + low));
                bytes = ahead;
            }
            _ => decoded.push(byte),
        }
    }
    decoded
}

/// Returns true if no policy can name this host (6.7.2.10): an IP address other than 127.0.0.1.
fn is_unnamable(host: &str) -> bool {
    let address = host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
    address && host != "127.0.0.1"
}

/// Splits an authority, as serialized by the URL parser, into host and port.
pub(super) fn split_port(authority: &str) -> (&str, Option<u16>) {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
        _ => (authority, None),
    }
}
