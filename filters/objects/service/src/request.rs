//! Requests as the cache sees them.

use http_semantics::Fields;
use hyper::Method;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use name_budget::marks;
use object_config::MARK;
use object_rules::{Directives, conditions, variant};
use object_store::Key;
use side_program::fields;

/// The name of a response.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The key of the URL.
    pub(crate) key: Key,
    /// The URL.
    pub(crate) url: Vec<u8>,
}

impl Asked {
    /// Reads the URL. Envoy's outer hop says the scheme of the request to the origin in a field of its own.
    pub(crate) fn of(parts: &Parts) -> Self {
        let scheme = parts.headers.get(marks::SCHEME).map_or(&b""[..], HeaderValue::as_bytes);
        Self::with_scheme(parts, scheme)
    }

    /// Reads the URL of a request whose scheme is known.
    pub(crate) fn with_scheme(parts: &Parts, scheme: &[u8]) -> Self {
        let host = parts.headers.get(header::HOST).map_or(&b""[..], HeaderValue::as_bytes).to_ascii_lowercase();
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).as_bytes();
        Self { key: Key::of_url(scheme, &host, path), url: [scheme, b"://", &host, path].concat() }
    }
}

/// Returns the key of the variant that these values of a request select, below the marker of its URL.
pub(crate) fn key_of_variant(url: Key, marker: u64, values: &[u8]) -> Key {
    Key::variant(url, [(&marker.to_le_bytes()[..], values)])
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

/// Returns a request for a whole response that may be stored: without the client's conditions and ranges, with the class of
/// its content encodings, and with the validators of what is stored.
pub(crate) fn for_storage(parts: &Parts, stored: Option<&Fields<'_>>) -> Parts {
    let mut copy = copy_of(parts);
    for name in conditions::CONDITIONS.iter().copied().chain(["range"]) {
        copy.headers.remove(name);
    }
    copy.headers.insert(MARK, HeaderValue::from_static("1"));
    if let Some(coding) = variant::coding(&fields_of(parts)) {
        copy.headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(coding.as_str()));
    }
    for (name, value) in stored.map(conditions::validators).unwrap_or_default() {
        put(&mut copy.headers, &name, &value);
    }
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
