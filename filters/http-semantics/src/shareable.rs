//! May any client have this response? One answer for the cache, for bundling and for inlining.
//!
//! The sites do not know that there is a shared cache, so the rule is stricter than RFC 9111 where the standard trusts
//! the origin's care: a response that sets a cookie is never shared, and a response to a request with a cookie only if
//! the origin says so itself. In doubt the response belongs to the client that asked.
//!
//! | row | RFC | for |
//! |---|---|---|
//! | GET or HEAD, no part of a body | 9111 sections 3 and 3.3 | all |
//! | a final status of the list | 9111 section 3 | [`Purpose::Cache`]: [`STORED`]; others: 200 |
//! | no policy of its own for caches of another kind (`CDN-Cache-Control`) | 9213 section 2.2 | all |
//! | neither `no-store` (of either side) nor `private` | 9111 sections 5.2.1.5, 5.2.2.5, 5.2.2.7 | all |
//! | nothing that makes the client known to the site | stricter than 9111 section 7.3 | all |
//! | `Authorization`: `public`, `s-maxage` or `must-revalidate` | 9111 section 3.5 | all |
//! | `Cookie`: `public` or `s-maxage` | stricter than 9111 | all |
//! | no `Vary`, or only `Accept-Encoding` | 9111 section 4.1 | [`Purpose::Push`] takes `Accept-Encoding` |
//! | stated freshness is left | 9111 section 4.2 | [`Purpose::Cache`], [`Purpose::Inline`] |
//! | nothing speaks against another page | Fetch (CORP), HTML | [`Purpose::Inline`] |

use std::time::SystemTime;

use crate::{Fields, cache_control, labelled};

/// What the response is shared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Stored, and given to whoever asks for the URL while it is fresh.
    Cache,
    /// Sent to the next client of the same page within moments, so freshness is the caller's matter.
    Push,
    /// Put into pages.
    Inline,
}

/// For how long a response may be shared, and on whose word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// Seconds of stated freshness that are left. 0 occurs with [`Purpose::Push`] only.
    pub left: u64,
    /// The origin says itself that the response is for everybody (`public`, `s-maxage`), also for who bears cookies.
    pub public: bool,
}

labelled! {
    /// Why a response belongs to the client that asked alone.
    Unshared {
        /// Neither GET nor HEAD (RFC 9111 section 3).
        Method = "method";
        /// A part of a body, asked for or not (RFC 9111 section 3.3).
        Partial = "partial";
        /// A status that is not shared (RFC 9111 section 3; a cache must understand what it stores).
        Status = "status";
        /// A policy for caches of another kind, which may say less than `Cache-Control` (RFC 9213).
        Targeted = "targeted";
        /// `no-store` in the request or the response (RFC 9111 sections 5.2.1.5 and 5.2.2.5).
        NoStore = "no_store";
        /// `private` (RFC 9111 section 5.2.2.7).
        Private = "private";
        /// It sets a cookie or another mark by which the site knows the client again.
        SetCookie = "set_cookie";
        /// The request bore `Authorization` (RFC 9111 section 3.5).
        Authorization = "authorization";
        /// The request bore a cookie, and the response does not say that it is for everybody.
        Cookie = "cookie";
        /// It differs by a request header (RFC 9111 section 4.1).
        Vary = "vary";
        /// `no-cache`: every use asks the origin (RFC 9111 section 5.2.2.4).
        NoCache = "no_cache";
        /// No freshness is stated, or none is left (RFC 9111 section 4.2).
        NotFresh = "not_fresh";
        /// It may not be embedded by other sites, or says something that holds for a response of its own alone.
        Embedding = "embedding";
    }
}

/// Statuses that may be stored: RFC 9110 section 15.1 says heuristically cacheable, and Envoy's `cache_v2` stores them.
pub const STORED: [&[u8]; 12] =
    [b"200", b"203", b"204", b"300", b"301", b"308", b"404", b"405", b"410", b"414", b"451", b"501"];

/// By these a site knows a client again, or talks to one client.
const MARKS_THE_CLIENT: [&str; 7] = [
    "set-cookie",
    "set-cookie2",
    "set-login",
    "secure-session-registration",
    "sec-session-registration",
    "www-authenticate",
    "authentication-info",
];

/// Holds for the response as a response: lost, or wrong, once the body stands in a page.
const NOT_IN_PAGES: [&str; 3] = ["content-encoding", "content-disposition", "refresh"];

/// Whether any client may have `response`, which came for `request`, at `now`. Pseudo headers are fields: `:method` of
/// the request (GET where there is none) and `:status` of the response.
///
/// # Errors
/// The first row of the module's table that speaks against it.
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
        Purpose::Push | Purpose::Inline => status == b"200",
    };
    let varies = match purpose {
        Purpose::Cache | Purpose::Inline => response.has("vary"),
        Purpose::Push => response.items("vary").any(|item| !item.eq_ignore_ascii_case(b"accept-encoding")),
    };
    let rows = [
        (!matches!(request.get(":method").unwrap_or(b"GET"), b"GET" | b"HEAD"), Unshared::Method),
        (status == b"206" || request.has("range") || response.has("content-range"), Unshared::Partial),
        (!good_status, Unshared::Status),
        (response.has("cdn-cache-control"), Unshared::Targeted),
        (says("no-store") || request.lists("cache-control", "no-store"), Unshared::NoStore),
        (says("private"), Unshared::Private),
        (MARKS_THE_CLIENT.iter().any(|name| response.has(name)), Unshared::SetCookie),
        (request.has("authorization") && !public && !says("must-revalidate"), Unshared::Authorization),
        (request.has("cookie") && !public, Unshared::Cookie),
        (varies, Unshared::Vary),
        (purpose != Purpose::Push && says("no-cache"), Unshared::NoCache),
        (purpose == Purpose::Inline && !is_embeddable(response), Unshared::Embedding),
    ];
    if let Some((_, why)) = rows.into_iter().find(|(applies, _)| *applies) {
        return Err(why);
    }
    let lifetime = cache_control::lifetime(response).unwrap_or(0);
    let left = if says("no-cache") { 0 } else { lifetime.saturating_sub(cache_control::age(response, now)) };
    if left == 0 && purpose != Purpose::Push {
        return Err(Unshared::NotFresh);
    }
    Ok(Freshness { left, public })
}

