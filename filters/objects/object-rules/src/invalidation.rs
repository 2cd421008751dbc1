//! Invalidation by a request that may change its resource (RFC 9111 section 4.4).

use http_semantics::{Fields, authority};

/// Returns the URLs on the host of the request whose stored responses are invalid after it, each as path and query. They are
/// the request's own URL and those in `Location` and `Content-Location`, if they have the same scheme, host and port. The
/// list is empty after a safe method and after an error.
///
/// An unknown method counts as unsafe. Without `:scheme`, the URL of the request counts as `http`.
pub fn invalidated(request: &Fields<'_>, response: &Fields<'_>) -> Vec<Vec<u8>> {
    let is_safe = matches!(request.get(":method").unwrap_or(b"GET"), b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE");
    let Some(base) = Base::of(request).filter(|_| !is_safe && (200..400).contains(&response.status())) else {
        return Vec::new();
    };
    let mut urls = vec![without_fragment(base.path).to_vec()];
    for reference in ["location", "content-location"].into_iter().filter_map(|name| response.get(name)) {
        if let Some(url) = base.resolve(reference).filter(|url| !urls.contains(url)) {
            urls.push(url);
        }
    }
    urls
}

/// The URL of a request.
struct Base<'a> {
    scheme: &'a [u8],
    authority: &'a [u8],
    path: &'a [u8],
}

impl<'a> Base<'a> {
    fn of(request: &Fields<'a>) -> Option<Self> {
        let path = request.get(":path").filter(|path| path.starts_with(b"/"))?;
        let authority = request.get(":authority").or_else(|| request.get("host"))?;
        Some(Self { scheme: request.get(":scheme").unwrap_or(b"http"), authority, path })
    }

    /// Resolves a reference (RFC 3986 section 5.2), and returns path and query. Returns None for another origin.
    fn resolve(&self, reference: &[u8]) -> Option<Vec<u8>> {
        let reference = without_fragment(reference);
        let rest = match scheme_end(reference) {
            Some(at) => {
                let (scheme, rest) = (reference.get(..at)?, reference.get(at + 1..)?);
                // `http:path` without `//` is obsolete.
                Some(rest).filter(|rest| scheme.eq_ignore_ascii_case(self.scheme) && rest.starts_with(b"//"))?
            }
            None => reference,
        };
        let local = match rest.strip_prefix(b"//") {
            Some(rest) => {
                let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
                let (authority, local) = rest.split_at_checked(end)?;
                let is_same = self.is_same(authority);
                Some(if local.starts_with(b"/") { local.to_vec() } else { [b"/", local].concat() })
                    .filter(|_| is_same)?
            }
            None => self.merged(rest),
        };
        Some(normal(&local))
    }

    /// Joins a relative reference and the path of the request.
    fn merged(&self, reference: &[u8]) -> Vec<u8> {
        let base = without_fragment(self.path);
        let (path, _) = cut(base, b'?');
        match reference.first() {
            None => base.to_vec(),
            Some(b'/') => reference.to_vec(),
            Some(b'?') => [path, reference].concat(),
            Some(_) => {
                let folder = path.iter().rposition(|&byte| byte == b'/').and_then(|at| path.get(..=at));
                [folder.unwrap_or(b"/"), reference].concat()
            }
        }
    }

    fn is_same(&self, other: &[u8]) -> bool {
        let parts = |authority| {
            let (host, port) = split_port(authority);
            (host.to_ascii_lowercase(), if port.is_empty() { self.default_port() } else { port })
        };
        parts(other) == parts(self.authority)
    }

    const fn default_port(&self) -> &'static [u8] {
        if self.scheme.eq_ignore_ascii_case(b"https") { b"443" } else { b"80" }
    }
}

fn split_port(authority: &[u8]) -> (&[u8], &[u8]) {
    let host = authority::without_port(authority);
    let port = authority.get(host.len()..).and_then(|port| port.strip_prefix(b":")).unwrap_or_default();
    (host, port)
}

/// Returns the place of the colon after a scheme.
fn scheme_end(reference: &[u8]) -> Option<usize> {
    let at = reference.iter().position(|byte| matches!(byte, b':' | b'/' | b'?'))?;
    let is_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let is_colon = reference.get(at) == Some(&b':');
    (is_colon && at > 0 && reference.get(..at)?.iter().all(is_scheme)).then_some(at)
}

