//! Decides if any client may have a response. The cache and bundling share this rule.
//!
//! Sites do not know that there is a shared cache. So the rule is stricter than RFC 9111 where the RFC relies on a
//! careful origin. A response that sets a cookie is never shared. A response to a request with a cookie is shared only
//! if the origin says so explicitly. In doubt, the response belongs to the client that requested it.
//!
//! | condition | RFC | purposes |
//! |---|---|---|
//! | GET or HEAD, no part of a body | 9111 sections 3 and 3.3 | all |
//! | a final status of the list | 9111 section 3 | [`Purpose::Cache`]: [`STORED`]; [`Purpose::Push`]: 200 |
//! | the same, or one of [`STORED_IF_STATED`] with a freshness lifetime | 9111 section 3 | [`Purpose::Store`] |
//! | no targeted field for another kind of cache (`CDN-Cache-Control`) | 9213 section 2.2 | all |
//! | no `no-store` in the request or the response, no `private` | 9111 sections 5.2.1.5, 5.2.2.5, 5.2.2.7 | all; `must-understand` overrides the response's `no-store` for [`Purpose::Store`] (5.2.2.3) |
//! | no field by which the site recognises the client | stricter than 9111 section 7.3 | all |
//! | with `Authorization`: `public`, `s-maxage` or `must-revalidate` | 9111 section 3.5 | all |
//! | with `Cookie`: `public` or `s-maxage` | stricter than 9111 | all |
//! | no `Vary`; [`Purpose::Push`] allows `Accept-Encoding`, [`Purpose::Store`] all but `*` | 9111 section 4.1 | all |
//! | no `no-cache` | 9111 section 5.2.2.4 | [`Purpose::Cache`] |
//! | some of the stated freshness lifetime is left | 9111 section 4.2 | [`Purpose::Cache`] |

use std::time::SystemTime;

use crate::{Fields, cache_control, labelled};

/// The use that a response is shared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Storage in the cache, which serves the response to every client while it is fresh.
    Cache,
    /// Transfer to the next client of the same page within moments. The caller handles freshness.
    Push,
    /// Storage in a cache that selects by `Vary`, validates stored responses and handles freshness itself.
    Store,
}

/// The terms on which a response may be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// Remaining freshness lifetime in seconds. 0 does not occur with [`Purpose::Cache`].
    pub left: u64,
    /// True if the origin shares the response explicitly (`public`, `s-maxage`), also with clients that send cookies.
    pub public: bool,
}

labelled! {
    /// The reason why a response belongs only to the client that requested it.
    Unshared {
        /// The method is neither GET nor HEAD (RFC 9111 section 3).
        Method = "method";
        /// The request or the response concerns a part of a body (RFC 9111 section 3.3).
        Partial = "partial";
        /// The status is not one that is shared (RFC 9111 section 3).
        Status = "status";
        /// `CDN-Cache-Control`, a policy for another kind of cache, may allow less than `Cache-Control` (RFC 9213).
        Targeted = "targeted";
        /// `no-store` in the request or the response (RFC 9111 sections 5.2.1.5 and 5.2.2.5).
        NoStore = "no_store";
        /// `private` (RFC 9111 section 5.2.2.7).
        Private = "private";
        /// The response sets a cookie, or has another field by which the site recognises the client.
        SetCookie = "set_cookie";
        /// The request had `Authorization`, and the response does not allow sharing (RFC 9111 section 3.5).
        Authorization = "authorization";
        /// The request had a cookie, and the response says neither `public` nor `s-maxage`.
        Cookie = "cookie";
        /// The response depends on request fields (`Vary`, RFC 9111 section 4.1).
        Vary = "vary";
        /// `no-cache`: every use needs validation by the origin (RFC 9111 section 5.2.2.4).
        NoCache = "no_cache";
        /// The response states no freshness lifetime, or none of it is left (RFC 9111 section 4.2).
        NotFresh = "not_fresh";
    }
}

/// Statuses that may be stored: heuristically cacheable (RFC 9110 section 15.1; for 451, RFC 7725 section 3), complete,
/// and stored by Envoy's `cache_v2`.
pub const STORED: [&[u8]; 12] =
    [b"200", b"203", b"204", b"300", b"301", b"308", b"404", b"405", b"410", b"414", b"451", b"501"];

/// Statuses that [`Purpose::Store`] allows in addition, if the response states a freshness lifetime (RFC 9111 section 3).
/// Others may concern one client (429), one request (412), or nothing that this list knows.
pub const STORED_IF_STATED: [&[u8]; 9] = [b"302", b"303", b"307", b"400", b"403", b"500", b"502", b"503", b"504"];

/// Fields by which a site recognises a client, or addresses a single client.
const MARKS_THE_CLIENT: [&str; 7] = [
    "set-cookie",
    "set-cookie2",
    "set-login",
    "secure-session-registration",
    "sec-session-registration",
    "www-authenticate",
    "authentication-info",
];

