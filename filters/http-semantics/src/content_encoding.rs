//! Content encodings: which bodies are worth one, which files only carry the label, and which the cache may hold.
//!
//! Servers label archives as gzip (Apache's `AddEncoding gzip .gz .tgz`, object stores). Programs that download them verify
//! the bytes and would not find them after decompression. So only text that we would compress ourselves is ever
//! decompressed.

use crate::Fields;
use crate::accept_encoding::takes;

/// Media types of bodies that shrink, in groups of one top-level type. A name that begins with `*` stands for every name
/// with that end, and a lone `*` for every name.
const COMPRESSIBLE: [(&str, &[&str]); 4] = [
    ("text", &["*"]),
    (
        "application",
        &[
            "*+json",
            "*+xml",
            "javascript",
            "x-javascript",
            "ecmascript",
            "json",
            "xml",
            "wasm",
            "graphql",
            "x-ndjson",
            "vnd.ms-fontobject",
            "x-font-ttf",
            "x-font-otf",
            "font-sfnt",
        ],
    ),
    ("font", &["ttf", "otf", "sfnt", "collection"]),
    ("image", &["svg+xml", "bmp", "x-icon", "vnd.microsoft.icon"]),
];

/// Ends of paths by which servers label a file as compressed: `AddEncoding` names such ends.
const LABELLED: [&[u8]; 8] = [b".gz", b".tgz", b".taz", b".z", b".svgz", b".br", b".tbr", b".gzip"];

/// Returns the regular expression of the media types that shrink, for Envoy (RE2).
pub fn compressible() -> String {
    let groups = COMPRESSIBLE.map(|(kind, names)| {
        let names: Vec<String> = names
            .iter()
            .map(|name| {
                let end = name.strip_prefix('*');
                let escaped = end.unwrap_or(name).replace('.', "\\.").replace('+', "\\+");
                if end.is_some() { format!(".+{escaped}") } else { escaped }
            })
            .collect();
        format!("{kind}/({})", names.join("|"))
    });
    format!("(?i)({})", groups.join("|"))
}

/// Returns true if a body of this `Content-Type` shrinks.
pub fn is_compressible(content_type: &[u8]) -> bool {
    let essence = content_type.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
    let Some(slash) = essence.iter().position(|&byte| byte == b'/') else { return false };
    let (kind, name) = (essence.get(..slash).unwrap_or_default(), essence.get(slash + 1..).unwrap_or_default());
    let is_named = |known: &&str| match known.strip_prefix('*') {
        Some(end) => name.len() > end.len() && ends_with(name, end.as_bytes()),
        None => name.eq_ignore_ascii_case(known.as_bytes()),
    };
    let group = COMPRESSIBLE.iter().find(|(known, _)| kind.eq_ignore_ascii_case(known.as_bytes()));
    group.is_some_and(|(_, names)| names.iter().any(is_named))
}

/// Returns true if the path names a file that servers label by its end.
fn is_labelled_by_path(path: &[u8]) -> bool {
    let path = path.split(|&byte| byte == b'?').next().unwrap_or_default();
    LABELLED.iter().any(|end| ends_with(path, end))
}

fn ends_with(bytes: &[u8], end: &[u8]) -> bool {
    let start = bytes.len().checked_sub(end.len());
    start.and_then(|start| bytes.get(start..)).is_some_and(|last| last.eq_ignore_ascii_case(end))
}

/// Iterates over the content encodings of a message without `identity`.
pub fn codings<'a>(message: &Fields<'a>) -> impl Iterator<Item = &'a [u8]> {
    message.items("content-encoding").filter(|coding| !coding.eq_ignore_ascii_case(b"identity"))
}

/// Returns true if gzip is the only content encoding of a message. The name `x-gzip` is an alias (RFC 9110 section
/// 8.4.1.3).
pub fn is_gzip(message: &Fields<'_>) -> bool {
    only(message).is_some_and(|coding| coding.eq_ignore_ascii_case(b"gzip") || coding.eq_ignore_ascii_case(b"x-gzip"))
}

/// Returns true if br is the only content encoding of a message.
pub fn is_br(message: &Fields<'_>) -> bool {
    only(message).is_some_and(|coding| coding.eq_ignore_ascii_case(b"br"))
}

fn only<'a>(message: &Fields<'a>) -> Option<&'a [u8]> {
    let mut codings = codings(message);
    codings.next().filter(|_| codings.next().is_none())
}

