//! Requests as the cache sees them.

use std::ops::Range;

use http_semantics::{FieldList, Fields};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Uri};
use name_budget::marks;
use object_config::{MARK, VALID};
use object_rules::groups::Groups;
use object_rules::{Directives, conditions, validation, variant};
use object_store::Name;
use side_program::fields;

/// Takes the validation out of a request that a filter has added: fields of a 304.
pub(crate) fn take_validation(headers: &mut HeaderMap) -> Option<FieldList> {
    let lines = hex::decode(headers.remove(VALID)?).ok()?;
    Some(validation::fields(&lines))
}

/// Names the response to a request. A field of Envoy's outer hop has the scheme of the request to the origin.
pub(crate) fn name_of(parts: &Parts, groups: &Groups) -> Name {
    let scheme = parts.headers.get(marks::SCHEME).map_or(&b""[..], HeaderValue::as_bytes);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    name_at(parts, groups, scheme, path.as_bytes())
}

/// Names the response for a path on the host of a request, or on its group.
pub(crate) fn name_at(parts: &Parts, groups: &Groups, scheme: &[u8], path: &[u8]) -> Name {
    let (host, path) = groups.named(host_of(parts), path);
    Name::of_url(scheme, host, &path)
}

/// Returns the host of a request.
pub(crate) fn host_of(parts: &Parts) -> &[u8] {
    parts.headers.get(header::HOST).map_or(&b""[..], HeaderValue::as_bytes)
}

/// Makes a request one for the variant of an image, if the client accepts it. The inner hop leads it to `longhaul-images`.
pub(crate) fn as_variant(parts: &mut Parts) -> bool {
    let Some(path) = image_variants::request::variant_path(&fields_of(parts)) else { return false };
    let own = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let (Ok(uri), Ok(own)) = (Uri::try_from(path), HeaderValue::from_str(own)) else { return false };
    parts.headers.insert(image_variants::key::MARK, own);
    parts.uri = uri;
    true
}

/// Returns the fields of a request, with the pseudo-header fields that the rules read.
pub(crate) fn fields_of(parts: &Parts) -> Fields<'_> {
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let own = [(&b":path"[..], path.as_bytes())];
    own.into_iter().chain(fields(&parts.method, None, &parts.headers).iter()).collect()
}

/// Why a request goes to the origin as the client sent it, if nothing is stored for it.
pub(crate) fn goes_past(parts: &Parts, request: &Fields<'_>) -> bool {
    parts.method != Method::GET
        || request.has("authorization")
        || request.has("range")
        || conditions::is_conditional(request)
        || Directives::of(request).has("no-store")
}

/// Returns true if the client wants a certain response or none.
pub(crate) fn insists(request: &Fields<'_>) -> bool {
    request.has("if-match") || request.has("if-unmodified-since")
}

/// Returns true if the client reloads past caches.
pub(crate) fn reloads(request: &Fields<'_>) -> bool {
    let says = Directives::of(request);
    says.no_cache() || says.seconds("max-age") == Some(0)
}

/// Fields of the proxies before this one. Some servers choose a response by them, and they are no part of the key. A recipient
/// may ignore `Max-Forwards` on GET and HEAD (RFC 9110 section 7.6.2). `CDN-Loop` detects loops in place of `Via`.
const OF_PROXIES: [&str; 2] = ["max-forwards", "via"];

/// Returns a request for a whole response that may be stored, for which Envoy compresses text.
pub(crate) fn for_storage(parts: &Parts, stored: Option<&Fields<'_>>) -> Parts {
    let mut copy = unmarked(parts, stored);
    copy.headers.insert(MARK, HeaderValue::from_static("1"));
    copy
}

/// Returns a request for a whole response. It lacks the client's conditions and ranges. It has the class of the client's content
/// encodings, and the validators of the stored response.
pub(crate) fn unmarked(parts: &Parts, stored: Option<&Fields<'_>>) -> Parts {
    let mut copy = copy_of(parts);
    for name in conditions::CONDITIONS.iter().chain(&["range"]).chain(&OF_PROXIES) {
        copy.headers.remove(*name);
    }
    if let Some(coding) = variant::coding(&fields_of(parts)) {
        copy.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(coding.as_str()));
    }
    for (name, value) in stored.map(conditions::validators).unwrap_or_default() {
        put(&mut copy.headers, &name, &value);
    }
    copy
}

/// Returns a request for the client's range, which may be stored. It lacks the client's conditions, and has the validators of the
/// stored response. It is not marked, because no part of a body is ever compressed.
pub(crate) fn for_part(parts: &Parts, stored: Option<&Fields<'_>>) -> Parts {
    let mut copy = unmarked(parts, stored);
    for value in parts.headers.get_all(header::RANGE) {
        copy.headers.append(header::RANGE, value.clone());
    }
    copy
}

/// Returns a request for bytes of a stored object. If the origin has another one by now, it sends that (RFC 9110 section 13.1.5).
pub(crate) fn for_run(parts: &Parts, bytes: &Range<u64>, tag: &[u8]) -> Parts {
    let mut copy = unmarked(parts, None);
    let range = format!("bytes={}-{}", bytes.start, bytes.end.saturating_sub(1));
    put(&mut copy.headers, b"range", range.as_bytes());
    put(&mut copy.headers, b"if-range", tag);
    copy
}

/// Returns a copy of the head of a request, without extensions.
pub(crate) fn copy_of(parts: &Parts) -> Parts {
    let mut copy = hyper::Request::new(()).into_parts().0;
    copy.method = parts.method.clone();
    copy.uri = parts.uri.clone();
    copy.headers = parts.headers.clone();
    copy
}

/// Appends a field. One that is none is left out.
pub(crate) fn put(headers: &mut HeaderMap, name: &[u8], value: &[u8]) {
    if let (Ok(name), Ok(value)) = (header::HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
        headers.append(name, value);
    }
}
