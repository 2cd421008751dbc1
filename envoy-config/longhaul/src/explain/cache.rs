//! The verdict of the cache on a response: the first request that the cache serves, or the reason not to store it.

use std::time::SystemTime;

use http_semantics::Fields;
use longhaul_config::Cache;
use object_rules::storable;
use serde::Serialize;

/// The verdict of the cache on a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CacheFate {
    /// The seconds for which the cache may serve the response. None: it is never stored.
    pub fresh_s: Option<u64>,
    /// The number of the first request for the URL that the cache serves. None: it serves no request.
    pub served_from_request: Option<u8>,
    /// The reason not to store the response, as a label.
    pub reason: Option<&'static str>,
    /// The verdict in a sentence.
    pub explanation: String,
}

impl CacheFate {
    /// Returns the verdict for a request for `path` on `host` without cookies or credentials. Returns None if the box has no
    /// cache.
    pub(super) fn of(cache: &Cache, host: &str, path: &str, response: &Fields<'_>, now: SystemTime) -> Option<Self> {
        if !cache.is_on_disk() {
            return None;
        }
        let groups = cache.host_groups();
        let group = groups.of(host.as_bytes());
        let response = &groups.terms(host.as_bytes(), response.iter().collect());
        let now_s = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let request: Fields<'_> = [(&b":path"[..], path.as_bytes())].into_iter().collect();
        let life = match storable(&request, response, now_s, 0) {
            Ok(life) => life,
            Err(why) => {
                return Some(Self {
                    fresh_s: None,
                    served_from_request: None,
                    reason: Some(why.as_str()),
                    explanation: format!("never cached ({}): {}", why.as_str(), why.explanation()),
                });
            }
        };
        let left_s = life.lifetime_s.saturating_sub(life.initial_age_s);
        let shared = group.map_or(String::new(), |group| format!(", for all hosts of the group of {}", group.name));
        let cookies = if life.public { "also" } else { "but not" };
        let fresh_s = (left_s > 0 && !life.always_validate).then_some(left_s);
        let how = match fresh_s {
            Some(left_s) => format!("served from the cache from the second request on, for {left_s} s"),
            None => "cached, and the origin validates it at each request".to_owned(),
        };
        Some(Self {
            fresh_s,
            served_from_request: fresh_s.map(|_| 2),
            reason: None,
            explanation: format!("{how}, {cookies} for clients with a cookie{shared}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_config::CacheGroup;
    use object_rules::groups::{Covers, Group};
    use std::path::PathBuf;

    #[test]
    fn the_program_serves_the_second_request_or_validates_or_says_why_not() {
        let size = longhaul_config::Bytes(1 << 20);
        let cache = Cache::Disk {
            dir: PathBuf::from("/x"),
            size,
            plain_fields: Vec::new(),
            groups: vec![CacheGroup {
                file: PathBuf::from("/x/updates.txt"),
                group: Group {
                    name: "*.cdn.example".to_owned(),
                    hosts: vec![("cdn.example".to_owned(), Covers::Below)],
                    ignored: Vec::new(),
                    by_validator: true,
                },
            }],
            is_assumed: false,
        };
        let on = |host: &str, path: &str, headers: &[(&str, &str)]| {
            let all = [(":status", "200")].iter().chain(headers);
            let fields = all.map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            CacheFate::of(&cache, host, path, &fields, SystemTime::UNIX_EPOCH).unwrap()
        };
        let of = |path: &str, headers: &[(&str, &str)]| on("www.example", path, headers);
        let fresh = of("/", &[("cache-control", "max-age=60, public")]);
        assert_eq!((fresh.fresh_s, fresh.served_from_request, fresh.reason), (Some(60), Some(2), None));
        assert!(fresh.explanation.contains("second request on, for 60 s, also for"), "{}", fresh.explanation);
        let checked = of("/", &[("cache-control", "no-cache"), ("etag", "\"a\"")]);
        assert_eq!((checked.fresh_s, checked.served_from_request), (None, None));
        assert!(checked.explanation.starts_with("cached, and the origin validates it"), "{}", checked.explanation);
        let never = of("/", &[("cache-control", "max-age=60, private")]);
        assert_eq!(never.reason, Some("private"));
        let signed = [("cache-control", "no-store"), ("etag", "\"a\"")];
        assert_eq!(of("/", &signed).reason, Some("no_store"));
        let grouped = on("a.cdn.example", "/", &signed);
        assert_eq!((grouped.reason, grouped.served_from_request), (None, None));
        assert!(
            grouped.explanation.ends_with("for all hosts of the group of *.cdn.example"),
            "{}",
            grouped.explanation
        );
        assert_eq!(CacheFate::of(&Cache::Off, "www.example", "/", &Fields::default(), SystemTime::UNIX_EPOCH), None);
    }
}
