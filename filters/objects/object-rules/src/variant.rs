//! `Vary` (RFC 9111 section 4.1): the fields of a request that select one of the stored responses of a URL.

use http_semantics::{Fields, accept_encoding};

use crate::lists;

/// The most names. A response that depends on more fields is not stored.
pub const MOST_NAMES: usize = 16;

/// Returns the names in `Vary`, in lower case, sorted, each once. An encoded response also depends on `Accept-Encoding`, whatever
/// its origin says: other clients could not read it. Returns None for `*`, for a name that is none, and for more than
/// [`MOST_NAMES`] names.
pub fn names(response: &Fields<'_>) -> Option<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for name in response.items("vary") {
        if name == b"*" || !name.iter().all(|&byte| is_token(byte)) || names.len() >= MOST_NAMES {
            return None;
        }
        names.push(name.to_ascii_lowercase());
    }
    if is_encoded(response) {
        names.push(b"accept-encoding".to_vec());
    }
    names.sort_unstable();
    names.dedup();
    Some(names)
}

/// Returns the values that a request has for these names, in a form to hash. Two requests with equal bytes get the same
/// stored response. Two lists of values never give equal bytes by chance, because each value has its length in front.
pub fn values(request: &Fields<'_>, names: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for name in names {
        put(&mut out, name);
        let value = match (name.as_slice(), coding(request)) {
            (b"accept-encoding", Some(coding)) => Some(coding.as_str().as_bytes().to_vec()),
            // Language ranges have no case (RFC 4647 section 2). Their order stays: origins may read it as a preference
            // (RFC 9110 section 12.5.4).
            (b"accept-language", _) => joined(request, name).map(|value| value.to_ascii_lowercase()),
            _ => joined(request, name),
        };
        match value {
            // An absent field differs from an empty one.
            None => out.push(0),
            Some(value) => {
                out.push(1);
                put(&mut out, &value);
            }
        }
    }
    out
}

/// Returns true if the body is in a content encoding.
fn is_encoded(response: &Fields<'_>) -> bool {
    response.items("content-encoding").any(|coding| !coding.eq_ignore_ascii_case(b"identity"))
}

/// Returns the `Vary` that an encoded response needs. None if the field is right.
pub fn of_encoded(response: &Fields<'_>) -> Option<Vec<u8>> {
    if is_encoded(response) { with_name(response, b"Accept-Encoding") } else { None }
}

/// Returns the `Vary` of a response that also depends on the field `name`. None if the field is right.
pub fn with_name(response: &Fields<'_>, name: &'static [u8]) -> Option<Vec<u8>> {
    let is_named = |said: &[u8]| said == b"*" || said.eq_ignore_ascii_case(name);
    if response.items("vary").any(is_named) {
        return None;
    }
    Some(response.items("vary").chain([name]).collect::<Vec<_>>().join(&b", "[..]))
}

/// A class of clients by the content encodings that they accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// The client accepts br and gzip.
    Br,
    /// The client accepts gzip.
    Gzip,
    /// The client accepts neither, or does not say.
    Identity,
}

impl Coding {
    /// Returns the `Accept-Encoding` of the class. The origin must hear this, and not the client's own value. Else a response
    /// in an encoding of one client would be stored for all clients of the class.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Br => "br, gzip",
            Self::Gzip => "gzip",
            Self::Identity => "identity",
        }
    }
}

/// Returns the class of a request. Returns None for a client that refuses a plain response, because no class promises an
/// encoding. [`values`] then holds the client's own value.
pub fn coding(request: &Fields<'_>) -> Option<Coding> {
    if request.all("accept-encoding").any(accept_encoding::refuses_plain) {
        return None;
    }
    let takes_br = request.all("accept-encoding").any(|value| accept_encoding::takes(value, b"br"));
    Some(match (accept_encoding::takes_gzip(request), takes_br) {
        (true, true) => Coding::Br,
        (true, false) => Coding::Gzip,
        (false, _) => Coding::Identity,
    })
}

