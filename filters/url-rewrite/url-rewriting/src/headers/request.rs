//! Maps a request to its origin, edits its headers, and refuses requests that the proxy's own origin does not serve.

use super::embedding;
use super::etag::{self, Unwrapped};
use super::interstitial;
use super::reason::ReplyReason;
use super::referer::{self, Restored};
use crate::plan::Plan;
use http_semantics::accept_encoding::change_for_origin;
use http_semantics::{Edit, Fields, Reply};
use std::borrow::Cow;
use url_mapping::{Origin, Refusal, Reverse, Scheme};

/// Names the origin's scheme for the inner hop. This module removes the field from what clients send.
pub const SCHEME_HEADER: &str = "x-longhaul-scheme";
const OUR_PREFIX: &[u8] = b"x-longhaul-";

/// Request fields that the proxy's own origin never forwards. Credentials and hints meant for the proxy are not for the
/// origin, and the reverse.
const NEVER_UP: [&str; 13] = [
    "attribution-reporting-eligible",
    "attribution-reporting-support",
    "authorization",
    "cookie",
    "cookie2",
    "dpop",
    "proxy-authorization",
    "sec-browsing-topics",
    "sec-purpose",
    "sec-session-response",
    "sec-storage-access",
    "secure-session-id",
    "secure-session-response",
];

/// Request fields that are never forwarded. The browser's dictionaries fit the origin's bodies, and the proxy may
/// change those.
const DICTIONARIES: [&str; 2] = ["available-dictionary", "dictionary-id"];

/// Prefix of Fetch Metadata (W3C), which describes how a request relates to the page that caused it. To the browser, a
/// moved object is never of the page's site. An origin that rejects other sites by `Sec-Fetch-Site` would reject its
/// own pages. Origins accept requests without it, because older browsers do not send it.
const FETCH_METADATA: &[u8] = b"sec-fetch-";

/// The fields of Fetch Metadata that a move does not change: the object's destination, and whether it is fetched with
/// CORS.
const TRUE_AFTER_A_MOVE: [&[u8]; 2] = [b"sec-fetch-dest", b"sec-fetch-mode"];

/// Prefixes of fields that browsers send to https origins only. An http origin behind the proxy's https name would
/// otherwise get them.
const SECURE_ONLY: [&[u8]; 2] = [FETCH_METADATA, b"sec-ch-"];

/// Destinations (Fetch, `Sec-Fetch-Dest`) that the proxy's own origin serves. All others, including future ones, would
/// run or be shown in that origin, which all sites share. They are redirected to their true URL.
const SERVED: [&[u8]; 8] = [b"audio", b"empty", b"font", b"image", b"script", b"style", b"track", b"video"];

/// The facts about a request that its response needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub struct Visit {
    /// The scheme of the object's true URL.
    pub scheme: Scheme,
    /// Host and port of the true URL.
    pub authority: String,
    /// Path and query of the true URL.
    pub path: String,
    /// The URL on the proxy's own origin, if the browser requested the object there.
    pub moved: Option<Moved>,
    /// The parts of the response.
    pub exchange: Exchange,
    /// True if a script requested it, to use it in an unknown way. Always false on the proxy's own origin.
    pub is_fetched_by_script: bool,
    /// True if the request had a cookie. Always false on the proxy's own origin.
    pub bears_cookie: bool,
    /// True if the request names a range.
    pub asks_range: bool,
    /// True if `If-None-Match` named a body that this filter rewrote, unless all its tags are outdated.
    pub names_our_etag: bool,
}

/// The kind of exchange that a request starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// Headers and perhaps a body.
    Ordinary,
    /// Headers alone (HEAD).
    HeadersOnly,
    /// An upgrade (WebSocket) or CONNECT: bytes of unknown meaning.
    Tunnel,
}

/// A request to the proxy's own origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The scheme by which the browser reached the proxy.
    pub scheme: Scheme,
    /// The proxy's own authority.
    pub authority: String,
    /// Path and query with the origin's host in front.
    pub path: String,
    /// The use of the object, as far as the browser names it.
    pub destination: Destination,
    /// The origin of the requesting page, as `scheme://authority`, if it is certain.
    pub page: Option<String>,
    /// The `Origin` field: the page's origin, if the object is fetched with CORS.
    pub origin: Option<Vec<u8>>,
}