/// Decides if any client may have `response` to `request` at `now`. Pseudo-header fields count as fields: `:method` of
/// the request (GET by default) and `:status` of the response.
///
/// # Errors
/// The first condition in the module's table that does not hold.
pub fn shareable(
    purpose: Purpose,
    request: &Fields<'_>,
    response: &Fields<'_>,
    now: SystemTime,
) -> Result<Freshness, Unshared> {
    let says = |directive| response.lists("cache-control", directive);
    let public = says("public") || says("s-maxage");
    let status = response.get(":status").unwrap_or_default();
    let good_status = match purpose {
        Purpose::Cache => STORED.contains(&status),
        Purpose::Push => status == b"200",
        Purpose::Store => {
            let states_lifetime = || says("max-age") || says("s-maxage") || response.has("expires");
            STORED.contains(&status) || (STORED_IF_STATED.contains(&status) && states_lifetime())
        }
    };
    // A status that is not understood is refused above the row of `no-store`.
    let is_overridden = purpose == Purpose::Store && says("must-understand");
    let varies = match purpose {
        Purpose::Cache => response.has("vary"),
        Purpose::Push => response.items("vary").any(|item| !item.eq_ignore_ascii_case(b"accept-encoding")),
        Purpose::Store => response.items("vary").any(|item| item == b"*"),
    };
    let rows = [
        (!matches!(request.get(":method").unwrap_or(b"GET"), b"GET" | b"HEAD"), Unshared::Method),
        (status == b"206" || request.has("range") || response.has("content-range"), Unshared::Partial),
        (!good_status, Unshared::Status),
        (response.has("cdn-cache-control"), Unshared::Targeted),
        ((says("no-store") && !is_overridden) || request.lists("cache-control", "no-store"), Unshared::NoStore),
        (says("private"), Unshared::Private),
        (MARKS_THE_CLIENT.iter().any(|name| response.has(name)), Unshared::SetCookie),
        (request.has("authorization") && !public && !says("must-revalidate"), Unshared::Authorization),
        (request.has("cookie") && !public, Unshared::Cookie),
        (varies, Unshared::Vary),
        (purpose == Purpose::Cache && says("no-cache"), Unshared::NoCache),
    ];
    if let Some((_, why)) = rows.into_iter().find(|(applies, _)| *applies) {
        return Err(why);
    }
    let lifetime = cache_control::lifetime(response).unwrap_or(0);
    let left = if says("no-cache") { 0 } else { lifetime.saturating_sub(cache_control::age(response, now)) };
    if left == 0 && purpose == Purpose::Cache {
        return Err(Unshared::NotFresh);
    }
    Ok(Freshness { left, public })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const EVERY: [Purpose; 3] = [Purpose::Cache, Purpose::Push, Purpose::Store];

    /// Sat, 21 Nov 2026 13:00:00 GMT
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_hours(498_685)
    }

    fn of(
        purpose: Purpose,
        request: &[(&str, &str)],
        response: &[(&str, &str)],
        now: SystemTime,
    ) -> Result<Freshness, Unshared> {
        let fields = |list: &[(&'static str, &'static str)]| -> Fields<'static> {
            list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
        };
        // Leaked so that the tables below stay readable.
        let own = |list: &[(&str, &str)]| -> Vec<(&'static str, &'static str)> {
            list.iter().map(|(n, v)| (&*n.to_string().leak(), &*v.to_string().leak())).collect()
        };
        let mut response = own(response);
        if !response.iter().any(|(name, _)| *name == ":status") {
            response.push((":status", "200"));
        }
        shareable(purpose, &fields(&own(request)), &fields(&response), now)
    }

    #[test]
    fn an_explicitly_fresh_response_is_shared_for_the_rest_of_its_time() {
        for (response, left, public) in [
            (&[("cache-control", "max-age=60")][..], 60, false),
            (&[("cache-control", "public, Max-Age=\"60\"")], 60, true),
            (&[("cache-control", "max-age=5, s-maxage=60")], 60, true),
            (&[("cache-control", "max-age=60"), ("age", "50")], 10, false),
            (&[("cache-control", "max-age=60"), ("date", "Sat, 21 Nov 2026 12:59:30 GMT")], 30, false),
            (&[("date", "Sat, 21 Nov 2026 13:00:00 GMT"), ("expires", "Sat, 21 Nov 2026 13:01:00 GMT")], 60, false),
        ] {
            for purpose in EVERY {
                assert_eq!(
                    of(purpose, &[], response, now()),
                    Ok(Freshness { left, public }),
                    "{purpose:?} {response:?}"
                );
            }
        }
    }

    #[test]
    fn a_stale_response_is_pushed_at_once_or_not_shared() {
        for response in [
            &[][..],
            &[("cache-control", "public")],
            &[("cache-control", "max-age=0")],
            &[("cache-control", "max-age=soon")],
            &[("cache-control", "max-age=60, s-maxage=soon")],
            &[("cache-control", "max-age=60"), ("age", "60")],
            &[("cache-control", "max-age=60"), ("date", "Sat, 21 Nov 2026 12:58:00 GMT")],
            &[("expires", "Sat, 21 Nov 2026 13:01:00 GMT")],
            &[("date", "Sat, 21 Nov 2026 13:02:00 GMT"), ("expires", "Sat, 21 Nov 2026 13:01:00 GMT")],
        ] {
            for purpose in [Purpose::Push, Purpose::Store] {
                assert_eq!(of(purpose, &[], response, now()).map(|fresh| fresh.left), Ok(0), "{response:?}");
            }
            assert_eq!(of(Purpose::Cache, &[], response, now()), Err(Unshared::NotFresh), "{response:?}");
        }
        let revalidated = [("cache-control", "no-cache, max-age=60")];
        for purpose in [Purpose::Push, Purpose::Store] {
            assert_eq!(of(purpose, &[], &revalidated, now()).map(|fresh| fresh.left), Ok(0));
        }
        assert_eq!(of(Purpose::Cache, &[], &revalidated, now()), Err(Unshared::NoCache));
    }

    #[test]
    fn a_response_for_one_client_is_shared_for_no_purpose() {
        const FRESH: (&str, &str) = ("cache-control", "max-age=60");
        for (request, response, why) in [
            (&[(":method", "POST")][..], &[FRESH][..], Unshared::Method),
            (&[("range", "bytes=0-1")], &[FRESH], Unshared::Partial),
            (&[], &[FRESH, (":status", "206")], Unshared::Partial),
            (&[], &[FRESH, ("content-range", "bytes 0-1/5")], Unshared::Partial),
            (&[], &[FRESH, (":status", "429")], Unshared::Status),
            (&[], &[FRESH, (":status", "304")], Unshared::Status),
            (&[], &[(":status", "302")], Unshared::Status),
            (&[], &[(":status", "503"), ("cache-control", "public")], Unshared::Status),
            (&[("cache-control", "no-store")], &[FRESH], Unshared::NoStore),
            (&[], &[FRESH, ("cache-control", "No-Store")], Unshared::NoStore),
            (&[], &[FRESH, ("cdn-cache-control", "no-store")], Unshared::Targeted),
            (&[], &[("cache-control", "Private, max-age=60")], Unshared::Private),
            (&[], &[("cache-control", "private=\"x\", max-age=60")], Unshared::Private),
            (&[], &[("cache-control", "public, s-maxage=60"), ("set-cookie", "a=b")], Unshared::SetCookie),
            (&[], &[("cache-control", "no-cache=\"set-cookie\", public"), ("set-cookie", "a=b")], Unshared::SetCookie),
            (&[], &[FRESH, ("www-authenticate", "Basic")], Unshared::SetCookie),
            (&[("authorization", "Basic YTpi")], &[FRESH], Unshared::Authorization),
            (&[("cookie", "a=b")], &[FRESH], Unshared::Cookie),
            (&[("cookie", "a=b")], &[("cache-control", "must-revalidate, max-age=60")], Unshared::Cookie),
            (&[], &[FRESH, ("vary", "*")], Unshared::Vary),
            (&[], &[FRESH, ("vary", "accept-encoding, *")], Unshared::Vary),
        ] {
            for purpose in EVERY {
                assert_eq!(of(purpose, request, response, now()), Err(why), "{purpose:?} {request:?} {response:?}");
            }
        }
    }

    #[test]
    fn a_response_to_credentials_is_shared_if_the_origin_allows_it() {
        for word in ["public, max-age=60", "s-maxage=60"] {
            for request in [("cookie", "a=b"), ("authorization", "Basic YTpi")] {
                for purpose in EVERY {
                    let fresh = of(purpose, &[request], &[("cache-control", word)], now());
                    assert_eq!(fresh, Ok(Freshness { left: 60, public: true }), "{word} {request:?}");
                }
            }
        }
        let word = [("cache-control", "must-revalidate, max-age=60")];
        for purpose in EVERY {
            assert!(of(purpose, &[("authorization", "Basic YTpi")], &word, now()).is_ok());
        }
    }

    #[test]
    fn purposes_differ_in_status_variants_and_validation() {
        const FRESH: (&str, &str) = ("cache-control", "max-age=60");
        for (response, expected) in [
            (&[FRESH, (":status", "404")][..], [true, false, true]),
            (&[(":status", "404")], [false, false, true]),
            (&[FRESH, (":status", "302")], [false, false, true]),
            (&[FRESH, (":status", "500")], [false, false, true]),
            (&[FRESH, ("vary", "Accept-Encoding")], [false, true, true]),
            (&[FRESH, ("vary", "accept-encoding, cookie")], [false, false, true]),
            (&[FRESH, ("cache-control", "no-cache")], [false, true, true]),
            (&[FRESH, ("content-encoding", "gzip")], [true, true, true]),
            (&[("cache-control", "max-age=60, no-transform")], [true, true, true]),
            (&[("cache-control", "max-age=60, no-store, must-understand")], [false, false, true]),
            (&[("cache-control", "max-age=60, no-store, must-understand"), (":status", "418")], [false, false, false]),
        ] {
            let is_shared = EVERY.map(|purpose| of(purpose, &[], response, now()).is_ok());
            assert_eq!(is_shared, expected, "{response:?}");
        }
    }
}
