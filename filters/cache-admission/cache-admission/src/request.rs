//! The way of a request: past the cache, into it, or to a stored response.

use http_semantics::accept_encoding::{change_for_origin, for_origin, takes_gzip};
use http_semantics::{Edit, Fields, labelled};
use image_variants::{key, request as image_request};

use crate::config::{Admit, Rules};
use crate::judge::Asker;
use crate::marks;
use crate::plain::is_plain;
use crate::table::{Known, Url};

/// The way of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the origin. The cache does not see the request.
    Past,
    /// Through the hop `fetch`, whose cache takes the response.
    Fill {
        /// True if a stored response needs validation.
        anew: bool,
    },
    /// To the cache of the outer hop.
    Hit,
    /// A 504: the client accepts only a stored response, and there is none.
    Refuse,
}

labelled! {
    /// The reason for the way of a request.
    Reason {
        /// The response is stored and fresh: from the cache.
        Held = "held";
        /// An earlier response was storable: this one fills the cache.
        Storable = "storable";
        /// A filter is fetching the response at this moment: the request joins.
        Coming = "coming";
        /// The response is stored, but the client sent `no-cache`, `max-age` or `min-fresh`: through the cache.
        Reload = "reload";
        /// `cache.admit: first`, and nothing is known of the URL: this response may fill the cache.
        First = "first";
        /// Nothing is known of the URL: past the cache.
        Unknown = "unknown";
        /// The method is neither GET nor HEAD, or it is HEAD and the response is not stored.
        Method = "method";
        /// The request has a body.
        Body = "body";
        /// The request is for a part (`Range`).
        Range = "range";
        /// The request is conditional (`If-*`): only the origin knows if the client's copy is valid.
        Conditional = "conditional";
        /// The request has `Authorization`.
        Authorization = "authorization";
        /// The request has a cookie, and the origin does not share the response explicitly.
        Cookie = "cookie";
        /// The client sent `no-store`.
        NoStore = "no_store";
        /// An origin may choose its response by a field that is no part of the cache key.
        Unkeyed = "unkeyed";
        /// The path is one under which the cache stores variants of images.
        Reserved = "reserved";
        /// The client sent `only-if-cached`, and no stored response is available: 504 (RFC 9111 section 5.2.1.7).
        OnlyIfCached = "only_if_cached";
    }
}

impl Reason {
    /// Returns the way that belongs to the reason.
    pub const fn way(self) -> Way {
        match self {
            Self::Held => Way::Hit,
            Self::Coming | Self::Reload => Way::Fill { anew: false },
            Self::Storable | Self::First => Way::Fill { anew: true },
            Self::OnlyIfCached => Way::Refuse,
            _ => Way::Past,
        }
    }
}

/// The decision about a request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The facts that its response needs.
    pub asked: Asked,
    /// Edits of the header list.
    pub edits: Vec<Edit>,
    /// True if a 504 takes the place of the response.
    pub refused: bool,
}

/// The facts about a request that are kept until its response comes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Asked {
    /// The reason for its way.
    pub reason: Reason,
    /// The URL. None if the request lacks a part of it.
    pub url: Option<Url>,
    /// True if the response may teach that the next one may be stored.
    pub teaches: bool,
    /// True if a successful response makes entries of the table untrue (RFC 9111 section 4.4).
    pub unsafe_method: bool,
    /// True if the request has a cookie.
    pub with_cookie: bool,
    /// True if the origin's response may be replaced by a variant. Then `url` is the variant's.
    pub variant: bool,
    /// True if the client accepts gzip.
    pub takes_gzip: bool,
}

const CONDITIONS: [&str; 5] = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range"];

/// Fields of the proxies before this one. Some servers choose a response by them, and they are no part of the cache key.
/// So the origin does not see them with a request that may fill the cache. On GET and HEAD they say nothing else: a
/// recipient may ignore `Max-Forwards` there (RFC 9110 section 7.6.2), and `CDN-Loop` detects loops in place of `Via`.
const OF_PROXIES: [&str; 2] = ["max-forwards", "via"];

