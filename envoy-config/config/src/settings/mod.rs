//! The checked configuration, on which every other part of the command works.
//!
//! A value of these types has passed every check of `longhaul check`, and no other part repeats a check. There is no
//! string if a type exists. Nothing here changes after loading: a changed file makes a new `Settings`.

mod clients;
mod dns;
mod encrypted;
mod instant;
mod link;
mod links;
mod listen;
mod notify;
mod page;
mod role;
mod tls;

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::access_log::Log;
use crate::names::Host;
use crate::overrides::{OverrideValue, Overrides, TransportKey};
use crate::share::Share;
use crate::sockets::Family;
use crate::units::Bytes;

pub use {
    clients::*,
    dns::*,
    encrypted::*,
    instant::*,
    link::*,
    links::{Multipath, NamedLink, UseWish},
    listen::*,
    notify::*,
    page::*,
    role::*,
    tls::*,
};

/// Writes [`Settings`], and [`Draft`] with the same groups, so that a group of the file stands once.
macro_rules! groups {
    ($($(#[$doc:meta])* $group:ident: $type:ty,)*) => {
        /// One checked `longhaul.yaml`.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Settings {
            /// The absolute path of the configuration file. Relative paths in it have been resolved against its folder.
            pub file: PathBuf,
            $($(#[$doc])* pub $group: $type,)*
        }

        /// The groups of the file. A group with a problem is None, so that no later check uses half of it.
        #[allow(clippy::option_option, reason = "the inner None is a value of the group")]
        pub(crate) struct Draft {
            $(pub(crate) $group: Option<$type>,)*
        }

        impl Draft {
            /// Returns the settings in `file`. None if a group has a problem.
            pub(crate) fn settings(self, file: PathBuf) -> Option<Settings> {
                Some(Settings { file, $($group: self.$group?,)* })
            }
        }
    };
}

groups! {
    /// The name of this box among others with the same file. None: the host name.
    id: Option<String>,
    /// Envoy's worker threads.
    workers: Workers,
    /// The engine of the filters.
    engine: EngineWish,
    /// The role of this box.
    role: Role,
    /// The slow link. With several, the preferred one.
    link: Link,
    /// Several links under one pair, the preferred one first. Empty with one link, and at other boxes than a remote.
    links: Vec<NamedLink>,
    /// The share of clients that are left alone for comparison. None: `off`.
    compare: Option<Share>,
    /// The groups of clients, whose ranges do not overlap. Empty but at a remote.
    clients: Vec<ClientGroup>,
    /// The addresses and names of the proxy for clients.
    proxy: Proxy,
    /// The sockets that this box binds.
    listen: Listen,
    /// The times of an orderly end.
    drain: DrainTimes,
    /// The access log.
    log: Log,
    /// The program that hears of problems. None: `off`.
    notify: Option<Notify>,
    /// The hosts that this box may reach.
    upstream: Upstream,
    /// The URLs that move, and their target.
    rewrite: Rewrite,
    /// The DNS names that are steered.
    dns: Dns,
    /// The cache of objects.
    cache: Cache,
    /// The compression of responses.
    compress: Compress,
    /// Prefetching and bundling of a page's objects, and the encoding of pages on a pair.
    page: Page,
    /// Smaller variants of images.
    images: Images,
    /// The certificates of the operator, in the order of the file.
    terminate: Vec<Termination>,
    /// The ACME challenges for the proxy's own names. None: they get no special treatment.
    acme: Option<Acme>,
    /// Values that the operator set in place of derived ones.
    transport: Overrides,
    /// Bounds on the cost of one client or page.
    limits: Limits,
    /// The destination of spans. None if there is no tracing.
    tracing: Option<Tracing>,
}

/// The engine of the filters, as the file chooses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineWish {
    /// Wasm modules.
    Wasm,
    /// The native module, or nothing.
    Native,
    /// The native module where Envoy loads it, else wasm modules.
    Auto,
}

/// The number of Envoy's worker threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    /// One for each processor that the box may use.
    Auto,
    /// The number in the file, at least one.
    Count(u32),
}

/// Spans for an OpenTelemetry collector (OTLP over HTTP).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tracing {
    /// The collector.
    pub collector: SocketAddr,
    /// The percentage of requests with spans.
    pub sample_percent: u32,
}

