//! Decides if any client may have a response. The cache and bundling share this rule.
//!
//! Sites do not know that there is a shared cache. So the rule is stricter than RFC 9111 where the RFC relies on a
//! careful origin. A response that sets a cookie is never shared. A response to a request with a cookie is shared only
//! if the origin says so explicitly. In doubt, the response belongs to the client that requested it.
//!
//! | condition | RFC | purposes |
//! |---|---|---|
//! | GET or HEAD, no part of a body | 9111 sections 3 and 3.3 | all; `Content-Range` of other units than bytes, or of all bytes, says nothing for [`Purpose::Store`] (9110 section 14.4) |
//! | a final status of the list | 9111 section 3 | [`Purpose::Store`]: [`STORED`]; [`Purpose::Push`]: 200 |
//! | the same; with a freshness lifetime or `public` also one of [`STORED_IF_STATED`], or an unknown one without `must-understand` | 9111 section 3 | [`Purpose::Store`] |
//! | no targeted field for another kind of cache (`CDN-Cache-Control`) | 9213 section 2.2 | all |
//! | no `no-store` in the request or the response, no `private` | 9111 sections 5.2.1.5, 5.2.2.5, 5.2.2.7 | all; `must-understand` overrides the response's `no-store` for [`Purpose::Store`] (5.2.2.3) |
//! | no field by which the site recognises the client | stricter than 9111 section 7.3 | all |
//! | with `Authorization`: `public`, `s-maxage` or `must-revalidate` | 9111 section 3.5 | all |
//! | with `Cookie`: `public` or `s-maxage` | stricter than 9111 | all |
//! | no `Vary`; [`Purpose::Push`] allows `Accept-Encoding`, [`Purpose::Store`] all but `*` | 9111 section 4.1 | all |

use std::time::SystemTime;

use crate::{Fields, cache_control, labelled};

/// The use that a response is shared for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Transfer to the next client of the same page within moments. The caller handles freshness.
    Push,
    /// Storage in a cache that selects by `Vary`, validates stored responses and handles freshness itself.
    Store,
}

/// The terms on which a response may be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// The rest of the stated freshness lifetime, in seconds.
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
    }
}

/// Statuses that may be stored: heuristically cacheable (RFC 9110 section 15.1; for 451, RFC 7725 section 3) and
/// complete.
pub const STORED: [&[u8]; 12] =
    [b"200", b"203", b"204", b"300", b"301", b"308", b"404", b"405", b"410", b"414", b"451", b"501"];

/// Statuses that [`Purpose::Store`] allows in addition, if the response states a freshness lifetime or says `public` (RFC
/// 9111 section 3).
pub const STORED_IF_STATED: [&[u8]; 9] = [b"302", b"303", b"307", b"400", b"403", b"500", b"502", b"503", b"504"];

/// The other final statuses that are registered. They may concern one client (429), one request (412), or a part of a
/// response (206). RFC 6585 forbids storage of some of them.
const NEVER_STORED: [&[u8]; 38] = [
    b"201", b"202", b"205", b"206", b"207", b"208", b"226", b"304", b"305", b"306", b"401", b"402", b"406", b"407",
    b"408", b"409", b"411", b"412", b"413", b"415", b"416", b"417", b"418", b"421", b"422", b"423", b"424", b"425",
    b"426", b"428", b"429", b"431", b"505", b"506", b"507", b"508", b"510", b"511",
];