/// Returns true if the content encoding of `response` to `path` may be removed for a client that does not accept it. It
/// may if the body is text. A labelled file is what its server sends to every client.
pub fn is_removable(path: &[u8], response: &Fields<'_>) -> bool {
    is_compressible(response.get("content-type").unwrap_or_default()) && !is_labelled_by_path(path)
}

/// Returns true if the cache may hold a response to `path` in its content encoding. The cache has one form for all
/// clients, and serves it decompressed to those that do not accept it. `accepted` is the `Accept-Encoding` that the
/// origin received: an encoding that was not requested belongs to the file itself.
pub fn is_shared(path: &[u8], accepted: &[u8], response: &Fields<'_>) -> bool {
    if codings(response).next().is_none() {
        return true;
    }
    let was_requested = (is_gzip(response) && takes(accepted, b"gzip")) || (is_br(response) && takes(accepted, b"br"));
    was_requested && is_removable(path, response)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(list: &[(&'static str, &'static str)]) -> Fields<'static> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    #[test]
    fn text_shrinks_and_archives_do_not() {
        for kind in [
            "text/html; charset=utf-8",
            " Text/CSS ;x",
            "application/javascript",
            "application/ld+json",
            "application/atom+XML",
            "application/vnd.ms-fontobject",
            "font/ttf",
            "image/svg+xml",
            "image/x-icon",
        ] {
            assert!(is_compressible(kind.as_bytes()), "{kind}");
        }
        for kind in [
            "",
            "text",
            "text/",
            "application/+json",
            "application/gzip",
            "application/x-gzip",
            "application/x-tar",
            "application/x-compressed",
            "application/octet-stream",
            "application/zip",
            "application/vnd.debian.binary-package",
            "application/javascripts",
            "font/woff2",
            "image/png",
            "video/mp4",
        ] {
            assert!(!is_compressible(kind.as_bytes()), "{kind}");
        }
    }

    #[test]
    fn envoy_gets_the_same_types() {
        assert_eq!(
            compressible(),
            "(?i)(text/(.+)|application/(.+\\+json|.+\\+xml|javascript|x-javascript|ecmascript|json|xml|wasm|graphql|x-ndjson\
             |vnd\\.ms-fontobject|x-font-ttf|x-font-otf|font-sfnt)|font/(ttf|otf|sfnt|collection)\
             |image/(svg\\+xml|bmp|x-icon|vnd\\.microsoft\\.icon))"
        );
    }

    #[test]
    fn one_content_encoding_is_recognised() {
        for (coding, br, gzip) in [
            ("br", true, false),
            ("BR, identity", true, false),
            ("gzip", false, true),
            ("X-GZip", false, true),
            ("gzip, br", false, false),
            ("", false, false),
        ] {
            let response = of(&[("content-encoding", coding)]);
            assert_eq!((is_br(&response), is_gzip(&response)), (br, gzip), "{coding}");
        }
    }

    #[test]
    fn the_cache_holds_text_in_a_requested_encoding_and_no_labelled_file() {
        let js = ("content-type", "text/javascript");
        for (path, accepted, list, expected) in [
            ("/a.js", "", &[js][..], true),
            ("/a.tar.gz", "", &[("content-type", "application/gzip")], true),
            ("/a.js", "gzip", &[js, ("content-encoding", "gzip")], true),
            ("/a.js", "br, gzip", &[js, ("content-encoding", "br")], true),
            ("/a.js", "gzip", &[js, ("content-encoding", "br")], false),
            ("/a.js", "identity", &[js, ("content-encoding", "gzip")], false),
            ("/a.js", "gzip", &[js, ("content-encoding", "gzip, gzip")], false),
            ("/Packages.gz", "gzip", &[("content-type", "text/plain"), ("content-encoding", "gzip")], false),
            ("/log.GZ?x=.js", "gzip", &[("content-type", "text/plain"), ("content-encoding", "gzip")], false),
            ("/a", "gzip", &[("content-type", "application/x-tar"), ("content-encoding", "x-gzip")], false),
            ("/a", "gzip", &[("content-encoding", "gzip")], false),
        ] {
            assert_eq!(is_shared(path.as_bytes(), accepted.as_bytes(), &of(list)), expected, "{path} {list:?}");
        }
    }
}