/// The field by which bundling at a remote says what it decompresses (`pipe_encoding::TAKES_FIELD`).
const TAKES: &str = "x-longhaul-takes";

/// Returns true if the stored response is in br, and nobody decompresses it for this request. At a remote, requests of one
/// class differ in this: bundling decompresses br, but not for a range, and not while it holds many windows.
pub fn is_unread_br(request: &Fields<'_>, stored: &Fields<'_>) -> bool {
    let takes = |name| request.all(name).any(|value| accept_encoding::takes(value, b"br"));
    let is_br = stored.items("content-encoding").any(|coding| coding.eq_ignore_ascii_case(b"br"));
    is_br && !takes("accept-encoding") && !takes(TAKES)
}

/// Joins the fields `name`, with one comma and one space between items (RFC 9110 section 5.3).
fn joined(request: &Fields<'_>, name: &[u8]) -> Option<Vec<u8>> {
    let name = std::str::from_utf8(name).ok().filter(|name| request.has(name))?;
    Some(request.all(name).flat_map(lists::items).collect::<Vec<_>>().join(&b", "[..]))
}

fn put(out: &mut Vec<u8>, piece: &[u8]) {
    out.extend_from_slice(&(piece.len() as u64).to_le_bytes());
    out.extend_from_slice(piece);
}

/// RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(list: &[(&'a str, &'a str)]) -> Fields<'a> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    #[test]
    fn a_response_in_br_is_for_requests_that_somebody_decompresses() {
        let br = fields(&[("content-encoding", "br")]);
        let gzip = [("accept-encoding", "gzip, deflate")];
        for (request, is_unread) in [
            (&gzip[..], true),
            (&[("accept-encoding", "br;q=0")], true),
            (&[("accept-encoding", "gzip, br")], false),
            (&[gzip[0], ("x-longhaul-takes", "br")], false),
            (&[gzip[0], ("x-longhaul-takes", "br, delta")], false),
            (&[], true),
        ] {
            assert_eq!(is_unread_br(&fields(request), &br), is_unread, "{request:?}");
            assert!(!is_unread_br(&fields(request), &fields(&[("content-encoding", "gzip")])));
            assert!(!is_unread_br(&fields(request), &fields(&[])));
        }
    }

    #[test]
    fn names_are_sorted_and_a_star_is_none() {
        for (vary, expected) in [
            (&[][..], Some(&[][..])),
            (&[("vary", "")], Some(&[])),
            (&[("vary", "Origin,accept-encoding"), ("vary", " ORIGIN ")], Some(&["accept-encoding", "origin"])),
            (&[("content-encoding", "gzip")], Some(&["accept-encoding"])),
            (&[("content-encoding", "br"), ("vary", "Accept-Encoding, a")], Some(&["a", "accept-encoding"])),
            (&[("content-encoding", "Identity")], Some(&[])),
            (&[("vary", "*")], None),
            (&[("vary", "origin"), ("vary", "a, *")], None),
            (&[("vary", "a b")], None),
            (&[("vary", ":path")], None),
            (&[("vary", "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q")], None),
        ] {
            let expected = expected.map(|names| names.iter().map(|name| name.as_bytes().to_vec()).collect());
            assert_eq!(names(&fields(vary)), expected, "{vary:?}");
        }
    }

    #[test]
    fn an_encoded_response_says_that_it_is_one() {
        let gzip = ("content-encoding", "gzip");
        assert_eq!(of_encoded(&fields(&[gzip])).as_deref(), Some(&b"Accept-Encoding"[..]));
        for right in [&[gzip, ("vary", "accept-encoding")][..], &[("content-encoding", "identity")], &[]] {
            assert_eq!(of_encoded(&fields(right)), None, "{right:?}");
        }
    }

    #[test]
    fn a_name_is_added_once() {
        for (vary, expected) in [
            (&[][..], Some("accept")),
            (&[("vary", "Origin")], Some("Origin, accept")),
            (&[("vary", "a"), ("vary", "b")], Some("a, b, accept")),
            (&[("vary", "a, Accept")], None),
            (&[("vary", "*")], None),
        ] {
            let found = with_name(&fields(vary), b"accept");
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{vary:?}");
        }
    }

    #[test]
    fn values_differ_where_a_response_may_differ() {
        let of = |name: &str, list: &[(&str, &str)]| values(&fields(list), &[name.as_bytes().to_vec()]);
        for (name, one, other, equal) in [
            ("accept", &[("accept", "a,b")][..], &[("accept", "a , b")][..], true),
            ("accept", &[("accept", "a"), ("accept", "b")], &[("accept", "a, b")], true),
            ("accept", &[("accept", "a,b")], &[("accept", "b,a")], false),
            ("accept", &[("accept", "x=\"a,b\"")], &[("accept", "x=\"a, b\"")], false),
            ("accept", &[("accept", "")], &[], false),
            ("accept", &[("accept", "a"), ("origin", "b")], &[("accept", "a")], true),
            ("accept", &[("accept", "a")], &[("accept", "A")], false),
            (
                "accept-language",
                &[("accept-language", "en-GB, de;q=0.5")],
                &[("accept-language", "eN-gb,DE;Q=0.5")],
                true,
            ),
            (
                "accept-language",
                &[("accept-language", "en"), ("accept-language", "de")],
                &[("accept-language", "EN, de")],
                true,
            ),
            ("accept-language", &[("accept-language", "en, de")], &[("accept-language", "de, en")], false),
            ("accept-language", &[("accept-language", "en, de")], &[("accept-language", "en, de;q=0.5")], false),
            ("accept-language", &[("accept-language", "en")], &[("accept-language", "en-GB")], false),
            ("accept-language", &[("accept-language", "")], &[], false),
            (
                "accept-encoding",
                &[("accept-encoding", "gzip, br")],
                &[("accept-encoding", "br,gzip;q=0.5, zstd")],
                true,
            ),
            ("accept-encoding", &[("accept-encoding", "gzip, deflate")], &[("accept-encoding", "x-gzip")], true),
            ("accept-encoding", &[("accept-encoding", "gzip")], &[("accept-encoding", "gzip, br")], false),
            ("accept-encoding", &[("accept-encoding", "deflate")], &[], true),
            ("accept-encoding", &[("accept-encoding", "br")], &[("accept-encoding", "br, gzip")], false),
            ("accept-encoding", &[("accept-encoding", "gzip, *;q=0")], &[("accept-encoding", "gzip")], false),
        ] {
            assert_eq!(of(name, one) == of(name, other), equal, "{one:?} {other:?}");
        }
    }

    #[test]
    fn a_class_is_never_told_an_encoding_that_its_client_refuses() {
        for (accepted, expected) in [
            ("gzip, deflate, br", Some(Coding::Br)),
            ("gzip;q=0.1", Some(Coding::Gzip)),
            ("br", Some(Coding::Identity)),
            ("gzip, br;q=0", Some(Coding::Gzip)),
            ("gzip;q=0, br", Some(Coding::Identity)),
            ("*", Some(Coding::Gzip)),
            ("", Some(Coding::Identity)),
            ("gzip, identity;q=0", None),
        ] {
            assert_eq!(coding(&fields(&[("accept-encoding", accepted)])), expected, "{accepted}");
        }
        assert_eq!(coding(&Fields::default()), Some(Coding::Identity));
    }

    #[test]
    fn names_and_values_are_told_apart() {
        let names = |list: &[&str]| list.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>();
        let one = values(&fields(&[("a", "bc")]), &names(&["a", "b"]));
        let other = values(&fields(&[("a", "b"), ("b", "c")]), &names(&["a", "b"]));
        assert_ne!(one, other);
        assert!(values(&fields(&[("a", "b")]), &[]).is_empty());
    }
}