/// The use of an object, from `Sec-Fetch-Dest`. Browsers do not send that field to http origins, so `Accept` decides
/// there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// A classic script.
    Script,
    /// A style sheet.
    Style,
    /// Images, sound, video, tracks.
    Media,
    /// Fonts, or data for a script.
    Other,
    /// Unknown: any of these.
    Unknown,
}

/// The decision about a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Forward it with these edits.
    Forward {
        /// Edits of the request's headers.
        edits: Vec<Edit>,
        /// The facts for the response.
        visit: Visit,
    },
    /// Send a local response.
    Reply(Reply, ReplyReason),
}

/// Decides about a request by its headers, including pseudo-headers (`:authority`, ...).
pub fn decide(plan: &Plan, fields: &Fields<'_>) -> Decision {
    let authority = fields.get(":authority").unwrap_or_default();
    let path = fields.get(":path").unwrap_or_default();
    match plan.mapper().reverse(authority, path) {
        Reverse::NotOurs => transparent(plan, fields, authority, path),
        Reverse::Refused(refusal) => refused(refusal),
        Reverse::Origin(origin) => moved(plan, fields, authority, path, &origin),
    }
}

// ----- another authority: to the browser, the proxy is the origin

fn transparent(plan: &Plan, fields: &Fields<'_>, authority: &[u8], path: &[u8]) -> Decision {
    let scheme = scheme_of(fields);
    match url_mapping::port_of(authority) {
        Some(port) if plan.mapper().is_port_allowed(port.unwrap_or(scheme.default_port())) => {}
        _ => {
            let body = "the port is not one of those this proxy serves\n";
            return Decision::Reply(reply(403, body), ReplyReason::PortNotListed);
        }
    }
    if !url_mapping::host_can_exist(authority) {
        return refused(Refusal::Host);
    }
    // The listener sets the header for the inner hop here, because it knows no other scheme. An edit in this filter
    // would make Envoy select the route again for every request.
    let mut edits = Vec::new();
    let Common { names_our_etag, asks_range } = common(plan, fields, (scheme, authority), &mut edits);
    let visit = Visit {
        scheme,
        authority: text(authority),
        path: text(path),
        moved: None,
        exchange: exchange(fields),
        is_fetched_by_script: fields.get("sec-fetch-dest").is_some_and(|dest| dest == b"empty")
            || fields.get("x-requested-with").is_some(),
        bears_cookie: fields.get("cookie").is_some(),
        asks_range,
        names_our_etag,
    };
    Decision::Forward { edits, visit }
}

// ----- the proxy's own authority: a moved object

fn moved(plan: &Plan, fields: &Fields<'_>, authority: &[u8], path: &[u8], origin: &Origin<'_>) -> Decision {
    if exchange(fields) == Exchange::Tunnel {
        let body = "this proxy serves objects of pages; upgrades and tunnels are not\n";
        return Decision::Reply(reply(403, body), ReplyReason::NotAnObject);
    }
    if plan.mapper().is_excluded(origin.host) || !is_sub_resource(fields) {
        return if is_navigation(fields) && !comes_from_site_of(plan, fields, origin) {
            let page = interstitial::offer(scheme_of(fields), origin.scheme, origin.authority, origin.path);
            Decision::Reply(page, ReplyReason::LinkOffered)
        } else {
            Decision::Reply(to_true_url(origin.scheme, origin.authority, origin.path), ReplyReason::Redirected)
        };
    }
    let mut edits = vec![
        Edit::Set(":authority", origin.authority.as_bytes().to_vec()),
        Edit::Set(":path", origin.path.to_vec()),
        Edit::Set(":scheme", origin.scheme.as_str().as_bytes().to_vec()),
        Edit::Set(SCHEME_HEADER, origin.scheme.as_str().as_bytes().to_vec()),
    ];
    edits.extend(NEVER_UP.into_iter().filter(|name| fields.get(name).is_some()).map(Edit::remove));
    edits.extend(remove_where(fields, |name| {
        (origin.scheme == Scheme::Http && SECURE_ONLY.iter().any(|start| name.starts_with(start)))
            || (name.starts_with(FETCH_METADATA) && !TRUE_AFTER_A_MOVE.contains(&name))
    }));
    let target = (origin.scheme, origin.authority.as_bytes());
    let Common { names_our_etag, asks_range } = common(plan, fields, target, &mut edits);
    let visit = Visit {
        scheme: origin.scheme,
        authority: origin.authority.to_owned(),
        path: text(origin.path),
        moved: Some(Moved {
            scheme: scheme_of(fields),
            authority: text(authority),
            path: text(path),
            destination: destination(fields),
            page: embedding::page_of(plan.mapper(), fields),
            origin: fields.get("origin").map(<[u8]>::to_vec),
        }),
        exchange: exchange(fields),
        is_fetched_by_script: false,
        bears_cookie: false,
        asks_range,
        names_our_etag,
    };
    Decision::Forward { edits, visit }
}

