//! Maps a reference in a document to its moved URL, or to the reason why it stays.

use crate::base::{Base, Scheme};
use crate::host::{self, Scan};
use crate::mapper::Mapper;
use crate::outcome::{Outcome, Reason};
use crate::reference::{self, Shape};
use crate::shard;
use crate::usage::{Level, Use};
use std::borrow::Cow;
use url::{Position, Url};

/// An object that is about to move. Policies that know the page (its Content-Security-Policy) may still refuse it.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    /// The scheme of its origin.
    pub scheme: Scheme,
    /// Its host, lower case, brackets around IPv6.
    pub host: &'a str,
    /// Its port if it is not the default of its scheme.
    pub port: Option<u16>,
    /// Its path without query. It may hold characters that the browser will percent-encode.
    pub path: &'a str,
    /// The scheme of its target.
    pub target_scheme: Scheme,
    /// The authority of its target.
    pub target: &'a str,
}

/// The target of an object.
#[derive(Debug, Clone, Copy)]
struct Target<'a> {
    scheme: Scheme,
    authority: &'a str,
}

impl Mapper {
    /// Maps `reference`, used as `usage` in a document with the base `base`.
    ///
    /// Character references and escapes in `reference` must be decoded. References that stay cost no allocation, except
    /// for unusual spellings.
    pub fn forward(&self, base: &Base, reference: &str, usage: Use) -> Outcome {
        self.forward_if(base, reference, usage, |_| Ok(()))
    }