/// Bounds on the cost of one client or page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The memory that the rewriter may use for one page.
    pub page_memory: Bytes,
    /// The number of client connections at one time.
    pub connections: u32,
    /// The size of the header block of one request.
    pub header: Bytes,
    /// The number of clients whose headers each worker of a pair remembers.
    pub clients: u32,
    /// The number of new names that one client may request at once, and each minute.
    pub new_names_per_client: u32,
    /// The cost of variants of images.
    pub images: ImageLimits,
}

impl Settings {
    /// Returns true if listeners offer HTTP/3 to clients: TLS ends on this box, and `transport.http3` is not `off`.
    #[must_use]
    pub fn offers_http3(&self) -> bool {
        let written = self.transport.get(&TransportKey::Http3).map(|written| &written.value);
        self.can_offer_http3() && !matches!(written, Some(OverrideValue::Switch(false)))
    }

    /// Returns true if TLS ends on this box, which HTTP/3 needs.
    #[must_use]
    pub fn can_offer_http3(&self) -> bool {
        self.listen.tls.is_some() && !self.terminate.is_empty()
    }

    /// Returns the authorities to which an http object can move without TLS: `ADDRESS`, with the port if it is not 80.
    /// Clients reach each over one of `families`.
    pub fn http_authorities(&self, families: &[Family]) -> Vec<String> {
        let reached = self.proxy.addresses.iter().filter(|address| families.contains(&Family::of(**address)));
        reached.map(|address| Host::Address(*address).authority(self.listen.http.port(), 80)).collect()
    }

    /// Returns the link that decides time-outs: with the longest round trip and the lowest rates of all links.
    #[must_use]
    pub fn slowest_link(&self) -> Link {
        links::slowest(&self.link, &self.links)
    }

    /// Returns the link that decides buffers: with the longest round trip and the rates of all links together.
    #[must_use]
    pub fn all_links(&self) -> Link {
        links::together(&self.link, &self.links)
    }

    /// Returns true if CoreDNS counts what it does for clients or for remotes.
    #[must_use]
    pub fn counts_dns(&self) -> bool {
        self.listen.dns.is_some() || matches!(self.role, Role::Ground(_)) && self.dns.push
    }

    /// Returns the proxy's own https authorities that have a certificate: names or addresses, with the port if it is not
    /// 443. Clients reach each over one of `families`. A name leads to every address of the proxy.
    pub fn https_authorities(&self, families: &[Family]) -> Vec<String> {
        let Some(tls) = &self.listen.tls else { return Vec::new() };
        let served = |name: &&Host| self.terminate.iter().any(|entry| entry.names.contains(name));
        let named = self.proxy.addresses.iter().any(|address| families.contains(&Family::of(*address)));
        let reached = |host: &&Host| match host {
            Host::Name(_) => named,
            Host::Address(address) => families.contains(&Family::of(*address)),
        };
        let own = self.proxy.secure_names.iter().filter(served).filter(reached);
        own.map(|name| name.authority(tls.port(), 443)).collect()
    }

    /// Returns true if a filter sends requests of its own, through the hop `fetch`.
    pub fn fetches(&self) -> bool {
        let bundles = self.page.bundle && !self.role.meets_clients();
        self.role.changes_pages() && (self.prefetches() || bundles)
    }

    /// Returns true if a page's moved objects are prefetched: if URLs move, and if this box has a disk cache. Nothing
    /// else would keep the objects.
    pub fn prefetches(&self) -> bool {
        self.page.prefetch && self.rewrite.level != Level::Off && matches!(self.cache, Cache::Disk { .. })
    }

    /// Returns true if the DNS plugin has names to respond to. Without any, it would refuse to start.
    pub fn steers(&self) -> bool {
        self.lists_names() || self.first_visits().is_ok() || self.proxy.secure_names.iter().any(Host::is_name)
    }

    /// Returns true if listed names are looked for. They are not where browsers would keep public pages from them.
    pub fn lists_names(&self) -> bool {
        let listed = self.dns.has_lists();
        listed && (self.answers_truly() || self.proxy.local_steering().is_empty())
    }

    /// Returns true if names keep their true addresses, because the clients' connections to these come here.
    pub fn answers_truly(&self) -> bool {
        self.role.stands_beside_clients() && self.listen.intercept != Intercept::None
    }

    /// Returns every authority of the proxy itself, secure names first.
    pub fn own_authorities(&self) -> Vec<String> {
        let mut own = self.https_authorities(&Family::BOTH);
        own.extend(self.http_authorities(&Family::BOTH));
        own
    }
}
