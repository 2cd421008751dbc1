//! `Vary` (RFC 9111 section 4.1): the fields of a request that select one of the stored responses of a URL.

use http_semantics::{Fields, accept_encoding};

use crate::lists;

/// The most names. A response that depends on more fields is not stored.
pub const MOST_NAMES: usize = 16;

/// Returns the names in `Vary`, in lower case, sorted, each once. They are empty without `Vary`. Returns None for `*`, for a
/// name that is none, and for more than [`MOST_NAMES`] names.
pub fn names(response: &Fields<'_>) -> Option<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    for name in response.items("vary") {
        if name == b"*" || !name.iter().all(|&byte| is_token(byte)) || names.len() >= MOST_NAMES {
            return None;
        }
        names.push(name.to_ascii_lowercase());
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
    fn names_are_sorted_and_a_star_is_none() {
        for (vary, expected) in [
            (&[][..], Some(&[][..])),
            (&[("vary", "")], Some(&[])),
            (&[("vary", "Origin,accept-encoding"), ("vary", " ORIGIN ")], Some(&["accept-encoding", "origin"])),
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
    fn values_differ_where_a_response_may_differ() {
        let of = |name: &str, list: &[(&str, &str)]| values(&fields(list), &[name.as_bytes().to_vec()]);
        for (name, one, other, equal) in [
            ("accept", &[("accept", "a,b")][..], &[("accept", "a , b")][..], true),
            ("accept", &[("accept", "a"), ("accept", "b")], &[("accept", "a, b")], true),
            ("accept", &[("accept", "a,b")], &[("accept", "b,a")], false),
            ("accept", &[("accept", "x=\"a,b\"")], &[("accept", "x=\"a, b\"")], false),
            ("accept", &[("accept", "")], &[], false),
            ("accept", &[("accept", "a"), ("origin", "b")], &[("accept", "a")], true),
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
