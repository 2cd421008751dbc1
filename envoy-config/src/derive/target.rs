//! The choice of the target of moved URLs. This one choice can make every page slower.
//!
//! The choice rests on measurements of cold pages in a current browser:
//!
//! - One http address made pages 20 to 30 % slower on every fast link, because six connections carried all objects.
//! - One http address made pages 0.5 to 43 % faster on slow cells and UMTS, because fewer handshakes were needed.
//! - Four http addresses made pages 8 to 34 % faster on links with long round trips.
//! - An https name made pages faster on every fast link. It changed nothing on the slowest link, and was up to 14 %
//!   slower on UMTS.

use crate::config::{Level, Settings, TargetWish};
use crate::config::{LinkClass, LinkModel};

/// The least number of http addresses that make pages faster on a link with long round trips.
const MIN_HTTP_ADDRESSES_ON_LONG_LINKS: usize = 4;

/// The authorities of this proxy that moved URLs point to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetChoice {
    /// The kind of target.
    pub kind: TargetKind,
    /// The authorities as `host[:port]`, at most one per shard. Empty for [`TargetKind::Nothing`].
    pub authorities: Vec<String>,
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

/// Chooses the target. The result holds all authorities; the caller truncates them to the number of shards.
pub(super) fn choose(settings: &Settings, model: &LinkModel) -> TargetChoice {
    let https = settings.https_authorities();
    let http = settings.http_authorities();
    let chosen = |kind, authorities, reason: String| TargetChoice { kind, authorities, reason, warning: None };
    if settings.rewrite.level == Level::Off {
        return chosen(TargetKind::Nothing, Vec::new(), "rewrite.level is off".to_owned());
    }
    match settings.rewrite.target {
        TargetWish::Https if https.is_empty() => {
            chosen(TargetKind::Nothing, https, "rewrite.target says https, and the certificate is awaited".to_owned())
        }
        TargetWish::Https => chosen(TargetKind::Https, https, "rewrite.target says https".to_owned()),
        TargetWish::Http => TargetChoice {
            warning: (!http_pays(model.class, http.len())).then(|| slow_http_warning(model.class, http.len())),
            ..chosen(TargetKind::Http, http, "rewrite.target says http".to_owned())
        },
        TargetWish::Auto => automatic(model.class, https, http),
    }
}

fn automatic(class: LinkClass, https: Vec<String>, http: Vec<String>) -> TargetChoice {
    let choice =
        |kind, authorities, reason: &str| TargetChoice { kind, authorities, reason: reason.to_owned(), warning: None };
    match (class, https.is_empty(), http_pays(class, http.len())) {
        (LinkClass::ByteBound, _, _) => choice(
            TargetKind::Http,
            http,
            "on a slow link fewer handshakes make pages faster (measured 0.5 to 43 %), and http needs the fewest bytes",
        ),
        (_, false, _) => choice(
            TargetKind::Https,
            https,
            "an https name carries all moved objects at once on one HTTP/2 connection (measured 2 to 29 % faster)",
        ),
        (_, true, true) => choice(
            TargetKind::Http,
            http,
            "no https name, but four or more http addresses on long round trips (measured 8 to 34 % faster)",
        ),
        (_, true, false) => choice(
            TargetKind::Nothing,
            Vec::new(),
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
