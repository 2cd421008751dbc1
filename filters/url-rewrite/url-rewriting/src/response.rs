//! Decisions about responses: edits of the headers, and whether the body is rewritten.

use crate::eligible;
use crate::headers::csp::{self, Policies};
use crate::headers::request::{Destination, Exchange, Moved, Visit, to_true_url};
use crate::headers::{Edit, Fields, Reply, ReplyReason, embedding, etag, link, location};
use crate::plan::Plan;
use crate::preloads::Preloads;
use crate::rewriter::Body;
use http_semantics::body_fields::{Change, gone};
use http_semantics::media_type;
use page_scanner::{Kind, Packing};
use url_mapping::{Base, Cookies, Scheme};

/// Fields removed from every response. They would send the browser around the proxy, or report the proxy's faults to
/// the origin. Dictionaries would fit only the origin's own bytes.
const NEVER_DOWN: [&str; 4] = ["alt-svc", "alternate-protocol", "nel", "use-as-dictionary"];

/// Fields removed from responses of the proxy's own origin. Some speak for a whole origin, and all sites share this
/// one. Some request credentials, which nobody should type into it. Others name URLs relative to a page that does not
/// exist.
const NEVER_DOWN_MOVED: [&str; 41] = [
    "accept-ch",
    "activate-storage-access",
    "clear-site-data",
    "content-location",
    "content-security-policy",
    "content-security-policy-report-only",
    "critical-ch",
    "cross-origin-embedder-policy",
    "cross-origin-embedder-policy-report-only",
    "cross-origin-opener-policy",
    "cross-origin-opener-policy-report-only",
    "cross-origin-resource-policy",
    "document-policy",
    "document-policy-report-only",
    "integrity-policy",
    "integrity-policy-report-only",
    "idp-signin-status",
    "link",
    "no-vary-search",
    "observe-browsing-topics",
    "origin-agent-cluster",
    "origin-trial",
    "p3p",
    "permissions-policy",
    "permissions-policy-report-only",
    "proxy-authenticate",
    "public-key-pins",
    "report-to",
    "reporting-endpoints",
    "require-document-policy",
    "service-worker-allowed",
    "set-cookie",
    "set-cookie2",
    "set-login",
    "sourcemap",
    "speculation-rules",
    "strict-transport-security",
    "supports-loading-mode",
    "www-authenticate",
    "x-content-type-options",
    "x-sourcemap",
];

/// The first words of fields that belong to such a feature: whatever name the feature adds, it acts on the origin.
const NEVER_DOWN_MOVED_BEGINNINGS: [&[u8]; 8] = [
    b"ad-auction-",
    b"attribution-reporting-",
    b"private-state-token",
    b"sec-",
    b"secure-session-",
    b"shared-storage-",
    b"x-allow-fledge",
    b"x-fledge-",
];

/// The decision about a response.
#[derive(Debug)]
pub enum Decision {
    /// Send the body unchanged.
    Pass {
        /// Edits of the response's headers.
        edits: Vec<Edit>,
    },
    /// Rewrite the body.
    Rewrite {
        /// Edits of the response's headers.
        edits: Vec<Edit>,
        /// The properties of the body, for the rewriter.
        body: Box<Body>,
    },
    /// Send this response instead.
    Reply(Reply, ReplyReason),
}

