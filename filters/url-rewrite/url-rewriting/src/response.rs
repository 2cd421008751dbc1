//! What comes down, and whether the body is rewritten.

use crate::eligible;
use crate::headers::csp::{self, Policies};
use crate::headers::request::{Destination, Exchange, Moved, Visit, to_true_url};
use crate::headers::{Edit, Fields, Reply, embedding, etag, link, location};
use crate::plan::Plan;
use crate::preloads::Preloads;
use crate::rewriter::Body;
use http_semantics::media_type;
use page_scanner::{Kind, Packing};
use url_mapping::{Base, Cookies, Scheme};

/// Never comes down from any host: it would send the browser around the proxy, or have bodies encoded with
/// dictionaries that only the origin's own bytes fit, or report our faults to the origin.
const NEVER_DOWN: [&str; 4] = ["alt-svc", "alternate-protocol", "nel", "use-as-dictionary"];

/// Never comes down from the proxy's own origin: it speaks for a whole origin, and that one is shared by all sites; or
/// asks for credentials, which nobody should type into it; or names places relative to a page that is none.
const NEVER_DOWN_MOVED: [&str; 46] = [
    "accept-ch",
    "activate-storage-access",
    "attribution-reporting-info",
    "attribution-reporting-register-os-source",
    "attribution-reporting-register-os-trigger",
    "attribution-reporting-register-source",
    "attribution-reporting-register-trigger",
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
    "link",
    "observe-browsing-topics",
    "origin-agent-cluster",
    "p3p",
    "permissions-policy",
    "permissions-policy-report-only",
    "proxy-authenticate",
    "public-key-pins",
    "report-to",
    "reporting-endpoints",
    "require-document-policy",
    "sec-session-challenge",
    "sec-session-registration",
    "secure-session-challenge",
    "secure-session-registration",
    "service-worker-allowed",
    "set-cookie",
    "set-cookie2",
    "set-login",
    "sourcemap",
    "speculation-rules",
    "strict-transport-security",
    "www-authenticate",
    "x-content-type-options",
    "x-sourcemap",
];

/// Says something about the body's bytes or length that is not so any more once it is rewritten.
const ABOUT_BYTES: [&str; 6] =
    ["accept-ranges", "content-digest", "content-length", "content-md5", "digest", "repr-digest"];

/// What to do with a response.
#[derive(Debug)]
pub enum Decision {
    /// Send the body as it is.
    Pass {
        /// Edits of the response's headers.
        edits: Vec<Edit>,
    },
    /// Rewrite the body.
    Rewrite {
        /// Edits of the response's headers.
        edits: Vec<Edit>,
        /// For the rewriter.
        body: Box<Body>,
    },
    /// Answer something else instead.
    Reply(Reply),
}

/// Decides about the response to `visit` by its headers, `:status` included.
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
            // A 304 makes browsers take its headers for those of the page they have, so it is translated as that was.
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
                return Decision::Reply(to_true_url(visit.scheme, &visit.authority, visit.path.as_bytes()));
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
    edits.extend(ABOUT_BYTES.into_iter().filter(|name| fields.get(name).is_some()).map(Edit::remove));
    if body.packing != Packing::Plain {
        edits.push(Edit::remove("content-encoding"));
    }
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

/// How far the cookies reach that the browser has with the page. A request does not say which hosts else its cookies are
/// for; those that scripts set on a first visit are not seen.
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

/// Reads and translates the page's policies, report-only ones too.
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

/// The page's `Link` headers, all in one. A 304 may repeat them, and then they must be what they were.
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

/// Makes an answer of the proxy's own origin harmless: it can be shown, but is nobody's page and nobody's account.
fn harden(plan: &Plan, visit: &Visit, moved: &Moved, base: Option<&Base>, fields: &Fields<'_>, edits: &mut Vec<Edit>) {
    edits.extend(NEVER_DOWN_MOVED.into_iter().filter(|name| fields.get(name).is_some()).map(Edit::remove));
    edits.push(Edit::Set("content-security-policy", b"sandbox".to_vec()));
    let embeddable = embedding::resource_policy(moved.page.as_deref(), (visit.scheme, &visit.authority), fields);
    edits.push(Edit::Set("cross-origin-resource-policy", embeddable.as_bytes().to_vec()));
    if embeddable != "cross-origin" {
        // A page of the object's own origin must not find this answer in the browser's cache.
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
    // What was same-origin before needs no permission from the origin, and does now.
    let page = moved.origin.as_deref().unwrap_or_default();
    let objects_own = format!("{}://{}", visit.scheme, visit.authority);
    if page == objects_own.as_bytes() && fields.get("access-control-allow-origin").is_none() {
        edits.push(Edit::Set("access-control-allow-origin", page.to_vec()));
        edits.push(Edit::Add("vary", b"Origin".to_vec()));
    }
}

/// Whether `nosniff` blocks nothing that loads without it: scripts and sheets of a wrong declared type (Fetch, "should
/// response to request be blocked due to nosniff?"), and images that browsers recognise by their bytes.
fn nosniff_harms_nothing(destination: Destination, status: u16, fields: &Fields<'_>) -> bool {
    let kind = media_type::essence(fields.get("content-type").unwrap_or_default());
    match destination {
        _ if !(200..300).contains(&status) => true,
        Destination::Script => media_type::is_javascript(kind.as_bytes()),
        Destination::Style => kind == "text/css",
        Destination::Media => media_type::is_media(&kind),
        Destination::Other | Destination::Unknown => true,
    }
}

/// Whether this may be a script or sheet with a wrong declared type that came from our http address, where browsers do
/// not say what they want it for: `nosniff` would block it and its absence would be a hole, so it is not moved.
fn is_mislabelled(moved: &Moved, status: u16, fields: &Fields<'_>) -> bool {
    let kind = media_type::essence(fields.get("content-type").unwrap_or_default());
    let unclear = moved.destination == Destination::Unknown
        && !(media_type::is_javascript(kind.as_bytes()) || media_type::is_media(&kind) || kind == "text/css");
    let wrong_sheet = moved.destination == Destination::Style && kind != "text/css";
    moved.scheme == Scheme::Http && status == 200 && (unclear || wrong_sheet)
}