    /// Maps like [`forward`](Self::forward), but calls `permit` once before a URL moves. `permit` may return a reason
    /// against the move.
    pub fn forward_if(
        &self,
        base: &Base,
        reference: &str,
        usage: Use,
        permit: impl FnOnce(&Object<'_>) -> Result<(), Reason>,
    ) -> Outcome {
        if self.level == Level::Off && base.proxied.is_none() {
            // Bundling looks for objects even at level off, and must not treat the page itself as one.
            return Outcome::Left(match reference::trim(reference).as_bytes().first() {
                None => Reason::Empty,
                Some(b'#') => Reason::Fragment,
                Some(_) => Reason::Off,
            });
        }
        if reference.len() > self.url_bytes {
            let is_other = reference::has_other_scheme(reference::trim(reference));
            return Outcome::Left(if is_other { Reason::Scheme } else { Reason::TooLong });
        }
        match Shape::of(reference) {
            Shape::Empty => Outcome::Left(Reason::Empty),
            Shape::Fragment => Outcome::Left(Reason::Fragment),
            Shape::OtherScheme => Outcome::Left(Reason::Scheme),
            Shape::Relative { plain: true } if base.proxied.is_some() => Outcome::Left(Reason::Relative),
            Shape::Relative { .. } if base.proxied.is_none() && base.on_page_host && self.level < Level::Full => {
                Outcome::Left(Reason::SameHost)
            }
            Shape::Relative { .. } | Shape::Odd => self.forward_parsed(base, reference, usage, permit),
            Shape::Absolute { scheme, authority, rest } => {
                // The browser gives a reference without a scheme the scheme of the moved URL. The parser compares both
                // meanings.
                if base.proxied.is_some() && scheme.is_none() {
                    return self.forward_parsed(base, reference, usage, permit);
                }
                let Some(scheme) = scheme.or_else(|| Scheme::from_name(base.url.scheme().as_bytes())) else {
                    return Outcome::Left(Reason::Scheme);
                };
                match self.forward_scanned(base, scheme, authority, rest, usage, permit) {
                    Ok(outcome) => outcome,
                    Err(permit) => self.forward_parsed(base, reference, usage, permit),
                }
            }
        }
    }

    /// Maps an absolute reference whose host needs no parser; this is the fast path. Otherwise `Err` returns `permit`,
    /// for the parser.
    fn forward_scanned<P: FnOnce(&Object<'_>) -> Result<(), Reason>>(
        &self,
        base: &Base,
        scheme: Scheme,
        authority: &str,
        rest: &str,
        usage: Use,
        permit: P,
    ) -> Result<Outcome, P> {
        let Some((host, port)) = split_plain_port(authority, scheme) else { return Err(permit) };
        let host = match host::scan(host) {
            Scan::Canonical => Cow::Borrowed(host),
            Scan::Capitals => Cow::Owned(host.to_ascii_lowercase()),
            Scan::Unclear => return Err(permit),
        };
        let (scheme, port) = upgraded(base, scheme, port);
        let path = reference::path_of(rest);
        let tail = rest.get(path.len()..).unwrap_or_default();
        let path = if path.is_empty() { "/" } else { path };
        let outcome = self.decide(base, scheme, &host, port, usage).and_then(|target| {
            let object =
                Object { scheme, host: &host, port, path, target_scheme: target.scheme, target: target.authority };
            permit(&object).map(|()| write_moved(target, scheme, &host, port, path, tail))
        });
        Ok(match outcome {
            Ok(url) => Outcome::Moved(url),
            Err(reason) => Outcome::Left(reason),
        })
    }

    /// Maps any reference with the WHATWG parser. Query and fragment stay as written, because browsers encode a query
    /// in the document's encoding, which this crate does not know.
    fn forward_parsed(
        &self,
        base: &Base,
        reference: &str,
        usage: Use,
        permit: impl FnOnce(&Object<'_>) -> Result<(), Reason>,
    ) -> Outcome {
        let reference = with_two_slashes(without_newlines(reference::trim(reference)));
        let path = reference::path_of(&reference);
        let tail = reference.get(path.len()..).unwrap_or_default();
        let parsed = match (path, tail.chars().next()) {
            ("", None) => return Outcome::Left(Reason::Empty),
            ("", Some('#')) => return Outcome::Left(Reason::Fragment),
            // Joining an empty path would keep the base's query, but the reference has its own.
            ("", _) => Url::parse(&base.url[..Position::AfterPath]),
            // The parser would drop a trailing space, which is part of the path before a query or fragment.
            (path, Some(mark)) if path.ends_with(|last| last <= ' ') => base.url.join(&format!("{path}{mark}")),
            (path, _) => base.url.join(path),
        };
        let Ok(url) = parsed else { return Outcome::Left(Reason::Malformed) };
        let (Some(scheme), Some(parsed_host), Some(host)) =
            (Scheme::from_name(url.scheme().as_bytes()), url.host(), url.host_str())
        else {
            return Outcome::Left(Reason::Scheme);
        };
        // `http:` alone, relative to an http base, means the base with its query.
        let inherited = url.query().filter(|query| !query.is_empty() && !tail.starts_with('?'));
        let tail = inherited.map_or(Cow::Borrowed(tail), |query| Cow::Owned(format!("?{query}{tail}")));
        let (scheme, port) = upgraded(base, scheme, url.port());
        let decision = if !url.username().is_empty() || url.password().is_some() {
            Err(Reason::UserInfo)
        } else {
            self.decide_parsed(base, scheme, &parsed_host, host, port, usage)
        };
        let moved = decision.and_then(|target| {
            let path = url.path();
            let object = Object { scheme, host, port, path, target_scheme: target.scheme, target: target.authority };
            permit(&object).map(|()| write_moved(target, scheme, host, port, path, &tail))
        });
        let Some(proxied) = &base.proxied else {
            return moved.map_or_else(Outcome::Left, Outcome::Moved);
        };
        // The browser's meaning of the unchanged reference. For the browser the style sheet belongs to the proxy.
        let as_is = proxied.join(&reference).ok();
        let is_already = |meant: &str| as_is.is_some() && as_is == Url::parse(meant).ok();
        match moved {
            Ok(moved) if is_already(&moved) => Outcome::Left(Reason::Relative),
            Ok(moved) => Outcome::Moved(moved),
            Err(reason) => {
                let meant = format!("{}{tail}", &url[..Position::AfterPath]);
                if is_already(&meant) { Outcome::Left(reason) } else { Outcome::Pinned(meant, reason) }
            }
        }
    }

    fn decide_parsed(
        &self,
        base: &Base,
        scheme: Scheme,
        parsed_host: &url::Host<&str>,
        host: &str,
        port: Option<u16>,
        usage: Use,
    ) -> Result<Target<'_>, Reason> {
        // For a host that cannot move, another reason may be more specific.
        match self.decide(base, scheme, host, port, usage) {
            Ok(target) => host::movable(parsed_host).map(|()| target),
            Err(reason @ (Reason::AlreadyMoved | Reason::SameHost | Reason::Excluded)) => Err(reason),
            Err(reason) => Err(host::movable(parsed_host).err().unwrap_or(reason)),
        }
    }

    /// Returns the target of an object at `scheme://host:port`, or the reason why it may not move. This is the policy.
    fn decide(
        &self,
        base: &Base,
        scheme: Scheme,
        host: &str,
        port: Option<u16>,
        usage: Use,
    ) -> Result<Target<'_>, Reason> {
        if self.is_own_host(host) {
            return Err(Reason::AlreadyMoved);
        }
        // Objects beside a moved style sheet move with it at every level, because the browser looks for them there.
        let beside_moved_sheet = base.proxied.is_some() && base.url.host_str() == Some(host);
        if !beside_moved_sheet {
            if base.proxied.is_none() && self.level < Level::Full && host == base.page_host {
                return Err(Reason::SameHost);
            }
            if usage.moves_at() > self.level {
                return Err(if self.level == Level::Off { Reason::Off } else { Reason::Level });
            }
        }
        if self.is_excluded(host) {
            return Err(Reason::Excluded);
        }
        if base.cookies.reach(&base.page_host, host) {
            return Err(Reason::Cookie);
        }
        if base.page_scheme == Scheme::Https && scheme == Scheme::Http {
            return Err(Reason::MixedContent);
        }
        self.target_of(scheme, host, port)
    }