/// Statuses that nobody registered, and that concern one client: an expired form or login, a limit of requests, a token.
const UNREGISTERED_FOR_ONE_CLIENT: [&[u8]; 5] = [b"419", b"420", b"430", b"440", b"498"];

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
        Purpose::Push => status == b"200",
        Purpose::Store => {
            let allows_storage = || says("max-age") || says("s-maxage") || says("public") || response.has("expires");
            let allowed = STORED_IF_STATED.contains(&status) || (is_unknown(status) && !says("must-understand"));
            STORED.contains(&status) || (allowed && allows_storage())
        }
    };
    // A status that is not understood is refused above the row of `no-store`.
    let is_overridden = purpose == Purpose::Store && says("must-understand");
    let varies = match purpose {
        Purpose::Push => response.items("vary").any(|item| !item.eq_ignore_ascii_case(b"accept-encoding")),
        Purpose::Store => response.items("vary").any(|item| item == b"*"),
    };
    let says_part = match purpose {
        Purpose::Push => response.has("content-range"),
        Purpose::Store => response.all("content-range").any(may_be_of_part),
    };
    let rows = [
        (!matches!(request.get(":method").unwrap_or(b"GET"), b"GET" | b"HEAD"), Unshared::Method),
        (status == b"206" || request.has("range") || says_part, Unshared::Partial),
        (!good_status, Unshared::Status),
        (response.has("cdn-cache-control"), Unshared::Targeted),
        ((says("no-store") && !is_overridden) || request.lists("cache-control", "no-store"), Unshared::NoStore),
        (says("private"), Unshared::Private),
        (MARKS_THE_CLIENT.iter().any(|name| response.has(name)), Unshared::SetCookie),
        (request.has("authorization") && !public && !says("must-revalidate"), Unshared::Authorization),
        (request.has("cookie") && !public, Unshared::Cookie),
        (varies, Unshared::Vary),
    ];
    if let Some((_, why)) = rows.into_iter().find(|(applies, _)| *applies) {
        return Err(why);
    }
    let lifetime = cache_control::lifetime(response).unwrap_or(0);
    let left = if says("no-cache") { 0 } else { lifetime.saturating_sub(cache_control::age(response, now)) };
    Ok(Freshness { left, public })
}

/// Returns true for a final status that nobody registered. It means the same as the first status of its class (RFC 9110
/// section 15), so a cache that is not told to understand it may store it.
fn is_unknown(status: &[u8]) -> bool {
    let is_final = matches!(status, [b'2'..=b'5', tens, ones] if tens.is_ascii_digit() && ones.is_ascii_digit());
    let lists = [&STORED[..], &STORED_IF_STATED, &NEVER_STORED, &UNREGISTERED_FOR_ONE_CLIENT];
    is_final && !lists.iter().any(|list| list.contains(&status))
}

