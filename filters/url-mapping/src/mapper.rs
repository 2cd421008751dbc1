//! The configured rules, checked once and compiled into the immutable [`Mapper`] that all pages share.

use crate::base::Scheme;
use crate::error::RuleError;
use crate::host;
use crate::usage::Level;

/// An operator's rules for moving URLs, as written.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Authorities of `https://` targets. An https object moves to one of these only.
    pub https_targets: Vec<String>,
    /// Authorities of `http://` targets, used for http objects if there is no https target.
    pub http_targets: Vec<String>,
    /// Every authority of the proxy itself, including the targets. An authority without a port covers ports 80 and 443.
    pub own: Vec<String>,
    /// The level: which URLs move.
    pub level: Level,
    /// Host suffixes that never move: `bank.example` covers itself and every name below it.
    pub exclude: Vec<String>,
    /// Ports of origins that the proxy serves.
    pub ports: Vec<u16>,
    /// Bytes of the longest reference that may move.
    pub url_bytes: usize,
}

/// Compiled rules: [`forward`](Self::forward) and [`reverse`](Self::reverse).
#[derive(Debug, Clone)]
pub struct Mapper {
    pub(crate) level: Level,
    pub(crate) https_targets: Vec<String>,
    pub(crate) http_targets: Vec<String>,
    own: Vec<OwnAuthority>,
    /// Sorted and in lower case, for binary search.
    exclude: Vec<String>,
    ports: Vec<u16>,
    pub(crate) url_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnAuthority {
    host: String,
    /// `None` covers ports 80 and 443, written or not.
    port: Option<u16>,
}

impl Mapper {
    /// Checks and compiles `rules`.
    ///
    /// # Errors
    /// A [`RuleError`] for the first invalid rule.
    pub fn new(rules: &Rules) -> Result<Self, RuleError> {
        let own = list("own", &rules.own, "HOST or HOST:PORT in lower case", parse_authority)?;
        let secure = targets("targets.https", &rules.https_targets, &own, Scheme::Https)?;
        let plain = targets("targets.http", &rules.http_targets, &own, Scheme::Http)?;
        let mut exclude = list("exclude", &rules.exclude, "a host name or suffix such as bank.example", parse_suffix)?;
        exclude.sort_unstable();
        if let Some(position) = rules.ports.iter().position(|&port| port == 0) {
            let key = format!("ports[{position}]");
            return Err(RuleError { key, found: "0".to_owned(), expected: "a port from 1 to 65535" });
        }
        Ok(Self {
            level: rules.level,
            https_targets: secure,
            http_targets: plain,
            own,
            exclude,
            ports: rules.ports.clone(),
            url_bytes: rules.url_bytes,
        })
    }

    /// Returns the level of these rules.
    pub fn level(&self) -> Level {
        self.level
    }

    /// Returns true if no page can change.
    pub fn moves_nothing(&self) -> bool {
        self.level == Level::Off || (self.https_targets.is_empty() && self.http_targets.is_empty())
    }

    /// Returns true if `exclude` covers `host`.
    pub fn is_excluded(&self, host: &str) -> bool {
        if self.exclude.is_empty() {
            return false;
        }
        let mut suffix = host.trim_end_matches('.');
        loop {
            if self.exclude.binary_search_by(|rule| rule.as_str().cmp(suffix)).is_ok() {
                return true;
            }
            match suffix.split_once('.') {
                Some((_, parent)) => suffix = parent,
                None => return false,
            }
        }
    }

    /// Returns true if the proxy serves origins on `port`.
    pub fn is_port_allowed(&self, port: u16) -> bool {
        self.ports.contains(&port)
    }

    /// Returns true if `authority` (host and optional port, in any case) is the proxy itself.
    pub fn is_own_authority(&self, authority: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(authority) else { return false };
        let Some((host, port)) = split_port(text) else { return false };
        let host = host.trim_end_matches('.');
        self.own.iter().any(|own| {
            own.host.eq_ignore_ascii_case(host)
                && match own.port {
                    Some(own_port) => port == Some(own_port),
                    None => matches!(port, None | Some(80 | 443)),
                }
        })
    }

    /// Returns true if `host` is the proxy itself, on any port.
    pub(crate) fn is_own_host(&self, host: &str) -> bool {
        self.own.iter().any(|own| own.host == host)
    }
}

/// Splits `host[:port]`. A bracketed IPv6 address keeps its brackets. Returns `None` if the port is not a decimal
/// number from 1 to 65535 without leading zeros.
pub(crate) fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => return Some((authority, None)),
    };
    if port.starts_with('0') || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((host, Some(port.parse().ok()?)))
}

/// Returns the port of an authority: `Some(None)` if it has none, and `None` if the text after its colon is not a port.
pub fn port_of(authority: &[u8]) -> Option<Option<u16>> {
    split_port(std::str::from_utf8(authority).ok()?).map(|(_, port)| port)
}

/// Returns true if the host of an authority can be a name or an address.
pub fn host_can_exist(authority: &[u8]) -> bool {
    std::str::from_utf8(authority).ok().and_then(split_port).is_some_and(|(host, _)| crate::host::can_exist(host))
}