fn without_fragment(reference: &[u8]) -> &[u8] {
    cut(reference, b'#').0
}

/// Splits before the first `byte`.
fn cut(text: &[u8], byte: u8) -> (&[u8], &[u8]) {
    let at = text.iter().position(|&other| other == byte).unwrap_or(text.len());
    text.split_at_checked(at).unwrap_or((text, b""))
}

/// Removes the segments `.` and `..` of the path (RFC 3986 section 5.2.4).
fn normal(url: &[u8]) -> Vec<u8> {
    let (path, query) = cut(url, b'?');
    let mut kept: Vec<&[u8]> = Vec::new();
    let mut ends_in_folder = false;
    for segment in path.strip_prefix(b"/").unwrap_or(path).split(|&byte| byte == b'/') {
        ends_in_folder = matches!(segment, b"." | b"..");
        match segment {
            b"." => {}
            b".." => drop(kept.pop()),
            other => kept.push(other),
        }
    }
    if ends_in_folder {
        kept.push(b"");
    }
    [b"/", kept.join(&b'/').as_slice(), query].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(list: &[(&'a str, &'a str)]) -> Fields<'a> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    const BASE: [(&str, &str); 4] =
        [(":method", "POST"), (":scheme", "https"), (":authority", "a.example"), (":path", "/x/y?q")];

    fn of(request: &[(&str, &str)], response: &[(&str, &str)]) -> Vec<String> {
        let urls = invalidated(&fields(request), &fields(response));
        urls.into_iter().map(|url| String::from_utf8(url).unwrap()).collect()
    }

    #[test]
    fn a_successful_unsafe_request_invalidates_its_url() {
        for (method, status, expected) in [
            ("POST", "200", true),
            ("PUT", "204", true),
            ("DELETE", "303", true),
            ("PURGE", "200", true),
            ("POST", "400", false),
            ("POST", "500", false),
            ("POST", "100", false),
            ("POST", "", false),
            ("GET", "200", false),
            ("HEAD", "200", false),
            ("OPTIONS", "200", false),
            ("TRACE", "200", false),
        ] {
            let request = [(":method", method), (":authority", "a.example"), (":path", "/x?q")];
            let found = of(&request, &[(":status", status)]);
            assert_eq!(found, if expected { vec!["/x?q"] } else { vec![] }, "{method} {status}");
        }
        assert!(of(&[(":method", "POST"), (":path", "*"), (":authority", "a")], &[(":status", "200")]).is_empty());
        assert!(of(&[(":method", "POST"), (":path", "/x")], &[(":status", "200")]).is_empty());
    }

    #[test]
    fn a_location_on_the_same_host_and_port_is_invalid_too() {
        for (location, expected) in [
            ("/z", Some("/z")),
            ("z?r#f", Some("/x/z?r")),
            ("?r", Some("/x/y?r")),
            ("../z", Some("/z")),
            ("../../../z/.", Some("/z/")),
            ("./z:1", Some("/x/z:1")),
            ("//a.example/z", Some("/z")),
            ("https://A.example:443/z/../w", Some("/w")),
            ("HTTPS://a.example?r", Some("/?r")),
            ("https://a.example", Some("/")),
            ("", None),
            ("#f", None),
            ("/x/y?q", None),
            ("http://a.example/z", None),
            ("https://a.example:8443/z", None),
            ("https://b.example/z", None),
            ("//b.example/z", None),
            ("https://user@a.example/z", None),
            ("https:z", None),
            ("mailto:a@a.example", None),
        ] {
            for name in ["location", "content-location"] {
                let found = of(&BASE, &[(":status", "201"), (name, location)]);
                let all: Vec<_> = std::iter::once("/x/y?q").chain(expected).collect();
                assert_eq!(found, all, "{location}");
            }
        }
    }

    #[test]
    fn a_port_of_the_request_counts() {
        let request = [(":method", "POST"), (":authority", "[2001:db8::1]:8080"), (":path", "/x")];
        for (location, count) in [("http://[2001:DB8::1]:8080/z", 2), ("http://[2001:db8::1]/z", 1)] {
            assert_eq!(of(&request, &[(":status", "201"), ("location", location)]).len(), count, "{location}");
        }
    }
}