/// Decides about the response to `visit` by its headers, including `:status`.
pub fn decide(plan: &Plan, visit: &Visit, fields: &Fields<'_>) -> Decision {
    let mut edits: Vec<Edit> =
        NEVER_DOWN.into_iter().filter(|name| fields.get(name).is_some()).map(Edit::remove).collect();
    let status = fields.status();
    if visit.exchange == Exchange::Tunnel {
        return Decision::Pass { edits };
    }
    let body = match &visit.moved {
        None => {
            let kind = eligible::kind(plan, visit, status, fields).ok();
            // A 304 updates the headers of the page that the browser has stored, so they are translated as the page's
            // were.
            let base = (kind.is_some() || (status == 304 && !eligible::is_isolated(fields)))
                .then(|| Base::new(visit.scheme, &visit.authority, &visit.path))
                .flatten()
                .map(|mut base| {
                    base.keep_reach_of(cookies(visit, fields));
                    base
                });
            let policies = base.as_ref().map(|base| policies(plan, base, fields, &mut edits));
            let mut preloads = Preloads::default();
            if let (Some(base), Some(policies)) = (&base, &policies) {
                edits.extend(links(plan, base, policies, &mut preloads, fields));
            }
            kind.zip(base).zip(policies).map(|((kind, base), policies)| body(kind, base, policies, preloads, fields))
        }
        Some(moved) => {
            if is_mislabelled(moved, status, fields) {
                let redirect = to_true_url(visit.scheme, &visit.authority, visit.path.as_bytes());
                return Decision::Reply(redirect, ReplyReason::Redirected);
            }
            let base = Base::new(visit.scheme, &visit.authority, &visit.path)
                .and_then(|base| base.on_proxy(moved.scheme, &moved.authority, &moved.path));
            harden(plan, visit, moved, base.as_ref(), fields, &mut edits);
            let kind = eligible::kind(plan, visit, status, fields);
            kind.ok().zip(base).map(|(kind, base)| body(kind, base, Policies::default(), Preloads::default(), fields))
        }
    };
    let Some(body) = body else {
        if status == 304 && visit.names_our_etag {
            rewrap_etag(plan, fields, &mut edits);
        }
        return Decision::Pass { edits };
    };
    // The tag gets a new value.
    let untrue = gone(Change::Content).filter(|name| *name != "etag" && fields.has(name));
    edits.extend(untrue.map(Edit::remove));
    rewrap_etag(plan, fields, &mut edits);
    // A response to HEAD has the headers of the page, and no body to rewrite.
    match visit.exchange {
        Exchange::Ordinary => Decision::Rewrite { edits, body: Box::new(body) },
        Exchange::HeadersOnly | Exchange::Tunnel => Decision::Pass { edits },
    }
}

fn body(kind: Kind, mut base: Base, policies: Policies, preloads: Preloads, fields: &Fields<'_>) -> Body {
    if policies.upgrade_insecure_requests() {
        base.upgrade_insecure_requests();
    }
    let label = fields.get("content-type").and_then(media_type::charset);
    let encoding = label.and_then(encoding_rs::Encoding::for_label);
    Body { kind, packing: eligible::packing(fields).unwrap_or(Packing::Plain), base, encoding, policies, preloads }
}

/// Returns the reach of the cookies that the browser has for the page. A request does not say which other hosts its
/// cookies are for. Cookies that scripts set on a first visit are not seen.
fn cookies(visit: &Visit, fields: &Fields<'_>) -> Cookies {
    let has_domain = |cookie: &[u8]| {
        let mut attributes = cookie.split(|&byte| byte == b';').skip(1).map(<[u8]>::trim_ascii_start);
        attributes.any(|attribute| attribute.get(..6).is_some_and(|name| name.eq_ignore_ascii_case(b"domain")))
    };
    if visit.bears_cookie || fields.all("set-cookie").any(has_domain) {
        Cookies::Site
    } else if fields.get("set-cookie").is_some() {
        Cookies::Host
    } else {
        Cookies::None
    }
}

/// Reads and translates the page's policies, including report-only ones.
fn policies(plan: &Plan, base: &Base, fields: &Fields<'_>, edits: &mut Vec<Edit>) -> Policies {
    let mut policies = Policies::default();
    for name in ["content-security-policy", "content-security-policy-report-only"] {
        let values: Vec<&[u8]> = fields.all(name).collect();
        let joined = values.join(&b", "[..]);
        if joined.is_empty() {
            continue;
        }
        match std::str::from_utf8(&joined) {
            Ok(text) => {
                let translation = csp::translate(plan, base, text);
                policies.extend(translation.policies);
                edits.extend(translation.text.map(|text| Edit::Set(name, text.into_bytes())));
            }
            Err(_) => policies.extend(Policies::unreadable(base)),
        }
    }
    policies
}

/// Rewrites the page's `Link` fields as one field. A 304 may repeat them, and must then give the same result.
fn links(plan: &Plan, base: &Base, policies: &Policies, preloads: &mut Preloads, fields: &Fields<'_>) -> Option<Edit> {
    let values: Vec<&[u8]> = fields.all("link").collect();
    let value = link::rewrite(plan, base, policies, preloads, &values.join(&b", "[..]))?;
    Some(if value.is_empty() { Edit::remove("link") } else { Edit::Set("link", value) })
}

fn rewrap_etag(plan: &Plan, fields: &Fields<'_>, edits: &mut Vec<Edit>) {
    if let Some(tag) = fields.get("etag") {
        edits.push(match etag::wrap(tag, plan.fingerprint()) {
            Some(ours) => Edit::Set("etag", ours),
            None => Edit::remove("etag"),
        });
    }
}

