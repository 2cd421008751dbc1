//! Groups of hosts that serve the same objects, as the operator declares: the servers of one service for updates.

use std::borrow::Cow;
use std::collections::HashMap;

use http_semantics::Fields;
use serde::{Deserialize, Serialize};

/// The names that an entry of a group covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Covers {
    /// The name alone.
    Exact,
    /// The name, and all names below it.
    Tree,
    /// All names below it.
    Below,
}

/// A group of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The host in the keys of its objects. No host outside the group may have this name.
    pub name: String,
    /// Its hosts, in lower case.
    pub hosts: Vec<(String, Covers)>,
    /// Parameters of queries that choose no response.
    pub ignored: Vec<String>,
    /// True if a response with a validator is stored whatever its other fields say. It is validated at each use.
    pub by_validator: bool,
}

/// The groups of a cache.
#[derive(Debug, Default)]
pub struct Groups {
    groups: Vec<Group>,
    /// The groups of each name.
    of_name: HashMap<String, Vec<(Covers, usize)>>,
}

impl Groups {
    /// If two groups cover a host, the entry with the longer name decides, then the first group.
    pub fn new(groups: Vec<Group>) -> Self {
        let mut of_name: HashMap<String, Vec<(Covers, usize)>> = HashMap::new();
        for (index, group) in groups.iter().enumerate() {
            for (name, covers) in &group.hosts {
                of_name.entry(name.clone()).or_default().push((*covers, index));
            }
        }
        Self { groups, of_name }
    }

    /// Returns the group of a host: its name in any case, without a port or with port 80.
    pub fn of(&self, host: &[u8]) -> Option<&Group> {
        if self.groups.is_empty() {
            return None;
        }
        let host = std::str::from_utf8(host).ok()?.to_ascii_lowercase();
        let host = host.strip_suffix(":80").unwrap_or(&host);
        let parents = std::iter::successors(Some(host), |name| name.split_once('.').map(|(_, parent)| parent));
        let index = parents.enumerate().find_map(|(above, name)| {
            let covers = |covers: Covers| match covers {
                Covers::Exact => above == 0,
                Covers::Tree => true,
                Covers::Below => above > 0,
            };
            self.of_name.get(name)?.iter().find(|(entry, _)| covers(*entry)).map(|(_, index)| *index)
        });
        self.groups.get(index?)
    }

    /// Returns the fields of a response by which it is stored: those of the origin, unless the operator overrides them for the
    /// host.
    pub fn terms<'f>(&self, host: &[u8], response: Fields<'f>) -> Fields<'f> {
        self.of(host).and_then(|group| group.terms(&response)).unwrap_or(response)
    }

    /// Returns the host and the path that name an object in the cache: those of its group, or its own.
    pub fn named<'r>(&'r self, host: &'r [u8], path: &'r [u8]) -> (&'r [u8], Cow<'r, [u8]>) {
        self.of(host).map_or((host, Cow::Borrowed(path)), |group| (group.name.as_bytes(), group.path(path)))
    }
}

impl Group {
    /// Returns the path without the ignored parameters of its query.
    fn path<'p>(&self, path: &'p [u8]) -> Cow<'p, [u8]> {
        let Some(at) = path.iter().position(|&byte| byte == b'?').filter(|_| !self.ignored.is_empty()) else {
            return Cow::Borrowed(path);
        };
        let (own, query) = path.split_at(at);
        let is_kept = |parameter: &&[u8]| {
            let name = parameter.split(|&byte| byte == b'=').next().unwrap_or_default();
            !self.ignored.iter().any(|ignored| ignored.as_bytes() == name)
        };
        let query = query.get(1..).unwrap_or_default();
        let kept: Vec<&[u8]> = query.split(|&byte| byte == b'&').filter(is_kept).collect();
        let query = if kept.is_empty() { Vec::new() } else { [b"?", kept.join(&b'&').as_slice()].concat() };
        Cow::Owned([own, &query].concat())
    }

    /// Returns the fields in place of those of a response whose validator decides alone: its `Cache-Control` says that it is
    /// validated at each use.
    fn terms<'f>(&self, response: &Fields<'f>) -> Option<Fields<'f>> {
        let is_meant = response.status() == 304 || ["etag", "last-modified"].iter().any(|name| response.has(name));
        if !self.by_validator || !is_meant {
            return None;
        }
        let kept = response.iter().filter(|(name, _)| !OVERRIDDEN.contains(name));
        Some(kept.chain([(&b"cache-control"[..], VALIDATED)]).collect())
    }
}

