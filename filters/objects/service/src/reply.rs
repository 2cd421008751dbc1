//! Responses to clients.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Range;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_semantics::Fields;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Response, StatusCode};
use object_rules::conditions;
use object_rules::multipart::Multipart;
use object_rules::ranges::{self, Ranges};
use object_store::{Body as Stored, Head, Object};

use crate::body::{Body, Piece};
use crate::request::put;

/// Returns the time in seconds since 1970.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Returns a stored response, or the part of it that the request wants.
pub(crate) fn stored(request: &Fields<'_>, object: &Object) -> Response<Body> {
    let head = &object.head;
    let mut response = headed(head, true);
    let fields = fields_of(head);
    if head.status == 200 && conditions::not_modified(request, &fields) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        return response;
    }
    let whole = 0..head.length;
    let pieces = match ranges::requested(request, &fields, head.length) {
        Ranges::Whole => {
            length(&mut response, head.length);
            vec![piece(object, whole)]
        }
        Ranges::Unsatisfiable => {
            *response.status_mut() = StatusCode::RANGE_NOT_SATISFIABLE;
            insert(response.headers_mut(), header::CONTENT_RANGE, &ranges::unsatisfied(head.length));
            length(&mut response, 0);
            return response;
        }
        Ranges::Parts(parts) => {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            match parts.as_slice() {
                [one] => {
                    partial(&mut response, one.start, one.end, head.length);
                    vec![piece(object, one.clone())]
                }
                several => {
                    let several = several.to_vec();
                    in_parts(&mut response, object, &several)
                }
            }
        }
    };
    if request.get(":method") == Some(Method::HEAD.as_str().as_bytes()) {
        return response;
    }
    *response.body_mut() = Body::of(pieces);
    response
}

/// Describes a part of a body.
pub(crate) fn partial(response: &mut Response<Body>, from: u64, to: u64, total: u64) {
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    let range = ranges::content_range(from, to.saturating_sub(1), total);
    insert(response.headers_mut(), header::CONTENT_RANGE, &range);
    length(response, to.saturating_sub(from));
}

fn in_parts(response: &mut Response<Body>, object: &Object, parts: &[Range<u64>]) -> Vec<Piece> {
    let total = object.head.length;
    let kind = response.headers().get(header::CONTENT_TYPE).map(|value| value.as_bytes().to_vec());
    let multipart = Multipart::new(chance(), kind.as_deref());
    insert(response.headers_mut(), header::CONTENT_TYPE, &multipart.content_type());
    length(response, multipart.length(parts, total));
    let heads = parts.iter().flat_map(|part| {
        let head = multipart.head(part, total);
        [Piece::Bytes(Bytes::from(head)), piece(object, part.clone())]
    });
    heads.chain([Piece::Bytes(Bytes::from(multipart.end()))]).collect()
}

/// Draws the boundary of parts, so that no body can contain it on purpose.
fn chance() -> u128 {
    let half = || u128::from(RandomState::new().build_hasher().finish());
    half() << 64 | half()
}

fn piece(object: &Object, range: Range<u64>) -> Piece {
    match &object.body {
        Stored::File(reader) => Piece::File(reader.clone(), range),
        Stored::Memory(bytes) => {
            let at = |position: u64| usize::try_from(position).unwrap_or(bytes.len()).min(bytes.len());
            Piece::Bytes(Bytes::from_owner(Arc::clone(bytes)).slice(at(range.start)..at(range.end)))
        }
    }
}

/// Returns a response with the status and the fields of a stored one, and without a body.
pub(crate) fn headed(head: &Head, has_age: bool) -> Response<Body> {
    let mut response = alone(StatusCode::from_u16(head.status).unwrap_or(StatusCode::BAD_GATEWAY));
    // `:status` is no field of a message, so it stays behind.
    for (name, value) in &head.fields {
        put(response.headers_mut(), name, value);
    }
    let age_s = head.life.age_at_s(now_s());
    if has_age || age_s > 0 {
        response.headers_mut().insert(header::AGE, HeaderValue::from(age_s));
    }
    response
}

/// Returns the fields of a stored response, as the rules read them. `:status` is one of them.
pub(crate) fn fields_of(head: &Head) -> Fields<'_> {
    head.fields.iter().map(|(name, value)| (name.as_slice(), value.as_slice())).collect()
}

/// Returns an empty response.
pub(crate) fn alone(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// States the length, unless the status has no body (RFC 9110 section 8.6).
pub(crate) fn length(response: &mut Response<Body>, bytes: u64) {
    if !matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
        response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
    }
}

fn insert(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
