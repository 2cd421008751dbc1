//! Maps a request on the proxy's own authority back to the origin's URL.

use std::fmt;

use http_semantics::labels::labelled;

use crate::base::Scheme;
use crate::host;
use crate::mapper::{Mapper, split_port};

/// The meaning of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reverse<'a> {
    /// Its authority is not the proxy's own: the request reached the proxy transparently.
    NotOurs,
    /// A moved object.
    Origin(Origin<'a>),
    /// Its authority is the proxy's own, but its path names no object.
    Refused(Refusal),
}

/// The origin of an object. Its true URL is `scheme://authority` + `path`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The scheme of the request to the origin.
    pub scheme: Scheme,
    /// Host in lower case, with the port if it is not the default of the scheme.
    pub authority: &'a str,
    /// Host without port.
    pub host: &'a str,
    /// Path and query exactly as requested. It begins with `/`.
    pub path: &'a [u8],
}

labelled! {
    /// Why a request is refused. The explanation is one line for the client.
    Refusal {
        /// The proxy's own front page.
        FrontPage = "front_page", "this is a proxy for objects of other pages; there is nothing here";
        /// The path does not begin with `/HOST/` or `/HOST:PORT/`.
        NoHost = "no_host", "the path names no host: /HOST/path or /HOST:PORT/path is expected";
        /// The host does not have the form that moved URLs use.
        Host = "host", "the host does not have the form of moved URLs: a lower-case name with a dot, or an address";
        /// The port is not a decimal number from 1 to 65535.
        PortForm = "port_form", "the port in the path is not a number from 1 to 65535";
        /// The port is not under `upstream.ports`.
        PortNotListed = "port_not_listed", "the port in the path is not one of those this proxy serves";
        /// The host is the proxy itself.
        Loop = "loop", "the host in the path is this proxy itself";
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.explanation())
    }
}

impl Mapper {
    /// Maps a request for `path` (with query) at `authority` back to its origin. This is the reverse of
    /// [`forward`](Self::forward). It refuses every form that `forward` would not write, and never guesses.
    pub fn reverse<'a>(&self, authority: &[u8], path: &'a [u8]) -> Reverse<'a> {
        if !self.is_own_authority(authority) {
            return Reverse::NotOurs;
        }
        match self.origin(path) {
            Ok(origin) => Reverse::Origin(origin),
            Err(refusal) => Reverse::Refused(refusal),
        }
    }

    /// Returns the origin in the path of a moved URL.
    pub fn origin<'a>(&self, path: &'a [u8]) -> Result<Origin<'a>, Refusal> {
        if matches!(path, b"/" | b"" | [b'/', b'?', ..]) {
            return Err(Refusal::FrontPage);
        }
        let after = path.strip_prefix(b"/").ok_or(Refusal::NoHost)?;
        let end = after.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).ok_or(Refusal::NoHost)?;
        let (named, path) = after.split_at_checked(end).ok_or(Refusal::NoHost)?;
        if path.first() != Some(&b'/') || named.is_empty() {
            return Err(Refusal::NoHost);
        }
        let named = std::str::from_utf8(named).map_err(|_| Refusal::Host)?;
        let (host, port) = split_port(named).ok_or(Refusal::PortForm)?;
        if !host::is_canonical(host) {
            return Err(Refusal::Host);
        }
        if self.is_own_host(host) || host::is_this_machine(host) {
            return Err(Refusal::Loop);
        }
        let (scheme, authority) = match port {
            Some(443) => (Scheme::Https, host),
            None | Some(80) => (Scheme::Http, host),
            Some(_) => (Scheme::Http, named),
        };
        if !self.is_port_allowed(port.unwrap_or(scheme.default_port())) {
            return Err(Refusal::PortNotListed);
        }
        Ok(Origin { scheme, authority, host, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Level, Rules};

    fn mapper() -> Mapper {
        Mapper::new(&Rules {
            https_targets: vec!["pep.example.net".to_owned()],
            http_targets: vec![],
            own: vec!["pep.example.net".to_owned()],
            level: Level::Safe,
            exclude: vec![],
            ports: vec![80, 443, 8080],
            url_bytes: 8192,
        })
        .unwrap()
    }

    #[test]
    fn a_moved_url_names_its_origin() {
        for (path, scheme, authority, rest) in [
            ("/i.cnn.net/a?b", Scheme::Http, "i.cnn.net", "/a?b"),
            ("/i.cnn.net:443/", Scheme::Https, "i.cnn.net", "/"),
            ("/i.cnn.net:80/", Scheme::Http, "i.cnn.net", "/"),
            ("/i.cnn.net:8080//x", Scheme::Http, "i.cnn.net:8080", "//x"),
            ("/192.0.2.1/%00%zz?\u{fc}", Scheme::Http, "192.0.2.1", "/%00%zz?\u{fc}"),
            ("/[2001:db8::1]:443/../x", Scheme::Https, "[2001:db8::1]", "/../x"),
        ] {
            let Reverse::Origin(origin) = mapper().reverse(b"pep.example.net", path.as_bytes()) else {
                panic!("{path} was refused")
            };
            assert_eq!((origin.scheme, origin.authority, origin.path), (scheme, authority, rest.as_bytes()));
        }
    }

    #[test]
    fn a_url_that_forward_would_not_write_is_refused() {
        for (path, refusal) in [
            ("/", Refusal::FrontPage),
            ("/?x", Refusal::FrontPage),
            ("*", Refusal::NoHost),
            ("/favicon.ico", Refusal::NoHost),
            ("/i.cnn.net?x/", Refusal::NoHost),
            ("//i.cnn.net/", Refusal::NoHost),
            ("/images/a.png", Refusal::Host),
            ("/I.cnn.net/", Refusal::Host),
            ("/../x", Refusal::Host),
            ("/a%2eb/x", Refusal::Host),
            ("/u@i.cnn.net/x", Refusal::Host),
            ("/-i.cnn.net/x", Refusal::Host),
            ("/[::1]/x", Refusal::Loop),
            ("/i.cnn.net:/x", Refusal::PortForm),
            ("/i.cnn.net:0443/x", Refusal::PortForm),
            ("/i.cnn.net:http/x", Refusal::PortForm),
            ("/i.cnn.net:99999/x", Refusal::PortForm),
            ("/i.cnn.net:22/x", Refusal::PortNotListed),
            ("/pep.example.net/x", Refusal::Loop),
            ("/pep.example.net:8080/x", Refusal::Loop),
        ] {
            assert_eq!(mapper().reverse(b"pep.example.net", path.as_bytes()), Reverse::Refused(refusal), "{path}");
        }
        assert_eq!(mapper().reverse(b"pep.example.net", b"/\xff.example/"), Reverse::Refused(Refusal::Host));
    }

    #[test]
    fn authorities_of_others_are_not_the_proxys() {
        assert_eq!(mapper().reverse(b"www.cnn.com", b"/i.cnn.net/a"), Reverse::NotOurs);
        assert_eq!(mapper().reverse(b"", b"/i.cnn.net/a"), Reverse::NotOurs);
    }
}
