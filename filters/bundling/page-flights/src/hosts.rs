//! The hosts that a page names. The resolver of the ground sends their addresses to the remote before a browser looks
//! them up.
//!
//! A page is reported twice at most: after the first bytes that name a host, and at its end with those found since.

use http_semantics::authority;

use crate::limits;

/// The hosts of one page.
#[derive(Debug)]
pub(crate) struct Hosts {
    /// The host of the page.
    own: String,
    named: Vec<String>,
    /// The number of `named` that are reported.
    reported: usize,
}

impl Hosts {
    /// Returns the hosts of a page on `own`, none at first. `None` if nobody looks that host up.
    pub(crate) fn of(own: &str) -> Option<Self> {
        is_name(own).then(|| Self { own: own.to_owned(), named: Vec::new(), reported: 0 })
    }

    /// Adds the host of an absolute URL, as the URL parser writes it.
    pub(crate) fn add(&mut self, url: &str) {
        let Some(host) = host(url).filter(|host| is_name(host)) else { return };
        if self.named.len() < limits::HOSTS && host != self.own && self.named.iter().all(|known| known != host) {
            self.named.push(host.to_owned());
        }
    }

    /// Returns a list to hand over now: the host of the page, then those that no list had. Before the end of the page,
    /// there is one list at most.
    pub(crate) fn report(&mut self, is_end: bool) -> Option<String> {
        let new = self.named.get(self.reported..).filter(|new| !new.is_empty())?;
        if self.reported > 0 && !is_end {
            return None;
        }
        let list = std::iter::once(&self.own).chain(new).map(String::as_str).collect::<Vec<_>>().join(",");
        self.reported = self.named.len();
        Some(list)
    }
}

/// Returns the host of an http or https URL, without its port.
fn host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let all = rest.split(['/', '?', '#']).next()?;
    Some(authority::host(all.rsplit('@').next()?))
}

/// Returns true for a host that browsers look up in public DNS: a name with a dot, and no address.
fn is_name(host: &str) -> bool {
    let is_plain = host.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.'));
    let has_labels = host.split('.').all(|label| (1..=limits::LABEL_BYTES).contains(&label.len()));
    let is_address = || authority::address(host).is_some();
    is_plain && has_labels && host.contains('.') && host.len() <= limits::HOST_BYTES && !is_address()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_listed_behind_the_page_and_nothing_else_is() {
        let mut hosts = Hosts::of("www.test").unwrap();
        assert_eq!(hosts.report(true), None);
        for url in [
            "http://www.test/a.png",
            "https://img.test/a.png",
            "http://img.test:8080/b.png",
            "http://user:secret@cdn_1.test?q",
            "http://192.0.2.7/a.png",
            "http://[2001:db8::1]/a.png",
            "http://localhost/a.png",
            "http://a.test./a.png",
            "http://a,b.test/a.png",
            "data:image/png,x",
            "ftp://files.test/",
            "about:blank",
            "",
        ] {
            hosts.add(url);
        }
        hosts.add(&format!("http://{}.test/", "x".repeat(64)));
        hosts.add(&format!("http://{}test/", "x.".repeat(125)));
        assert_eq!(hosts.report(false).as_deref(), Some("www.test,img.test,cdn_1.test"));
        assert_eq!(hosts.report(true), None);
    }

    #[test]
    fn a_page_is_reported_twice_at_most_and_no_host_twice() {
        let mut hosts = Hosts::of("www.test").unwrap();
        hosts.add("https://a.test/");
        assert_eq!(hosts.report(false).as_deref(), Some("www.test,a.test"));
        for url in ["https://b.test/", "https://a.test/x", "https://c.test/"] {
            hosts.add(url);
            assert_eq!(hosts.report(false), None);
        }
        assert_eq!(hosts.report(true).as_deref(), Some("www.test,b.test,c.test"));
    }

    #[test]
    fn a_page_that_names_many_hosts_has_the_first_ones_listed() {
        let mut hosts = Hosts::of("www.test").unwrap();
        (0..100).for_each(|number| hosts.add(&format!("https://h{number}.test/")));
        let list = hosts.report(false).unwrap();
        assert_eq!(list.split(',').count(), 1 + limits::HOSTS);
        assert!(list.ends_with(&format!(",h{}.test", limits::HOSTS - 1)));
        hosts.add("https://late.test/");
        assert_eq!(hosts.report(true), None);
    }

    #[test]
    fn a_page_at_an_address_has_no_hosts() {
        for own in ["192.0.2.1", "[2001:db8::1]", "localhost", ""] {
            assert!(Hosts::of(own).is_none(), "{own}");
        }
    }
}
