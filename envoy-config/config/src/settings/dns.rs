//! The DNS names that are steered.

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::{IpNet, Ipv4Net};

use super::{InstantWish, LookupTransport};
use crate::allowlist::{Listed, NamePattern};

/// DNS steering.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of its own")]
pub struct Dns {
    /// Allowlist files with absolute paths. Each was readable and without a bad line when checked.
    pub domains: Vec<PathBuf>,
    /// Names in the configuration file that are never steered.
    pub except_names: Vec<NamePattern>,
    /// Files of names that are never steered, with absolute paths and checked like `domains`.
    pub except_files: Vec<PathBuf>,
    /// True if any name whose first label is `www` is steered too.
    pub www: bool,
    /// The treatment of the origin's addresses.
    pub mode: DnsMode,
    /// TTL of steered responses.
    pub ttl: Ttl,
    /// The response to AAAA queries if the proxy has no IPv6 address.
    pub aaaa: AaaaPolicy,
    /// The response to HTTPS queries (type 65).
    pub https: HttpsPolicy,
    /// The treatment of responses that a client may validate.
    pub dnssec: DnssecPolicy,
    /// True if `use-application-dns.net` gets a response that keeps browsers on this server.
    pub canary: bool,
    /// The transports of encrypted lookups whose ports no other program has
    /// ([`Settings::encrypted_lookups`](super::Settings::encrypted_lookups)). None: `off`.
    pub encrypted: Option<Vec<LookupTransport>>,
    /// The interval of checks for changed lists. Zero means never.
    pub reload: Duration,
    /// True if steering stops while the proxy does not respond.
    pub health: bool,
    /// The time for which a remote keeps responses, stale ones too. Zero: no longer than an edge does.
    pub remember: Duration,
    /// True if this end of a pair sends or takes responses that nobody has requested yet.
    pub push: bool,
    /// The wish that a name has an address of its own at a browser's first lookup ([`Settings::first_visits`](super::Settings::first_visits)).
    pub(crate) instant: InstantWish,
    /// The range of addresses that names have before the truth is known.
    pub instant_range: Ipv4Net,
    /// Clients that always get the truth.
    pub bypass: Vec<IpNet>,
}

impl Dns {
    /// The default of `dns.instant_range`. It is for measurements of networks (RFC 2544, RFC 6815), so no server on the Internet
    /// has one of its addresses, and browsers take it for public.
    pub const INSTANT_RANGE: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15);

    /// Returns true if names are listed.
    #[must_use]
    pub fn has_lists(&self) -> bool {
        !self.domains.is_empty() || self.www
    }

    /// Returns the number of entries of the lists that `dns.except` does not cover. Reads the files.
    #[must_use]
    pub fn steered_entries(&self) -> usize {
        Listed::read(&self.domains, &self.except_names, &self.except_files).steered().count()
    }
}

/// The treatment of the origin's addresses in a steered response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnsMode {
    /// The proxy first, then at most this many of the origin's.
    Prepend {
        /// The number of origin addresses.
        max_origin: u8,
    },
    /// Only the proxy.
    Replace,
}

/// Bounds of the TTL of a steered response. Within them it is the origin's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ttl {
    /// The lower bound.
    pub min: Duration,
    /// The upper bound.
    pub max: Duration,
}

/// The response to an AAAA query for a steered name if the proxy has no IPv6 address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AaaaPolicy {
    /// No data, with an SOA.
    Nodata,
    /// The truth. Clients with IPv6 bypass the proxy.
    Pass,
}

/// The treatment of HTTPS records of a steered name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpsPolicy {
    /// No data, with an SOA.
    Nodata,
    /// The record without addresses, ECH and HTTP/3.
    Strip,
    /// The truth.
    Pass,
}

/// The treatment of signed responses to a client that validates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DnssecPolicy {
    /// Left unchanged.
    Skip,
    /// Rewritten, so that validation at clients fails.
    Break,
}
