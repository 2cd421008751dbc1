//! The choice of the target of moved URLs. This one choice can make every page slower.
//!
//! The choice rests on measurements of cold pages in a current browser:
//!
//! - One http address made pages 20 to 30 % slower on every fast link, because six connections carried all objects.
//! - One http address made pages 0.5 to 43 % faster on slow cells and UMTS, because fewer handshakes were needed.
//! - Four http addresses made pages 8 to 34 % faster on links with long round trips.
//! - An https name made pages faster on every fast link. It changed nothing on the slowest link, and was up to 14 %
//!   slower on UMTS.

use longhaul_config::{Family, Level, LinkClass, LinkModel, Settings, TargetWish};

/// The least number of http addresses that make pages faster on a link with long round trips.
const MIN_HTTP_ADDRESSES_ON_LONG_LINKS: usize = 4;

/// The authorities of this proxy that moved URLs point to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetChoice {
    /// The kind of target.
    pub kind: TargetKind,
    /// The authorities as `host[:port]`, at most one per shard and family. Empty for [`TargetKind::Nothing`].
    pub authorities: Vec<String>,
    /// Those of `authorities` that clients reach over IPv4.
    pub ipv4: Vec<String>,
    /// Those of `authorities` that clients reach over IPv6.
    pub ipv6: Vec<String>,
    /// The reason for the choice and advice to the operator, in one or two sentences.
    pub reason: String,
    /// The warning, if the operator chose a target that the model expects to slow pages.
    pub warning: Option<String>,
}

/// The kind of target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// The https names of the proxy. They serve http and https objects.
    Https,
    /// The http addresses of the proxy. They serve http objects.
    Http,
    /// No target: no URL is moved.
    Nothing,
}

impl TargetKind {
    /// Returns the word that tables use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Nothing => "nothing",
        }
    }
}

/// Returns true if the model expects http addresses to make pages faster on this link.
fn http_pays(class: LinkClass, addresses: usize) -> bool {
    match class {
        LinkClass::ByteBound => true,
        LinkClass::LongRoundTrips => addresses >= MIN_HTTP_ADDRESSES_ON_LONG_LINKS,
        LinkClass::ShortRoundTrips => false,
    }
}

/// Chooses the target. The result holds all authorities; [`TargetChoice::first`] leaves those of the shards.
pub(super) fn choose(settings: &Settings, model: &LinkModel) -> TargetChoice {
    let http = |family| settings.http_authorities(&[family]);
    // Each client uses the addresses of one family.
    let addresses = Family::BOTH.map(|family| http(family).len()).into_iter().max().unwrap_or_default();
    let no_https = settings.https_authorities(&Family::BOTH).is_empty();
    let (kind, reason) = match (settings.rewrite.level, settings.rewrite.target) {
        (Level::Off, _) => (TargetKind::Nothing, "rewrite.level is off"),
        (_, TargetWish::Https) if no_https => {
            (TargetKind::Nothing, "rewrite.target says https, and the certificate is awaited")
        }
        (_, TargetWish::Https) => (TargetKind::Https, "rewrite.target says https"),
        (_, TargetWish::Http) => (TargetKind::Http, "rewrite.target says http"),
        (_, TargetWish::Auto) => automatic(model.class, no_https, addresses),
    };
    let wanted = settings.rewrite.target == TargetWish::Http;
    let slow = wanted && kind == TargetKind::Http && !http_pays(model.class, addresses);
    let of = |family| match kind {
        TargetKind::Https => settings.https_authorities(&[family]),
        TargetKind::Http => {
            Some(http(family)).filter(|http| wanted || http_pays(model.class, http.len())).unwrap_or_default()
        }
        TargetKind::Nothing => Vec::new(),
    };
    TargetChoice {
        kind,
        authorities: Vec::new(),
        ipv4: of(Family::Ipv4),
        ipv6: of(Family::Ipv6),
        reason: reason.to_owned(),
        warning: slow.then(|| slow_http_warning(model.class, addresses)),
    }
    .first(usize::MAX)
}

impl TargetChoice {
    /// Returns the same choice with at most `shards` authorities of each family.
    pub(super) fn first(mut self, shards: usize) -> Self {
        self.ipv4.truncate(shards);
        self.ipv6.truncate(shards);
        let more = self.ipv6.iter().filter(|authority| !self.ipv4.contains(authority));
        self.authorities = self.ipv4.iter().chain(more).cloned().collect();
        self
    }
}

/// Returns the kind that the model expects to gain, and the reason.
fn automatic(class: LinkClass, no_https: bool, addresses: usize) -> (TargetKind, &'static str) {
    match (class, no_https, http_pays(class, addresses)) {
        (LinkClass::ByteBound, _, _) => (
            TargetKind::Http,
            "on a slow link fewer handshakes make pages faster (measured 0.5 to 43 %), and http needs the fewest bytes",
        ),
        (_, false, _) => (
            TargetKind::Https,
            "an https name carries all moved objects at once on one HTTP/2 connection (measured 2 to 29 % faster)",
        ),
        (_, true, true) => (
            TargetKind::Http,
            "no https name, but four or more http addresses on long round trips (measured 8 to 34 % faster)",
        ),
        (_, true, false) => (
            TargetKind::Nothing,
            "moving to http addresses would slow pages on this link (one address measured 20 to 30 % slower): a browser opens six \
             connections to a name and the objects queue behind them; add proxy.secure_names with a certificate under tls.terminate",
        ),
    }
}

fn slow_http_warning(class: LinkClass, addresses: usize) -> String {
    let what = match class {
        LinkClass::LongRoundTrips => {
            "at least four addresses, or an https name under proxy.secure_names, would speed them"
        }
        _ => "an https name under proxy.secure_names would speed them",
    };
    format!(
        "rewrite.target: http with {addresses} address(es) is expected to slow pages on this link (measured 20 to 30 % with one); {what}; rewrite.target: auto would not move them"
    )
}