/// Decides about a request of a client. Calls `look` to read the table, at most once.
pub fn decide(rules: Rules<'_>, fields: &Fields<'_>, look: impl FnOnce(&Url) -> Option<Known>) -> Decision {
    let asked = ask(rules, fields, look);
    let variant = asked.url.as_ref().filter(|_| asked.variant).map(as_variant);
    let way = asked.reason.way();
    let judged: Edit = Edit::Set(marks::JUDGE, Asker::Client.as_str().into());
    let set: Vec<Edit> = match way {
        Way::Past | Way::Refuse => Vec::new(),
        Way::Hit => vec![Edit::Set(marks::WAY, b"hit".to_vec()), judged],
        // Regardless of the client's own `Cache-Control`: an invalidated stored response must not come back.
        Way::Fill { anew: true } => {
            vec![Edit::Set(marks::WAY, b"fill".to_vec()), Edit::Set(marks::ANEW, marks::anew(fields))]
        }
        Way::Fill { anew: false } => vec![Edit::Set(marks::WAY, b"fill".to_vec())],
    };
    let encoding = |value: &str| Edit::Set("accept-encoding", value.into());
    let accepts = match way {
        Way::Hit | Way::Fill { .. } if !asked.takes_gzip => {
            vec![encoding("gzip"), Edit::Set(marks::ACCEPT, marks::accept(for_origin(fields)))]
        }
        // A filter in front may have done the same, and then nothing is left to do.
        _ => change_for_origin(fields).map(encoding).into_iter().collect(),
    };
    let set: Vec<Edit> = set.into_iter().chain(variant.into_iter().flatten()).chain(accepts).collect();
    let is_set = |name: &str| set.iter().any(|edit| matches!(edit, Edit::Set(set, _) if *set == name));
    let forged = [marks::WAY, marks::ANEW, marks::ACCEPT, marks::JUDGE, key::MARK]
        .into_iter()
        .filter(|name| fields.has(name) && !is_set(name));
    let may_fill = matches!(way, Way::Hit | Way::Fill { .. });
    let of_proxies = OF_PROXIES.into_iter().filter(|name| may_fill && fields.has(name));
    let edits = forged.chain(of_proxies).map(Edit::remove).chain(set.iter().cloned()).collect();
    Decision { asked, edits, refused: way == Way::Refuse }
}

fn ask(rules: Rules<'_>, fields: &Fields<'_>, look: impl FnOnce(&Url) -> Option<Known>) -> Asked {
    let method = fields.get(":method").unwrap_or_default();
    let (url, variant) = target(fields, rules.images);
    let with_cookie = fields.has("cookie");
    let takes_gzip = takes_gzip(fields);
    let past = |reason| Asked {
        reason,
        url: url.clone(),
        teaches: false,
        unsafe_method: false,
        with_cookie,
        variant,
        takes_gzip,
    };
    if !matches!(method, b"GET" | b"HEAD") {
        let is_safe = matches!(method, b"OPTIONS" | b"TRACE" | b"CONNECT" | b"PROPFIND" | b"REPORT" | b"SEARCH");
        return Asked { unsafe_method: !is_safe, ..past(Reason::Method) };
    }
    let Some(known_url) = &url else { return past(Reason::Unknown) };
    let says = |directive| fields.lists("cache-control", directive);
    // An origin with such a path of its own must not fill the place of a variant.
    let is_reserved = fields.get(":path").is_some_and(|path| path.starts_with(key::PREFIX));
    let rows = [
        (is_reserved, Reason::Reserved),
        (fields.get("content-length").is_some_and(|length| length != b"0"), Reason::Body),
        (fields.has("transfer-encoding"), Reason::Body),
        (fields.has("range"), Reason::Range),
        (fields.has("authorization"), Reason::Authorization),
        (says("no-store"), Reason::NoStore),
        (!fields.iter().all(|(name, _)| is_plain(name, rules.plain)), Reason::Unkeyed),
        (CONDITIONS.iter().any(|name| fields.has(name)), Reason::Conditional),
    ];
    if let Some((_, reason)) = rows.into_iter().find(|(applies, _)| *applies) {
        return past(reason);
    }
    let known = look(known_url);
    let is_head = method == b"HEAD";
    let is_public = matches!(known, Some(Known::Held { public: true } | Known::Storable { public: true }));
    let wants_origin = says("no-cache") || fields.lists("pragma", "no-cache") || wants_no_age(fields);
    let reason = match known {
        _ if with_cookie && !is_public => Reason::Cookie,
        Some(Known::Held { .. }) if !wants_origin => Reason::Held,
        _ if says("only-if-cached") => Reason::OnlyIfCached,
        _ if is_head => Reason::Method,
        Some(Known::Held { .. }) => Reason::Reload,
        Some(Known::Storable { .. }) => Reason::Storable,
        Some(Known::Coming) => Reason::Coming,
        None if rules.admit == Admit::First => Reason::First,
        None => Reason::Unknown,
    };
    let reason = if reason == Reason::Cookie && says("only-if-cached") { Reason::OnlyIfCached } else { reason };
    Asked { reason, teaches: !is_head, unsafe_method: false, with_cookie, url, variant, takes_gzip }
}