/// Returns true if this `Content-Range` may be that of a part of a body. The field has no meaning with a status other than
/// 206 and 416 (RFC 9110 section 14.4), and interfaces that list records use it with units of their own. But an origin that
/// names some of the bytes may have sent only those.
fn may_be_of_part(value: &[u8]) -> bool {
    let text = std::str::from_utf8(value).unwrap_or_default();
    let Some((unit, range)) = text.split_at_checked("bytes".len()) else { return false };
    let is_whole = || {
        let (span, total) = range.trim_start().split_once('/')?;
        let (first, last) = span.split_once('-')?;
        let (last, total) = (last.parse::<u64>().ok()?, total.parse::<u64>().ok()?);
        Some(first == "0" && last.checked_add(1) == Some(total))
    };
    unit.eq_ignore_ascii_case("bytes") && !is_whole().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const EVERY: [Purpose; 2] = [Purpose::Push, Purpose::Store];

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
    fn a_stale_response_is_shared_without_a_lifetime() {
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
            for purpose in EVERY {
                assert_eq!(of(purpose, &[], response, now()).map(|fresh| fresh.left), Ok(0), "{response:?}");
            }
        }
        let revalidated = [("cache-control", "no-cache, max-age=60")];
        for purpose in EVERY {
            assert_eq!(of(purpose, &[], &revalidated, now()).map(|fresh| fresh.left), Ok(0));
        }
    }

    #[test]
    fn a_response_for_one_client_is_shared_for_no_purpose() {
        const FRESH: (&str, &str) = ("cache-control", "max-age=60");
        for (request, response, why) in [
            (&[(":method", "POST")][..], &[FRESH][..], Unshared::Method),
            (&[("range", "bytes=0-1")], &[FRESH], Unshared::Partial),
            (&[], &[FRESH, (":status", "206")], Unshared::Partial),
            (&[], &[FRESH, ("content-range", "bytes 0-1/5")], Unshared::Partial),
            (&[], &[FRESH, ("content-range", "Bytes 1-4/5")], Unshared::Partial),
            (&[], &[FRESH, ("content-range", "bytes 0-4/*")], Unshared::Partial),
            (&[], &[FRESH, ("content-range", "bytes=0-4/5")], Unshared::Partial),
            (&[], &[FRESH, ("content-range", "bytes */5")], Unshared::Partial),
            (&[], &[FRESH, ("content-range", "bytes 0-18446744073709551615/0")], Unshared::Partial),
            (&[], &[FRESH, ("content-range", "x"), ("content-range", "bytes 0-1/5")], Unshared::Partial),
            (&[], &[FRESH, (":status", "429")], Unshared::Status),
            (&[], &[FRESH, (":status", "304")], Unshared::Status),
            (&[], &[(":status", "302")], Unshared::Status),
            (&[], &[(":status", "599")], Unshared::Status),
            (&[], &[FRESH, (":status", "199")], Unshared::Status),
            (&[], &[FRESH, (":status", "600")], Unshared::Status),
            (&[], &[FRESH, (":status", "2x9")], Unshared::Status),
            (&[], &[FRESH, (":status", "0299")], Unshared::Status),
            (&[], &[FRESH, (":status", "")], Unshared::Status),
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
            (&[FRESH, (":status", "404")][..], [false, true]),
            (&[(":status", "404")], [false, true]),
            (&[FRESH, (":status", "302")], [false, true]),
            (&[FRESH, (":status", "500")], [false, true]),
            (&[(":status", "503"), ("cache-control", "public")], [false, true]),
            (&[FRESH, (":status", "299")], [false, true]),
            (&[FRESH, (":status", "499")], [false, true]),
            (&[(":status", "599"), ("cache-control", "s-maxage=60")], [false, true]),
            (&[(":status", "599"), ("cache-control", "public")], [false, true]),
            (&[(":status", "599"), ("expires", "0")], [false, true]),
            (&[(":status", "599"), ("etag", "\"a\"")], [false, false]),
            (&[(":status", "599"), ("cache-control", "max-age=60, must-understand")], [false, false]),
            (&[FRESH, ("vary", "Accept-Encoding")], [true, true]),
            (&[FRESH, ("vary", "accept-encoding, cookie")], [false, true]),
            (&[FRESH, ("cache-control", "no-cache")], [true, true]),
            (&[FRESH, ("content-encoding", "gzip")], [true, true]),
            (&[FRESH, ("content-range", "bytes 0-4/5")], [false, true]),
            (&[FRESH, ("content-range", "posts 0-24/319")], [false, true]),
            (&[FRESH, ("content-range", "x")], [false, true]),
            (&[FRESH, ("content-range", "")], [false, true]),
            (&[FRESH, ("content-range", "posts 0-24/319"), (":status", "206")], [false, false]),
            (&[("cache-control", "max-age=60, no-transform")], [true, true]),
            (&[("cache-control", "max-age=60, no-store, must-understand")], [false, true]),
            (&[("cache-control", "max-age=60, no-store, must-understand"), (":status", "418")], [false, false]),
        ] {
            let is_shared = EVERY.map(|purpose| of(purpose, &[], response, now()).is_ok());
            assert_eq!(is_shared, expected, "{response:?}");
        }
    }

    #[test]
    fn no_lifetime_makes_a_known_status_storable_that_is_not_listed() {
        for value in ["max-age=60", "public, s-maxage=60", "public, max-age=60, must-understand"] {
            for status in NEVER_STORED.iter().chain(&UNREGISTERED_FOR_ONE_CLIENT) {
                let status = std::str::from_utf8(status).unwrap();
                let why = if status == "206" { Unshared::Partial } else { Unshared::Status };
                for purpose in EVERY {
                    let found = of(purpose, &[], &[(":status", status), ("cache-control", value)], now());
                    assert_eq!(found, Err(why), "{purpose:?} {status} {value}");
                }
            }
        }
    }

    #[test]
    fn no_status_is_in_two_lists() {
        let mut all: Vec<_> = [&STORED[..], &STORED_IF_STATED, &NEVER_STORED, &UNREGISTERED_FOR_ONE_CLIENT].concat();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