/// Returns true if the proxy's own origin serves this request. Browsers send `Sec-Fetch-*` to https origins only. A
/// navigation to the http address still has `Upgrade-Insecure-Requests` and an `Accept` that prefers HTML.
fn is_sub_resource(fields: &Fields<'_>) -> bool {
    let readable = matches!(fields.get(":method"), Some(b"GET" | b"HEAD" | b"OPTIONS"));
    let worker = fields.get("service-worker").is_some();
    let navigation = fields.get("sec-fetch-mode").is_some_and(|mode| mode == b"navigate" || mode == b"websocket");
    let destination = match fields.get("sec-fetch-dest") {
        Some(destination) => SERVED.contains(&destination),
        None => {
            fields.get("upgrade-insecure-requests").is_none()
                && !fields.get("accept").is_some_and(|accept| accept.starts_with(b"text/html"))
        }
    };
    readable && !worker && !navigation && destination
}

/// Returns true if a person may be navigating to a page, with the proxy name in the address bar. It also returns true
/// for navigations that browsers do not describe further. Frames show no address, so they do not count.
fn is_navigation(fields: &Fields<'_>) -> bool {
    match (fields.get("sec-fetch-dest"), fields.get("sec-fetch-mode")) {
        (Some(destination), _) => destination == b"document",
        (None, Some(mode)) => mode == b"navigate",
        (None, None) => {
            fields.get("upgrade-insecure-requests").is_some()
                || fields.get("accept").is_some_and(|accept| accept.starts_with(b"text/html"))
        }
    }
}

/// Returns true if the `Referer` is of the target's own site. A redirect then leads only where the page itself could
/// lead. An https page never leads to http this way. A `Referer` on the proxy's own origin stands for the site that its
/// path names.
fn comes_from_site_of(plan: &Plan, fields: &Fields<'_>, target: &Origin<'_>) -> bool {
    let Some(referer) = fields.get("referer") else { return false };
    let target_authority = (target.scheme, target.authority.as_bytes());
    let restored = match referer::restore(plan.mapper(), referer, target_authority) {
        Restored::AsIs => referer.to_vec(),
        Restored::To(restored) => restored,
        Restored::None => return false,
    };
    let Ok(page) = std::str::from_utf8(&restored) else { return false };
    let Some((scheme, rest)) = page.split_once("://") else { return false };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_lower = scheme.eq_ignore_ascii_case("https") && target.scheme == Scheme::Http;
    let host = embedding::host_of(authority).to_ascii_lowercase();
    !is_lower && !host.contains('@') && url_mapping::may_be_same_site(&host, target.host)
}

fn destination(fields: &Fields<'_>) -> Destination {
    let accept = fields.get("accept").unwrap_or_default();
    match fields.get("sec-fetch-dest") {
        Some(b"script") => Destination::Script,
        Some(b"style") => Destination::Style,
        Some(b"image" | b"audio" | b"video" | b"track") => Destination::Media,
        Some(_) => Destination::Other,
        None if accept.starts_with(b"text/css") => Destination::Style,
        None if accept.starts_with(b"image/") => Destination::Media,
        None => Destination::Unknown,
    }
}

// ----- both

/// Facts about a request to any authority.
struct Common {
    /// True if the client named a body that this filter rewrote.
    names_our_etag: bool,
    /// True if the request names a range.
    asks_range: bool,
}

