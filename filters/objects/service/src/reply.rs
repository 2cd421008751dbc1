//! Responses to clients.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use http_semantics::Fields;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, Response, StatusCode};
use image_variants::response::varies;
use object_rules::reply::Piece as Part;
use object_rules::{ranges, variant};
use object_store::{Body as Stored, Head, Object, now_s};
use side_program::fields;

use crate::body::{Body, Piece};
use crate::request::put;

/// Returns a stored response, or the part of it that the request wants. All bytes are there.
pub(crate) fn stored(request: &Fields<'_>, object: &Object) -> Response<Body> {
    let (mut response, body) = planned(request, &object.head);
    *response.body_mut() = pieces(object, body);
    response
}

/// Returns a response to a request for a stored one, and the pieces of its body.
pub(crate) fn planned(request: &Fields<'_>, head: &Head) -> (Response<Body>, Vec<Part>) {
    let fields = head.as_fields();
    let planned = head.reply(request, &fields);
    let mut response = alone(status_of(planned.status));
    for (name, value) in &planned.fields {
        put(response.headers_mut(), name, value);
    }
    (response, planned.body)
}

/// Returns a body of these pieces. All bytes are there.
pub(crate) fn pieces(object: &Object, body: Vec<Part>) -> Body {
    let pieces = body.into_iter().map(|part| match part {
        Part::Bytes(bytes) => Piece::Bytes(bytes.into()),
        Part::Stored(range) => piece(object, range),
    });
    Body::of(pieces.collect())
}

/// Names `Accept` if the response may have a smaller variant, or is one.
pub(crate) fn varies_if_image(response: &mut Response<Body>, is_variant: bool) {
    let came = fields(&Method::GET, None, response.headers());
    let value = if is_variant || varies(&came) { variant::with_name(&came, b"Accept") } else { None };
    set_vary(response, value);
}

/// Names `Accept-Encoding` if the response is encoded.
pub(crate) fn varies_if_encoded(response: &mut Response<Body>) {
    let value = variant::of_encoded(&fields(&Method::GET, None, response.headers()));
    set_vary(response, value);
}

fn set_vary(response: &mut Response<Body>, value: Option<Vec<u8>>) {
    if let Some(value) = value.and_then(|value| HeaderValue::from_bytes(&value).ok()) {
        response.headers_mut().insert(header::VARY, value);
    }
}

/// Describes a part of a body.
pub(crate) fn partial(response: &mut Response<Body>, from: u64, to: u64, total: u64) {
    *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    let range = ranges::content_range(from, to.saturating_sub(1), total);
    insert(response.headers_mut(), header::CONTENT_RANGE, &range);
    length(response, to.saturating_sub(from));
}

fn piece(object: &Object, range: Range<u64>) -> Piece {
    match &object.body {
        Stored::File(reader) => Piece::File(reader.clone(), range),
        Stored::Slices(slices) => Piece::File(slices.reader().clone(), range),
        Stored::Memory(bytes) => {
            let at = |position: u64| usize::try_from(position).unwrap_or(bytes.len()).min(bytes.len());
            Piece::Bytes(Bytes::from_owner(Arc::clone(bytes)).slice(at(range.start)..at(range.end)))
        }
    }
}

/// Returns a response with the status and the fields of a stored one, and without a body.
pub(crate) fn headed(head: &Head, has_age: bool) -> Response<Body> {
    let mut response = alone(status_of(head.status));
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

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY)
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