fn list<T>(
    key: &str,
    values: &[String],
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, RuleError> {
    let error = |index, found: &str| RuleError { key: format!("{key}[{index}]"), found: found.to_owned(), expected };
    values.iter().enumerate().map(|(index, value)| parse(value).ok_or_else(|| error(index, value))).collect()
}

/// Parses one of the proxy's own authorities. A proxy that owns port 80 or 443 owns both, so they count as no port.
fn parse_authority(value: &str) -> Option<OwnAuthority> {
    let (host, port) = split_port(value)?;
    // On a private network a proxy may have a name without a dot, though no object can.
    let simple = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let well_formed = host::is_canonical(host) || (!host.is_empty() && host.bytes().all(simple));
    well_formed.then(|| OwnAuthority { host: host.to_owned(), port: port.filter(|port| !matches!(port, 80 | 443)) })
}

/// Targets must be listed as own. Otherwise the proxy would treat requests to them as requests to another server, and
/// loop.
fn targets(key: &str, values: &[String], own: &[OwnAuthority], scheme: Scheme) -> Result<Vec<String>, RuleError> {
    list(key, values, "one of the authorities listed under `own`", |value| {
        own.contains(&parse_authority(value)?).then_some(())?;
        let default_port = format!(":{}", scheme.default_port());
        Some(value.strip_suffix(&default_port).unwrap_or(value).to_owned())
    })
}

fn parse_suffix(value: &str) -> Option<String> {
    let value = value.trim_matches('.').to_ascii_lowercase();
    let fits = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_[]:".contains(&byte));
    fits.then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Rules {
        Rules {
            https_targets: vec!["pep.example.net".to_owned()],
            http_targets: vec!["198.51.100.12:8080".to_owned()],
            own: vec!["pep.example.net".to_owned(), "198.51.100.12:8080".to_owned()],
            level: Level::Safe,
            exclude: vec!["bank.example".to_owned(), ".Shop.Example".to_owned()],
            ports: vec![80, 443],
            url_bytes: 8192,
        }
    }

    #[test]
    fn the_proxys_own_authorities_are_known_in_every_spelling() {
        let mapper = Mapper::new(&rules()).unwrap();
        for authority in [
            "pep.example.net",
            "PEP.example.net",
            "pep.example.net.",
            "pep.example.net:443",
            "pep.example.net:80",
            "198.51.100.12:8080",
        ] {
            assert!(mapper.is_own_authority(authority.as_bytes()), "{authority}");
        }
        for authority in [
            "",
            "pep.example.org",
            "pep.example.net:8080",
            "198.51.100.12",
            "198.51.100.12:80",
            "xpep.example.net",
            "pep.example.net:080",
        ] {
            assert!(!mapper.is_own_authority(authority.as_bytes()), "{authority}");
        }
        assert!(!mapper.is_own_authority(b"\xff"));
    }

    #[test]
    fn an_excluded_suffix_covers_itself_and_what_is_below() {
        let mapper = Mapper::new(&rules()).unwrap();
        for host in ["bank.example", "www.bank.example", "a.b.bank.example", "bank.example.", "shop.example"] {
            assert!(mapper.is_excluded(host), "{host}");
        }
        for host in ["example", "mybank.example", "bank.example.org", ""] {
            assert!(!mapper.is_excluded(host), "{host}");
        }
    }

    #[test]
    fn a_rule_that_cannot_be_meant_is_refused_by_name() {
        type Spoil = fn(&mut Rules);
        let cases: [(Spoil, &str); 6] = [
            (
                |rules| rules.own.push("HOST".to_owned()),
                "own[2]: expected HOST or HOST:PORT in lower case, found `HOST`",
            ),
            (
                |rules| rules.own.push("x.example:0".to_owned()),
                "own[2]: expected HOST or HOST:PORT in lower case, found `x.example:0`",
            ),
            (
                |rules| rules.https_targets.push("other.example".to_owned()),
                "targets.https[1]: expected one of the authorities listed under `own`, found `other.example`",
            ),
            (
                |rules| rules.http_targets.push("198.51.100.12".to_owned()),
                "targets.http[1]: expected one of the authorities listed under `own`, found `198.51.100.12`",
            ),
            (
                |rules| rules.exclude.push("a b".to_owned()),
                "exclude[2]: expected a host name or suffix such as bank.example, found `a b`",
            ),
            (|rules| rules.ports.push(0), "ports[2]: expected a port from 1 to 65535, found `0`"),
        ];
        for (spoil, message) in cases {
            let mut rules = rules();
            spoil(&mut rules);
            assert_eq!(Mapper::new(&rules).map(|_| ()).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn ports_are_split_strictly() {
        for (authority, split) in [
            ("a", Some(("a", None))),
            ("a:1", Some(("a", Some(1)))),
            ("a:65535", Some(("a", Some(65535)))),
            ("[::1]", Some(("[::1]", None))),
            ("[::1]:81", Some(("[::1]", Some(81)))),
            ("a:", None),
            ("a:0", None),
            ("a:080", None),
            ("a:65536", None),
            ("a:+1", None),
            ("a:1x", None),
        ] {
            assert_eq!(split_port(authority), split, "{authority}");
        }
    }
}
