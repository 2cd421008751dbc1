//! Decides which hosts belong to one site, and which of them a page's cookies reach.

/// The reach of the visitor's cookies, as far as the page's request and response show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Cookies {
    /// There are no cookies.
    #[default]
    None,
    /// The page's own host (RFC 6265, 4.1.2.3: a cookie without `Domain`).
    Host,
    /// Possibly every host of the page's site.
    Site,
}

impl Cookies {
    /// Returns true if a request to `host` may carry a cookie of the page on `page_host`.
    pub(crate) fn reach(self, page_host: &str, host: &str) -> bool {
        match self {
            Self::None => false,
            Self::Host => page_host == host,
            Self::Site => may_be_same_site(page_host, host),
        }
    }
}

/// Returns true if two hosts, in lower case, may belong to one site: the same address, or names with the same last two
/// labels.
///
/// A site is a registrable domain (HTML, "same site"), one label more than a public suffix. The list of public suffixes
/// is long, changes every week, and would have to be in every filter. Every suffix has at least one label, so hosts of
/// one site share at least two labels. Two sites below a suffix of two labels (`a.co.uk`, `b.co.uk`) count as one site.
/// Use this function only where that error is safe.
pub fn may_be_same_site(one: &str, other: &str) -> bool {
    one == other || site_of(one) == site_of(other)
}

/// Returns the part that hosts of one site share: the whole of an address, or the last two labels of a name. `host` is
/// in lower case.
pub fn site_of(host: &str) -> &str {
    let is_address = host.starts_with('[')
        || host.rsplit('.').next().is_some_and(|last| last.starts_with(|c: char| c.is_ascii_digit()));
    if is_address {
        return host;
    }
    let host = host.trim_end_matches('.');
    host.rmatch_indices('.').nth(1).and_then(|(dot, _)| host.get(dot + 1..)).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_one_site_are_never_taken_for_two() {
        for (one, other) in [
            ("www.example.org", "img.example.org"),
            ("example.org", "a.b.example.org"),
            ("www.example.org.", "img.example.org"),
            ("www.example.co.uk", "img.example.co.uk"),
            ("192.0.2.1", "192.0.2.1"),
            ("localhost", "localhost"),
        ] {
            assert!(may_be_same_site(one, other) && may_be_same_site(other, one), "{one} {other}");
        }
        assert!(may_be_same_site("a.co.uk", "b.co.uk"), "two sites, as only the list of suffixes could tell");
    }

    #[test]
    fn hosts_that_cannot_be_of_one_site_are_distinguished() {
        for (one, other) in [
            ("www.example.org", "www.example.net"),
            ("www.example.org", "notexample.org"),
            ("www.example.org", "org"),
            ("192.0.2.1", "198.51.2.1"),
            ("[2001:db8::1]", "[2001:db8::2]"),
        ] {
            assert!(!may_be_same_site(one, other) && !may_be_same_site(other, one), "{one} {other}");
        }
    }

    #[test]
    fn a_host_cookie_reaches_its_host_and_a_site_cookie_the_site() {
        let reached = |cookies: Cookies| {
            ["www.example.org", "img.example.org", "img.example.net"].map(|host| cookies.reach("www.example.org", host))
        };
        assert_eq!(reached(Cookies::None), [false, false, false]);
        assert_eq!(reached(Cookies::Host), [true, false, false]);
        assert_eq!(reached(Cookies::Site), [true, true, false]);
    }
}