/// Adds the edits that every authority needs.
fn common(plan: &Plan, fields: &Fields<'_>, target: (Scheme, &[u8]), edits: &mut Vec<Edit>) -> Common {
    let is_set = |name: &[u8]| edits.iter().any(|edit| edit.name().as_bytes() == name);
    edits.extend(remove_where(fields, |name| {
        name.starts_with(OUR_PREFIX) && !is_set(name) && !plan.is_peer_field(name)
    }));
    edits.extend(DICTIONARIES.into_iter().filter(|name| fields.get(name).is_some()).map(Edit::remove));
    if let Some(referer) = fields.get("referer") {
        match referer::restore(plan.mapper(), referer, target) {
            Restored::AsIs => {}
            Restored::To(value) => edits.push(Edit::Set("referer", value)),
            Restored::None => edits.push(Edit::remove("referer")),
        }
    }
    let unwrapped = fields.get("if-none-match").map(|value| etag::unwrap(value, plan.fingerprint()));
    let names_our_etag = match unwrapped {
        None | Some(Unwrapped::Foreign) => false,
        Some(Unwrapped::Restored(value)) => {
            edits.push(Edit::Set("if-none-match", value));
            true
        }
        Some(Unwrapped::Outdated) => {
            // With the date, the origin would confirm the outdated copy.
            edits.push(Edit::remove("if-none-match"));
            edits.push(Edit::remove("if-modified-since"));
            false
        }
    };
    let asks_range = fields.has("range") && !may_be_rewritten(fields);
    if fields.has("range") && !asks_range {
        edits.push(Edit::remove("range"));
        edits.push(Edit::remove("if-range"));
    }
    // The filters in front have read the client's own acceptance.
    edits.extend(change_for_origin(fields).map(|heard| Edit::Set("accept-encoding", heard.into())));
    Common { names_our_etag, asks_range }
}

/// Returns true if the response may be rewritten. A range of the origin's bytes would not fit the client's rewritten
/// copy. All other ranges pass unchanged in both directions.
fn may_be_rewritten(fields: &Fields<'_>) -> bool {
    let accept = fields.get("accept").unwrap_or_default();
    fields.get("upgrade-insecure-requests").is_some()
        || accept.starts_with(b"text/")
        || fields.get("if-range").is_some_and(|validator| etag::unwrap(validator, 0) != Unwrapped::Foreign)
        || fields
            .get("sec-fetch-dest")
            .is_some_and(|dest| matches!(dest, b"document" | b"iframe" | b"frame" | b"style"))
}

fn remove_where(fields: &Fields<'_>, matches: impl Fn(&[u8]) -> bool) -> Vec<Edit> {
    let mut names: Vec<_> = fields.iter().map(|(name, _)| name).filter(|name| matches(name)).collect();
    names.dedup();
    names.into_iter().map(|name| Edit::Remove(Cow::Owned(text(name)))).collect()
}

fn scheme_of(fields: &Fields<'_>) -> Scheme {
    fields.get(":scheme").and_then(Scheme::from_name).unwrap_or(Scheme::Http)
}

fn exchange(fields: &Fields<'_>) -> Exchange {
    match fields.get(":method") {
        Some(b"CONNECT") => Exchange::Tunnel,
        _ if fields.get("upgrade").is_some() || fields.get(":protocol").is_some() => Exchange::Tunnel,
        Some(b"HEAD") => Exchange::HeadersOnly,
        _ => Exchange::Ordinary,
    }
}

/// Returns the bytes as text. Invalid UTF-8 does not matter to a base URL, and the forwarded path comes from the
/// fields, not from here.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

// ----- replies

/// Redirects a request to the object's true URL. The redirect must not be stored, because the proxy serves the same URL
/// to a request for a sub-resource. Status 307 keeps method and body.
pub(crate) fn to_true_url(scheme: Scheme, authority: &str, path: &[u8]) -> Reply {
    let location = [scheme.as_str().as_bytes(), b"://", authority.as_bytes(), path].concat();
    let mut reply = reply(307, "");
    reply.fields.push((b"location".to_vec(), location));
    reply
}

fn refused(refusal: Refusal) -> Decision {
    let status = if refusal == Refusal::FrontPage { 404 } else { 403 };
    Decision::Reply(reply(status, &format!("{refusal}\n")), ReplyReason::Refused(refusal))
}

fn reply(status: u16, body: &str) -> Reply {
    let fields: [(&str, &[u8]); 3] = [
        ("cache-control", b"no-store"),
        ("content-security-policy", b"sandbox"),
        ("x-content-type-options", b"nosniff"),
    ];
    Reply::new(status, &fields, body)
}
