//! The verdict of the cache on a response: the first request that the cache serves, or the reason not to store it.

use std::time::SystemTime;

use cache_admission::Admit;
use http_semantics::Fields;
use http_semantics::shareable::{Purpose, shareable};
use longhaul_config::{Cache, CacheEngine};
use serde::Serialize;

/// The verdict of Envoy's cache on a response.
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
    /// Returns the verdict for a request without cookies or credentials. Returns None if Envoy has no cache of its own.
    pub(super) fn of(cache: &Cache, response: &Fields<'_>, now: SystemTime) -> Option<Self> {
        let Cache::Disk { engine: CacheEngine::Envoy { admit, .. }, .. } = cache else { return None };
        // `Learned` learns from the first response and stores the second. `First` stores the first.
        let (nth, number) = match admit {
            Admit::Learned => ("third", 3),
            Admit::First => ("second", 2),
        };
        Some(match shareable(Purpose::Cache, &Fields::default(), response, now) {
            Ok(fresh) => {
                let cookies = if fresh.public { "also" } else { "but not" };
                Self {
                    fresh_s: Some(fresh.left),
                    served_from_request: Some(number),
                    reason: None,
                    explanation: format!(
                        "served from the cache from the {nth} request on, for {} s, {cookies} to clients with a cookie",
                        fresh.left
                    ),
                }
            }
            Err(why) => Self {
                fresh_s: None,
                served_from_request: None,
                reason: Some(why.as_str()),
                explanation: format!("never cached ({}): {}", why.as_str(), why.sentence()),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn of(admit: Admit, headers: &[(&str, &str)]) -> CacheFate {
        let size = longhaul_config::units::Bytes(1 << 20);
        let cache = Cache::Disk {
            dir: PathBuf::from("/x"),
            size,
            engine: CacheEngine::Envoy { admit, plain_fields: Vec::new() },
        };
        let fields =
            [(":status", "200")].iter().chain(headers).map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        CacheFate::of(&cache, &fields.collect(), SystemTime::UNIX_EPOCH).unwrap()
    }

    #[test]
    fn a_response_is_served_from_the_third_request_on_or_never_with_the_reason() {
        let learned = of(Admit::Learned, &[("cache-control", "max-age=60")]);
        assert_eq!((learned.fresh_s, learned.served_from_request, learned.reason), (Some(60), Some(3), None));
        assert!(learned.explanation.contains("third request on, for 60 s, but not"), "{}", learned.explanation);
        let first = of(Admit::First, &[("cache-control", "public, max-age=60")]);
        assert_eq!(first.served_from_request, Some(2));
        assert!(first.explanation.contains("also to clients with a cookie"), "{}", first.explanation);
        let never = of(Admit::Learned, &[("cache-control", "max-age=60"), ("set-cookie", "a=b")]);
        assert_eq!((never.fresh_s, never.reason), (None, Some("set_cookie")));
        assert!(never.explanation.contains("sets a cookie"), "{}", never.explanation);
        assert_eq!(CacheFate::of(&Cache::Off, &Fields::default(), SystemTime::UNIX_EPOCH), None);
    }
}