// ----- the proxy's own origin

/// Makes a response of the proxy's own origin harmless: browsers can show it, but it acts for no page and no account.
fn harden(plan: &Plan, visit: &Visit, moved: &Moved, base: Option<&Base>, fields: &Fields<'_>, edits: &mut Vec<Edit>) {
    edits.extend(NEVER_DOWN_MOVED.into_iter().filter(|name| fields.get(name).is_some()).map(Edit::remove));
    edits.extend(fields.iter().map(|(name, _)| name).filter(|name| acts_on_an_origin(name)).map(removal));
    edits.push(Edit::Set("content-security-policy", b"sandbox".to_vec()));
    let embeddable = embedding::resource_policy(moved.page.as_deref(), (visit.scheme, &visit.authority), fields);
    edits.push(Edit::Set("cross-origin-resource-policy", embeddable.as_bytes().to_vec()));
    if embeddable != "cross-origin" {
        // A page of the object's own origin must not find this response in the browser's cache.
        edits.push(Edit::Add("vary", b"Referer".to_vec()));
    }
    let origins_own = fields.get("x-content-type-options").is_some_and(|value| value.eq_ignore_ascii_case(b"nosniff"));
    if origins_own || nosniff_harms_nothing(moved.destination, fields.status(), fields) {
        edits.push(Edit::Set("x-content-type-options", b"nosniff".to_vec()));
    }
    if let (Some(base), Some(value)) = (base, fields.get("location")) {
        edits.extend(location::redirect(plan, base, value).map(|value| Edit::Set("location", value)));
    }
    if let (Some(base), Some(value)) = (base, fields.get("refresh")) {
        edits.push(match location::refresh(base, value) {
            Some(value) => Edit::Set("refresh", value),
            None => Edit::remove("refresh"),
        });
    }
    // The object's own page needed no permission from the origin to read it. After the move it needs CORS.
    let page = moved.origin.as_deref().unwrap_or_default();
    let objects_own = format!("{}://{}", visit.scheme, visit.authority);
    if page == objects_own.as_bytes() && fields.get("access-control-allow-origin").is_none() {
        edits.push(Edit::Set("access-control-allow-origin", page.to_vec()));
        edits.push(Edit::Add("vary", b"Origin".to_vec()));
    }
}

/// Returns true for a field of a feature that acts on an origin.
fn acts_on_an_origin(name: &[u8]) -> bool {
    NEVER_DOWN_MOVED_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

fn removal(name: &[u8]) -> Edit {
    Edit::Remove(String::from_utf8_lossy(name).into_owned().into())
}

/// Returns true if `nosniff` blocks nothing that loads without it. It blocks scripts and style sheets of a wrong
/// declared type (Fetch, "should response to request be blocked due to nosniff?"). It also blocks images that browsers
/// recognise by their bytes. Errors need none: browsers run no script and apply no style sheet of an error. With `nosniff`,
/// Firefox would log a wrong type instead of the failure.
fn nosniff_harms_nothing(destination: Destination, status: u16, fields: &Fields<'_>) -> bool {
    let kind = media_type::essence(fields.get("content-type").unwrap_or_default());
    match destination {
        _ if (400..600).contains(&status) => false,
        _ if !(200..300).contains(&status) => true,
        Destination::Script => media_type::is_javascript(kind.as_bytes()),
        Destination::Style => kind == "text/css",
        Destination::Media => media_type::is_media(&kind),
        Destination::Other | Destination::Unknown => true,
    }
}

/// Returns true for a response of the proxy's http address that may be a script or style sheet of a wrong declared
/// type. Browsers do not tell http origins how they use it. `nosniff` would block it, and its absence would be a hole.
/// So the browser gets a redirect to the true URL.
fn is_mislabelled(moved: &Moved, status: u16, fields: &Fields<'_>) -> bool {
    let kind = media_type::essence(fields.get("content-type").unwrap_or_default());
    let unclear = moved.destination == Destination::Unknown
        && !(media_type::is_javascript(kind.as_bytes()) || media_type::is_media(&kind) || kind == "text/css");
    let wrong_sheet = moved.destination == Destination::Style && kind != "text/css";
    moved.scheme == Scheme::Http && status == 200 && (unclear || wrong_sheet)
}