    /// Returns the target of an origin, if a moved URL can express that origin.
    fn target_of(&self, scheme: Scheme, host: &str, port: Option<u16>) -> Result<Target<'_>, Reason> {
        if !self.is_port_allowed(port.unwrap_or(scheme.default_port())) {
            return Err(Reason::Port);
        }
        match (scheme, port) {
            (Scheme::Https, Some(_)) | (Scheme::Http, Some(443)) => return Err(Reason::Unsayable),
            _ => {}
        }
        match (scheme, self.https_targets.is_empty(), self.http_targets.is_empty()) {
            (_, true, true) => Err(Reason::NoTarget),
            (_, false, _) => pick(Scheme::Https, &self.https_targets, host),
            (Scheme::Http, true, false) => pick(Scheme::Http, &self.http_targets, host),
            (Scheme::Https, true, false) => Err(Reason::NoSecureTarget),
        }
    }

    /// Returns the common prefix of all moved URLs of `scheme://host:port`, up to the path: `https://NAME/HOST:443`.
    /// Returns `None` if no object of that origin ever moves. `host` must be a lower-case name, not an address.
    pub fn prefix_of(&self, scheme: Scheme, host: &str, port: Option<u16>) -> Option<String> {
        let ours = self.is_own_host(host) || self.is_excluded(host) || self.level == Level::Off;
        if ours || !host::is_canonical(host) {
            return None;
        }
        let target = self.target_of(scheme, host, port).ok()?;
        Some(write_moved(target, scheme, host, port, "", ""))
    }
}

fn pick<'a>(scheme: Scheme, targets: &'a [String], host: &str) -> Result<Target<'a>, Reason> {
    let index = match targets {
        [_] => Some(0),
        several => shard::winner(host, several.iter().map(String::as_str)),
    };
    let authority = index.and_then(|index| targets.get(index)).ok_or(Reason::NoTarget)?;
    Ok(Target { scheme, authority })
}

/// Returns the scheme and port that a browser uses under `upgrade-insecure-requests` (W3C Upgrade Insecure Requests,
/// section 4.1).
fn upgraded(base: &Base, scheme: Scheme, port: Option<u16>) -> (Scheme, Option<u16>) {
    if base.upgrade_insecure && scheme == Scheme::Http {
        (Scheme::Https, port.filter(|&port| port != Scheme::Https.default_port()))
    } else {
        (scheme, port)
    }
}

/// Splits `host[:port]` of a reference as written. Returns `None` for forms that need the parser: user names, brackets
/// and unusual ports.
fn split_plain_port(authority: &str, scheme: Scheme) -> Option<(&str, Option<u16>)> {
    let Some(colon) = authority.bytes().position(|byte| byte == b':') else { return Some((authority, None)) };
    let (host, port) = authority.split_at_checked(colon)?;
    let digits = port.get(1..)?;
    if digits.is_empty() {
        return Some((host, None));
    }
    if digits.len() > 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let port: u16 = digits.parse().ok()?;
    Some((host, (port != scheme.default_port()).then_some(port)))
}

fn without_newlines(reference: &str) -> Cow<'_, str> {
    let dropped = ['\t', '\n', '\r'];
    if reference.contains(dropped) { Cow::Owned(reference.replace(dropped, "")) } else { Cow::Borrowed(reference) }
}

/// Removes further slashes before a host. Browsers skip them everywhere, but the parser skips them only after a scheme.
fn with_two_slashes(reference: Cow<'_, str>) -> Cow<'_, str> {
    match reference.strip_prefix("//") {
        Some(rest) if rest.starts_with(['/', '\\']) => {
            Cow::Owned(format!("//{}", rest.trim_start_matches(['/', '\\'])))
        }
        _ => reference,
    }
}

fn write_moved(target: Target<'_>, scheme: Scheme, host: &str, port: Option<u16>, path: &str, tail: &str) -> String {
    let mut digits = [0_u8; 6];
    let port = match (scheme, port) {
        (Scheme::Https, None) => ":443",
        (_, None) => "",
        (_, Some(port)) => write_port(&mut digits, port),
    };
    let parts = [target.scheme.as_str(), "://", target.authority, "/", host, port, path, tail];
    let mut url = String::with_capacity(parts.iter().map(|part| part.len()).sum());
    for part in parts {
        url.push_str(part);
    }
    url
}

/// Writes `:PORT` to `buffer`.
fn write_port(buffer: &mut [u8; 6], port: u16) -> &str {
    use std::io::Write;
    let mut rest: &mut [u8] = buffer;
    let left = write!(rest, ":{port}").map_or(0, |()| rest.len());
    let used = buffer.len().saturating_sub(left);
    buffer.get(..used).and_then(|used| std::str::from_utf8(used).ok()).unwrap_or_default()
}
