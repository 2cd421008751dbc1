//! May this response be replaced, and which headers does its variant have?

use http_semantics::body_fields::{Change, gone, has_digest};
use http_semantics::{Fields, media_type};

use crate::Left;
use crate::tag::Variant;

/// The media types that have variants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// `image/jpeg`.
    Jpeg,
    /// `image/png`.
    Png,
}

/// The bytes that a response may have, by `page.images.min` and `page.images.max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    /// Smaller images are left.
    pub min_bytes: u64,
    /// Larger images are left.
    pub max_bytes: u64,
}

/// A response that may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// The type that the response claims.
    pub source: Source,
    /// Its `Content-Length`.
    pub length: usize,
}

/// Iterates over the fields of a response that its variant must not have: they describe the origin's bytes. The variant
/// has a length, a type and a tag of its own.
pub fn dropped() -> impl Iterator<Item = &'static str> {
    gone(Change::Content).filter(|name| *name != "etag").chain(["content-type"])
}

/// Decides if a response may be replaced.
///
/// # Errors
/// The reason why it may not.
pub fn fit(fields: &Fields<'_>, sizes: Sizes) -> Result<Fit, Left> {
    let says = |directive| fields.lists("cache-control", directive);
    let is_download = fields
        .get("content-disposition")
        .is_some_and(|value| value.get(..10).is_some_and(|start| start.eq_ignore_ascii_case(b"attachment")));
    let rows = [
        (fields.status() != 200 || fields.has("content-range"), Left::Status),
        (says("no-transform"), Left::NoTransform),
        (says("no-store"), Left::NoStore),
        (fields.has("set-cookie"), Left::Cookie),
        (has_digest(fields) || fields.has("content-encoding"), Left::Digest),
        (is_download, Left::Download),
    ];
    if let Some((_, reason)) = rows.into_iter().find(|(applies, _)| *applies) {
        return Err(reason);
    }
    let source = source(fields).ok_or(Left::Type)?;
    let length = length(fields).ok_or(Left::Length)?;
    if length < sizes.min_bytes {
        return Err(Left::Small);
    }
    if length > sizes.max_bytes {
        return Err(Left::Large);
    }
    Ok(Fit { source, length: usize::try_from(length).map_err(|_| Left::Large)? })
}

/// Returns the tag that the variant of a response has. None if the response has no tag.
pub fn tag(fields: &Fields<'_>, variant: Variant) -> Option<Vec<u8>> {
    fields.get("etag").and_then(|tag| variant.tag(tag))
}

/// Returns true if a response depends on `Accept`: a client that accepts WebP may get the variant (RFC 9110, 12.5.5).
pub fn varies(fields: &Fields<'_>) -> bool {
    source(fields).is_some()
}

fn source(fields: &Fields<'_>) -> Option<Source> {
    match media_type::essence(fields.get("content-type")?).as_str() {
        "image/jpeg" | "image/jpg" | "image/pjpeg" => Some(Source::Jpeg),
        "image/png" | "image/x-png" => Some(Source::Png),
        _ => None,
    }
}

/// The `Content-Length`, if there is exactly one.
fn length(fields: &Fields<'_>) -> Option<u64> {
    let mut values = fields.all("content-length");
    let value = values.next().filter(|_| values.next().is_none())?;
    std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { min_bytes: 1024, max_bytes: 1 << 20 };

    fn of(list: &[(&str, &str)]) -> Result<Fit, Left> {
        let base = [(":status", "200"), ("content-type", "image/jpeg"), ("content-length", "5000")];
        let list: Vec<_> =
            base.iter().filter(|(name, _)| !list.iter().any(|(other, _)| other == name)).chain(list).collect();
        fit(&list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect(), SIZES)
    }

    #[test]
    fn a_plain_image_fits_and_its_neighbours_do_not() {
        assert_eq!(
            of(&[("etag", "\"x\""), ("cache-control", "private")]),
            Ok(Fit { source: Source::Jpeg, length: 5000 })
        );
        assert_eq!(of(&[("content-type", "Image/PNG ; x=y")]).map(|fit| fit.source), Ok(Source::Png));
        assert_eq!(of(&[("content-disposition", "inline; filename=attachment")]).map(|fit| fit.length), Ok(5000));
        for (field, reason) in [
            ((":status", "206"), Left::Status),
            ((":status", "304"), Left::Status),
            (("content-range", "bytes 0-1/2"), Left::Status),
            (("cache-control", "public, No-Transform"), Left::NoTransform),
            (("cache-control", "no-store"), Left::NoStore),
            (("set-cookie", "a=b"), Left::Cookie),
            (("content-digest", "sha-256=:x:"), Left::Digest),
            (("digest", "x"), Left::Digest),
            (("content-md5", "x"), Left::Digest),
            (("unencoded-digest", "sha-256=:x:"), Left::Digest),
            (("content-encoding", "gzip"), Left::Digest),
            (("content-disposition", "Attachment; filename=x"), Left::Download),
            (("content-type", "image/gif"), Left::Type),
            (("content-type", "text/html"), Left::Type),
            (("content-length", "1023"), Left::Small),
            (("content-length", "1048577"), Left::Large),
            (("content-length", "+5000"), Left::Length),
            (("content-length", "99999999999999999999999"), Left::Length),
        ] {
            assert_eq!(of(&[field]), Err(reason), "{field:?}");
        }
        assert_eq!(of(&[("content-length", "5000"), ("content-length", "5000")]), Err(Left::Length));
        assert_eq!(fit(&Fields::default(), SIZES), Err(Left::Status));
    }

    #[test]
    fn a_variant_has_a_tag_if_its_origin_has_one() {
        let list = [(&b"etag"[..], &b"\"x\""[..])];
        assert_eq!(tag(&Fields::from(&list[..]), Variant { quality: 75 }).unwrap(), b"W/\"x;lh-webp75\"");
        assert_eq!(tag(&Fields::default(), Variant { quality: 75 }), None);
    }
}
