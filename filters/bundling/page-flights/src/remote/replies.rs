//! Replies made of kept objects.

use http_semantics::object_request::names_newer_pictures;
use http_semantics::{Fields, Reply, edited};
use image_variants::tag::is_of_variant;
use pipe_encoding::accept::{refuses_plain, takes};
use pipe_encoding::{TAKES, codings, decode, edits, is_br};

use crate::fields::{borrowed, media_type};
use crate::limits;
use crate::object;
use crate::request::Asked;
use crate::shelf::Kept;

/// Returns the reply that the kept object is, with the fields of the moment in which the ground sent it. None if its head
/// cannot be read.
pub(super) fn of(kept: &Kept, moment: &[u8]) -> Option<Reply> {
    let fields = object::fields_of(&kept.head, moment).ok()?;
    Some(Reply { status: 200, fields, body: kept.body.clone() })
}

/// Returns the reply in a content encoding that the client accepts. None if the object cannot serve the request.
pub(super) fn for_request(asked: &Asked, reply: Reply) -> Option<Reply> {
    readable(asked, reply).filter(|reply| fits(asked, reply))
}

/// Adds the `Vary` of an object that may be a smaller variant of an image. The ground says it to clients, but not of
/// objects, which no client requests.
pub(super) fn varying(mut reply: Reply) -> Reply {
    let list = borrowed(&reply.fields);
    let fields = Fields::from(&list[..]);
    if media_type(&fields) == b"image/webp" && fields.get("etag").is_none_or(is_of_variant) {
        reply.fields.push((b"vary".to_vec(), b"Accept".to_vec()));
    }
    reply
}

/// Decompresses an object in br for a client that does not accept br. None if it cannot be decompressed.
fn readable(asked: &Asked, reply: Reply) -> Option<Reply> {
    let list = borrowed(&reply.fields);
    let fields = Fields::from(&list[..]);
    if !is_br(&fields) || takes(&asked.accepted, TAKES.as_bytes()) || refuses_plain(&asked.accepted) {
        return Some(reply);
    }
    let body = decode(&reply.body, limits::UNPACKED_BYTES).ok()?;
    let edits = edits(&fields);
    Some(Reply { status: reply.status, fields: edited(fields, &edits).to_list(), body })
}

/// Returns true if the object can serve this request.
fn fits(asked: &Asked, reply: &Reply) -> bool {
    let list = borrowed(&reply.fields);
    let fields = Fields::from(&list[..]);
    let coding = codings(&fields).all(|coding| takes(&asked.accepted, coding));
    let cookie = !asked.with_cookie || fields.lists("cache-control", "public");
    let origin = !asked.with_origin || fields.get("access-control-allow-origin") == Some(b"*");
    // A client that does not accept newer image types may share its address with one that does.
    let newer = matches!(media_type(&fields).as_slice(), b"image/webp" | b"image/avif");
    let picture = !newer || asked.types == b"*/*" || names_newer_pictures(&asked.types);
    coding && cookie && origin && picture
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_may_be_a_variant_varies_by_accept() {
        for (kind, tag, expected) in [
            ("image/webp", Some("W/\"x;lh-webp75\""), true),
            ("image/webp", None, true),
            ("image/webp", Some("\"x\""), false),
            ("image/jpeg", None, false),
        ] {
            let etag = tag.map(|tag| (b"etag".to_vec(), tag.as_bytes().to_vec()));
            let fields = [(b"content-type".to_vec(), kind.as_bytes().to_vec())].into_iter().chain(etag).collect();
            let reply = varying(Reply { status: 200, fields, body: Vec::new() });
            assert_eq!(reply.fields.contains(&(b"vary".to_vec(), b"Accept".to_vec())), expected, "{kind} {tag:?}");
        }
    }

    #[test]
    fn an_object_fits_a_request_that_accepts_its_content_encoding() {
        let asked = |accepted: &str| Asked {
            url: "http://a.test/".to_owned(),
            accepted: accepted.as_bytes().to_vec(),
            types: b"*/*".to_vec(),
            with_cookie: false,
            referrer: None,
            with_origin: false,
        };
        for (encoding, accepted, expected) in [
            ("gzip", "gzip, deflate", true),
            ("gzip", "br", false),
            ("gzip,", "gzip", true),
            ("", "br", true),
            ("identity", "br", true),
            ("br, gzip", "gzip", false),
        ] {
            let fields = vec![(b"content-encoding".to_vec(), encoding.as_bytes().to_vec())];
            let reply = Reply { status: 200, fields, body: Vec::new() };
            assert_eq!(fits(&asked(accepted), &reply), expected, "{encoding} for {accepted}");
        }
    }
}