/// Whether the body may stand in a page of another site. That it may not be embedded (`Cross-Origin-Resource-Policy`) is
/// one word against it; a style sheet's `Referrer-Policy` says how what it names is asked for, which a page says itself.
fn is_embeddable(response: &Fields<'_>) -> bool {
    let essence = response.get("content-type").unwrap_or_default().split(|&byte| byte == b';').next();
    let is_sheet = essence.unwrap_or_default().trim_ascii().eq_ignore_ascii_case(b"text/css");
    let forbids = response.get("cross-origin-resource-policy").is_some_and(|value| value != b"cross-origin")
        || (is_sheet && response.has("referrer-policy"))
        || NOT_IN_PAGES.iter().any(|name| response.has(name))
        || response.lists("cache-control", "no-transform");
    !forbids
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const EVERY: [Purpose; 3] = [Purpose::Cache, Purpose::Push, Purpose::Inline];

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
    fn what_is_explicitly_fresh_is_shared_for_what_is_left() {
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
    fn what_is_not_fresh_is_pushed_at_once_or_not_shared() {
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
            assert_eq!(of(Purpose::Push, &[], response, now()).map(|fresh| fresh.left), Ok(0), "{response:?}");
            assert_eq!(of(Purpose::Cache, &[], response, now()), Err(Unshared::NotFresh), "{response:?}");
            assert_eq!(of(Purpose::Inline, &[], response, now()), Err(Unshared::NotFresh), "{response:?}");
        }
        let revalidated = [("cache-control", "no-cache, max-age=60")];
        assert_eq!(of(Purpose::Push, &[], &revalidated, now()).map(|fresh| fresh.left), Ok(0));
        assert_eq!(of(Purpose::Cache, &[], &revalidated, now()), Err(Unshared::NoCache));
    }

    #[test]
    fn what_belongs_to_one_client_is_shared_for_no_purpose() {
        const FRESH: (&str, &str) = ("cache-control", "max-age=60");
        for (request, response, why) in [
            (&[(":method", "POST")][..], &[FRESH][..], Unshared::Method),
            (&[("range", "bytes=0-1")], &[FRESH], Unshared::Partial),
            (&[], &[FRESH, (":status", "206")], Unshared::Partial),
            (&[], &[FRESH, ("content-range", "bytes 0-1/5")], Unshared::Partial),
            (&[], &[FRESH, (":status", "302")], Unshared::Status),
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
            (&[], &[FRESH, ("vary", "accept-encoding, cookie")], Unshared::Vary),
            (&[], &[FRESH, ("vary", "*")], Unshared::Vary),
        ] {
            for purpose in EVERY {
                assert_eq!(of(purpose, request, response, now()), Err(why), "{purpose:?} {request:?} {response:?}");
            }
        }
    }

    #[test]
    fn the_origins_word_shares_what_was_asked_for_with_credentials() {
        for word in ["public, max-age=60", "s-maxage=60"] {
            for request in [("cookie", "a=b"), ("authorization", "Basic YTpi")] {
                let fresh = of(Purpose::Cache, &[request], &[("cache-control", word)], now());
                assert_eq!(fresh, Ok(Freshness { left: 60, public: true }), "{word} {request:?}");
            }
        }
        let word = [("cache-control", "must-revalidate, max-age=60")];
        assert!(of(Purpose::Cache, &[("authorization", "Basic YTpi")], &word, now()).is_ok());
    }

    #[test]
    fn purposes_differ_in_status_coding_and_pages() {
        const FRESH: (&str, &str) = ("cache-control", "max-age=60");
        for (response, cache, push, inline) in [
            (&[FRESH, (":status", "404")][..], true, false, false),
            (&[FRESH, ("vary", "Accept-Encoding")], false, true, false),
            (&[FRESH, ("content-encoding", "gzip")], true, true, false),
            (&[FRESH, ("cross-origin-resource-policy", "same-site")], true, true, false),
            (&[FRESH, ("content-type", "text/css; x"), ("referrer-policy", "no-referrer")], true, true, false),
            (&[FRESH, ("content-type", "image/png"), ("referrer-policy", "no-referrer")], true, true, true),
            (&[("cache-control", "max-age=60, no-transform")], true, true, false),
        ] {
            let is_shared = |purpose| of(purpose, &[], response, now()).is_ok();
            let found = (is_shared(Purpose::Cache), is_shared(Purpose::Push), is_shared(Purpose::Inline));
            assert_eq!(found, (cache, push, inline), "{response:?}");
        }
    }
}
