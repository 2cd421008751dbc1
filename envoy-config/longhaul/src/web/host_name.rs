//! The names under which a browser may ask a server on a private address.
//!
//! A foreign page can let its own name resolve to this server's address, and then read the server as its own origin (DNS
//! rebinding). The browser names the foreign host, so the server refuses every name that is not its own.

use http_semantics::authority;

/// The names of a server, in lower case. Addresses are always allowed: a page at an address needs no DNS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostPolicy {
    names: Vec<String>,
    all: bool,
}

impl HostPolicy {
    /// Allows `names` and `localhost`.
    pub(crate) fn of(names: impl IntoIterator<Item = String>) -> Self {
        let own = names.into_iter().map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        Self { names: own.chain(["localhost".to_owned()]).filter(|name| !name.is_empty()).collect(), all: false }
    }

    /// Allows every name, and requests without one. This is for pages that a foreign page may read.
    pub(crate) fn all() -> Self {
        Self { names: Vec::new(), all: true }
    }

    /// Returns true if the name in a request does not matter.
    pub(super) fn allows_all(&self) -> bool {
        self.all
    }

    /// Returns true if a request with this `Host` (RFC 9110 section 7.2) is for this server. The port does not matter.
    pub(crate) fn allows(&self, host: &str) -> bool {
        let host = authority::host(host);
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        authority::address(host).is_some() || self.names.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_names_and_addresses_are_allowed_and_no_other_name() {
        let policy = HostPolicy::of(["Gateway".to_owned(), "pep.example.net.".to_owned(), String::new()]);
        for own in [
            "localhost",
            "localhost:9900",
            "LOCALHOST",
            "localhost.",
            "127.0.0.1",
            "127.0.0.1:9900",
            "192.0.2.1:80",
            "[::1]",
            "[::1]:9900",
            "[2001:db8::1]:80",
            "2001:db8::1:2",
            "[2001:DB8:0::1]",
            "gateway:9900",
            "pep.example.net",
            "PEP.example.net:9900",
        ] {
            assert!(policy.allows(own), "{own}");
        }
        for foreign in [
            "",
            ".",
            ":",
            ":9900",
            "evil.test",
            "evil.test:9900",
            "localhost.evil.test",
            "127.0.0.1.evil.test",
            "evil.test:127.0.0.1",
            "localhost@evil.test",
            "notlocalhost",
            "127.0.0.1 evil.test",
            "[evil.test]",
            "pep.example.net.evil.test",
            "0x7f000001",
            "127.1",
            "2130706433",
        ] {
            assert!(!policy.allows(foreign), "{foreign}");
        }
    }
}