/// The `Cache-Control` of a response that is validated at each use (RFC 9111 section 5.2.2.4).
const VALIDATED: &[u8] = b"no-cache";
/// The fields by which an origin decides about storage and lifetime.
const OVERRIDDEN: [&[u8]; 5] = [b"cache-control", b"cdn-cache-control", b"expires", b"pragma", b"surrogate-control"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Past, storable};

    fn group(name: &str, hosts: &[(&str, Covers)]) -> Group {
        let hosts = hosts.iter().map(|(name, covers)| ((*name).to_owned(), *covers)).collect();
        Group { name: name.to_owned(), hosts, ignored: vec!["key".to_owned(), "P1".to_owned()], by_validator: true }
    }

    fn groups() -> Groups {
        Groups::new(vec![
            group("*.games.example", &[("games.example", Covers::Below), ("play.test", Covers::Exact)]),
            group("updates.example", &[("updates.example", Covers::Tree), ("old.games.example", Covers::Exact)]),
        ])
    }

    #[test]
    fn the_entry_with_the_longer_name_decides() {
        let groups = groups();
        for (host, expected) in [
            ("a.games.example", Some("*.games.example")),
            ("A.B.Games.Example:80", Some("*.games.example")),
            ("games.example", None),
            ("play.test", Some("*.games.example")),
            ("a.play.test", None),
            ("old.games.example", Some("updates.example")),
            ("a.old.games.example", Some("*.games.example")),
            ("updates.example", Some("updates.example")),
            ("dl.updates.example", Some("updates.example")),
            ("dl.updates.example:8080", None),
            ("evilupdates.example", None),
            ("example", None),
            ("", None),
        ] {
            assert_eq!(groups.of(host.as_bytes()).map(|group| group.name.as_str()), expected, "{host}");
        }
        assert!(Groups::default().of(b"updates.example").is_none());
    }

    #[test]
    fn the_hosts_of_a_group_share_names_without_the_ignored_parameters() {
        let groups = groups();
        for (host, path, expected) in [
            ("a.games.example", "/a.bin", ("*.games.example", "/a.bin")),
            ("b.games.example", "/a.bin?key=x", ("*.games.example", "/a.bin")),
            ("b.games.example", "/a.bin?P1=2&part=3&key", ("*.games.example", "/a.bin?part=3")),
            ("b.games.example", "/a.bin?keys=1&p1=2", ("*.games.example", "/a.bin?keys=1&p1=2")),
            ("b.games.example", "/a.bin?", ("*.games.example", "/a.bin?")),
            ("WWW.test", "/a.bin?key=x", ("WWW.test", "/a.bin?key=x")),
        ] {
            let (host, path) = groups.named(host.as_bytes(), path.as_bytes());
            assert_eq!((host, &*path), (expected.0.as_bytes(), expected.1.as_bytes()));
        }
    }

    #[test]
    fn a_response_with_a_validator_is_stored_whatever_its_lifetime_is() {
        let fields = |list: &[(&'static str, &'static str)]| -> Fields<'static> {
            list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
        };
        let one = group("a.example", &[]);
        let stored = |group: &Group, status, more: &[(&'static str, &'static str)]| {
            let own = [(":status", status), ("cache-control", "no-store"), ("expires", "0")];
            let response = fields(&[&own[..], more].concat());
            let terms = group.terms(&response);
            storable(&fields(&[]), terms.as_ref().unwrap_or(&response), 1_000_000, 0).map(|life| life.always_validate)
        };
        let tag = [("etag", "\"a\"")];
        assert_eq!(stored(&one, "200", &tag), Ok(true));
        assert_eq!(stored(&one, "200", &[("last-modified", "Sat, 21 Nov 2026 13:00:00 GMT")]), Ok(true));
        assert_eq!(stored(&one, "200", &[]), Err(Past::NoStore));
        assert_eq!(stored(&one, "200", &[tag[0], ("set-cookie", "a=b")]), Err(Past::SetCookie));
        assert!(one.terms(&fields(&[(":status", "304"), ("cache-control", "no-store")])).is_some());
        assert_eq!(stored(&Group { by_validator: false, ..one }, "200", &tag), Err(Past::NoStore));
    }
}