/// Returns the URL under which the cache stores the response. It is a variant's, and the second value is true, if
/// `images` says that there are variants and the request accepts one.
pub(crate) fn target(fields: &Fields<'_>, images: bool) -> (Option<Url>, bool) {
    if images && image_request::left(fields).is_none() { (variant_url(fields), true) } else { (url(fields), false) }
}

/// Returns edits that turn a request into one for the variant at `url`.
pub(crate) fn as_variant(url: &Url) -> [Edit; 2] {
    let origin = key::origin(&url.path).unwrap_or(&url.path);
    [Edit::Set(":path", url.path.clone()), Edit::Set(key::MARK, origin.to_vec())]
}

/// Returns the URL under which the cache stores the variant of an image.
fn variant_url(fields: &Fields<'_>) -> Option<Url> {
    let url = url(fields)?;
    let path = key::of(&url.path)?;
    Some(Url { path, ..url })
}

/// Returns the URL of a request. Returns None if a part of it is missing.
pub fn url(fields: &Fields<'_>) -> Option<Url> {
    let part = |name| fields.get(name).filter(|value| !value.is_empty()).map(<[u8]>::to_vec);
    Some(Url { scheme: part(":scheme")?, authority: part(":authority")?, path: part(":path")? })
}

/// Returns true if the client bounds the age of a response. The cache weighs such a bound (RFC 9111 section 5.2.1).
fn wants_no_age(fields: &Fields<'_>) -> bool {
    fields.lists("cache-control", "max-age") || fields.lists("cache-control", "min-fresh")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PlainField;

    const LEARNED: Rules<'static> = Rules { admit: Admit::Learned, plain: &[], images: false };
    const HELD: Option<Known> = Some(Known::Held { public: false });
    const PUBLIC: Option<Known> = Some(Known::Held { public: true });
    const STORABLE: Option<Known> = Some(Known::Storable { public: false });

    fn of(known: Option<Known>, more: &[(&str, &str)]) -> Asked {
        decided(known, more).asked
    }

    fn decided(known: Option<Known>, more: &[(&str, &str)]) -> Decision {
        let base = [(":method", "GET"), (":scheme", "http"), (":authority", "a.test"), (":path", "/")];
        let list: Vec<(&str, &str)> =
            base.iter().filter(|(name, _)| !more.iter().any(|(other, _)| other == name)).chain(more).copied().collect();
        let fields = list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        decide(LEARNED, &fields, |_| known)
    }

    #[test]
    fn lessons_decide_the_way_of_a_request() {
        for (known, reason) in [
            (None, Reason::Unknown),
            (HELD, Reason::Held),
            (STORABLE, Reason::Storable),
            (Some(Known::Coming), Reason::Coming),
        ] {
            let verdict = of(known, &[("accept", "*/*"), ("sec-fetch-dest", "image")]);
            assert_eq!((verdict.reason, verdict.teaches), (reason, true));
        }
        let fields: Fields<'_> =
            [(&b":method"[..], &b"GET"[..]), (b":scheme", b"http"), (b":authority", b"a"), (b":path", b"/")]
                .into_iter()
                .collect();
        let first = Rules { admit: Admit::First, plain: &[], images: false };
        assert_eq!(decide(first, &fields, |_| None).asked.reason, Reason::First);
    }

    #[test]
    fn a_field_that_the_operator_calls_plain_keeps_no_request_from_the_cache() {
        let plain = [PlainField::new("test-id").unwrap()];
        let rules = Rules { plain: &plain, ..LEARNED };
        for (more, reason) in [
            (&[("test-id", "7")][..], Reason::Held),
            (&[("test-id", "7"), ("test-id-2", "7")], Reason::Unkeyed),
            (&[("test-id", "7"), ("authorization", "Basic YTpi")], Reason::Authorization),
            (&[("test-id", "7"), ("cookie", "a=b")], Reason::Cookie),
        ] {
            let base = [(":method", "GET"), (":scheme", "http"), (":authority", "a.test"), (":path", "/")];
            let all = base.iter().chain(more).map(|(name, value)| (name.as_bytes(), value.as_bytes()));
            assert_eq!(decide(rules, &all.collect(), |_| HELD).asked.reason, reason, "{more:?}");
        }
    }

    #[test]
    fn requests_that_cache_v2_does_not_take_or_would_share_bypass_it() {
        for (field, reason) in [
            ((":method", "POST"), Reason::Method),
            (("content-length", "3"), Reason::Body),
            (("range", "bytes=0-"), Reason::Range),
            (("if-none-match", "\"x\""), Reason::Conditional),
            (("if-modified-since", "x"), Reason::Conditional),
            (("if-range", "x"), Reason::Conditional),
            (("authorization", "Basic YTpi"), Reason::Authorization),
            (("cookie", "a=b"), Reason::Cookie),
            (("cache-control", "no-store"), Reason::NoStore),
            (("x-forwarded-host", "evil.test"), Reason::Unkeyed),
            (("x-original-url", "/admin"), Reason::Unkeyed),
            (("x-http-method-override", "POST"), Reason::Unkeyed),
            (("forwarded", "host=evil.test"), Reason::Unkeyed),
        ] {
            let verdict = of(HELD, &[field]);
            assert_eq!((verdict.reason, verdict.reason.way()), (reason, Way::Past), "{field:?}");
        }
        assert_eq!(of(PUBLIC, &[("cookie", "a=b")]).reason, Reason::Held);
    }

    #[test]
    fn the_clients_word_on_caches_holds() {
        for word in ["no-cache", "max-age=0"] {
            assert_eq!(of(HELD, &[("cache-control", word)]).reason, Reason::Reload);
        }
        assert_eq!(of(HELD, &[("cache-control", "only-if-cached")]).reason, Reason::Held);
        for known in [None, STORABLE] {
            assert_eq!(of(known, &[("cache-control", "only-if-cached")]).reason, Reason::OnlyIfCached);
        }
        assert_eq!(of(HELD, &[("cache-control", "only-if-cached"), ("cookie", "a=b")]).reason, Reason::OnlyIfCached);
        assert_eq!(of(HELD, &[(":method", "HEAD")]).reason, Reason::Held);
        assert_eq!(of(STORABLE, &[(":method", "HEAD")]).reason, Reason::Method);
    }

    #[test]
    fn only_the_filter_may_set_the_marks() {
        let forged = [(marks::WAY, "hit"), (marks::JUDGE, "own"), (marks::ANEW, "1")];
        let gzip = [("accept-encoding", "gzip")];
        let edits = |known, more: &[(&str, &str)]| decided(known, &[more, &gzip].concat()).edits;
        let removed = [marks::WAY, marks::ANEW, marks::JUDGE].map(Edit::remove).to_vec();
        assert_eq!(edits(None, &forged), removed);
        assert_eq!(edits(None, &[]), []);
        let fill = [Edit::Set(marks::WAY, b"fill".to_vec()), Edit::Set(marks::ANEW, b"1".to_vec())];
        assert_eq!(edits(STORABLE, &forged), [&[Edit::remove(marks::JUDGE)][..], &fill].concat());
        assert_eq!(
            edits(STORABLE, &[("cache-control", "max-stale=5"), ("cache-control", "no-transform")]),
            [fill[0].clone(), Edit::Set(marks::ANEW, b"=max-stale=5, no-transform".to_vec())],
            "its own word goes around the cache"
        );
        let hit = [Edit::Set(marks::WAY, b"hit".to_vec()), Edit::Set(marks::JUDGE, b"client".to_vec())];
        assert_eq!(edits(HELD, &[]), hit);
    }

    #[test]
    fn the_cache_stores_gzip_and_the_origin_hears_the_client() {
        let encodings = |known, accepted: &[(&str, &str)]| {
            let edits = decided(known, accepted).edits.into_iter();
            let is_ours = |edit: &Edit| edit.name() == marks::ACCEPT || matches!(edit, Edit::Set("accept-encoding", _));
            edits.filter(is_ours).collect::<Vec<_>>()
        };
        let set = |name, value: &str| Edit::Set(name, value.into());
        for (accepted, heard) in [(&[("accept-encoding", "br")][..], "identity"), (&[], "-")] {
            let marked = [set("accept-encoding", "gzip"), set(marks::ACCEPT, heard)];
            for known in [HELD, STORABLE] {
                assert_eq!(encodings(known, accepted), marked, "{accepted:?}");
            }
        }
        assert_eq!(encodings(None, &[("accept-encoding", "br")]), [set("accept-encoding", "identity")]);
        assert_eq!(encodings(None, &[]), []);
        for known in [None, HELD, STORABLE] {
            assert_eq!(encodings(known, &[("accept-encoding", "gzip")]), []);
            assert_eq!(encodings(known, &[("accept-encoding", "gzip, br")]), []);
            assert_eq!(encodings(known, &[("accept-encoding", "*")]), [set("accept-encoding", "gzip")]);
        }
        let forged = [("accept-encoding", "gzip"), (marks::ACCEPT, "br")];
        assert_eq!(encodings(None, &forged), [Edit::remove(marks::ACCEPT)]);
    }

    #[test]
    fn a_client_that_accepts_webp_gets_a_path_of_its_own_and_no_other_client_does() {
        let decided = |images, more: &[(&str, &str)]| {
            let base = [(":method", "GET"), (":scheme", "http"), (":authority", "a.test"), (":path", "/a.jpg?b")];
            let all: Vec<_> =
                base.iter().chain(more).map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
            let mut looked = Vec::new();
            let decision = decide(Rules { images, ..LEARNED }, &all.into_iter().collect(), |url| {
                looked = url.path.clone();
                HELD
            });
            (decision, looked)
        };
        let webp = ("accept", "image/webp,*/*;q=0.8");
        let mark = Edit::Set(key::MARK, b"/a.jpg?b".to_vec());
        let (decision, looked) = decided(true, &[webp]);
        assert_eq!((decision.asked.reason, looked.as_slice()), (Reason::Held, &b"/.lh-webp/a.jpg?b"[..]));
        assert!(decision.edits.contains(&mark) && decision.edits.contains(&Edit::Set(":path", looked)));
        assert_eq!(decision.asked.url.unwrap().path, b"/.lh-webp/a.jpg?b");
        for (images, more) in [
            (false, &[webp][..]),
            (true, &[("accept", "image/*,*/*")]),
            (true, &[webp, ("cache-control", "no-cache")]),
            (true, &[webp, ("range", "bytes=0-")]),
            (true, &[webp, ("origin", "http://b.test")]),
        ] {
            let (decision, _) = decided(images, more);
            assert!(!decision.asked.variant && !decision.edits.contains(&mark), "{more:?}");
            assert_eq!(decision.asked.url.unwrap().path, b"/a.jpg?b", "{more:?}");
        }
        let (decision, _) = decided(true, &[webp, ("cookie", "a=b")]);
        assert!(decision.asked.variant && decision.edits.contains(&mark), "past the cache, too");
    }

    #[test]
    fn an_origins_own_path_never_takes_the_place_of_a_variant() {
        for path in ["/.lh-webp/a.jpg", "/.lh-webp"] {
            assert_eq!(of(HELD, &[(":path", path)]).reason, Reason::Reserved);
        }
        assert_eq!(of(HELD, &[(":path", "/x/.lh-webp/a.jpg")]).reason, Reason::Held);
        let forged = decided(HELD, &[(key::MARK, "webp")]).edits;
        assert!(forged.contains(&Edit::remove(key::MARK)), "the mark is ours alone");
    }

    #[test]
    fn unsafe_methods_are_known() {
        for (method, expected) in [("POST", true), ("PUT", true), ("DELETE", true), ("PATCH", true), ("OPTIONS", false)]
        {
            assert_eq!(of(HELD, &[(":method", method)]).unsafe_method, expected, "{method}");
        }
    }

    /// A client must not choose by them what every other client gets.
    #[test]
    fn fields_of_proxies_stay_out_of_requests_that_may_fill_the_cache() {
        let via = [("via", "1.1 a"), ("max-forwards", "3")];
        let removed = |known, more: &[(&str, &str)]| {
            let edits = decided(known, more).edits;
            OF_PROXIES.iter().filter(|name| edits.contains(&Edit::remove(name))).count()
        };
        for known in [HELD, PUBLIC, STORABLE] {
            assert_eq!(removed(known, &via), 2, "{known:?}");
            assert_eq!(removed(known, &[]), 0, "{known:?}");
        }
        // Such a request goes past the cache.
        assert_eq!(removed(None, &via), 0);
        assert_eq!(removed(STORABLE, &[via[0], via[1], ("range", "bytes=0-1")]), 0);
    }
}
