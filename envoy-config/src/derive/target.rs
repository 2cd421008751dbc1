//! Where moved URLs point: the one choice that can make every page slower.
//!
//! The choice rests on measurements of cold pages in a browser of today. One http address made pages 20 to 30 % slower
//! on every fast link, with six connections for all objects. On slow cells and UMTS it made them 0.5 to 43 % faster, by
//! fewer handshakes. Four addresses with long round trips were 8 to 34 % faster. An https name was faster on every fast
//! link, equal on the slowest, and up to 14 % slower on UMTS.

use crate::config::{Level, Settings, TargetWish};
use crate::config::{LinkClass, LinkModel};

/// The number of http addresses from which a long link gains.
const MIN_HTTP_ADDRESSES_ON_LONG_LINKS: usize = 4;

/// Which of our authorities moved URLs may point to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetChoice {
    /// The kind chosen.
    pub kind: TargetKind,
    /// The authorities, `host[:port]`, already cut to the number of shards; empty for [`TargetKind::Nothing`].
    pub authorities: Vec<String>,
    /// Why, in a sentence or two, with what the operator could do.
    pub reason: String,
    /// Set if the operator chose a target that the model expects to slow pages.
    pub warning: Option<String>,
}

/// The kind of target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetKind {
    /// Our https names: take http and https objects.
    Https,
    /// Our http addresses: take http objects.
    Http,
    /// No URL is moved.
    Nothing,
}

impl TargetKind {
    /// The word used in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Nothing => "nothing",
        }
    }
}

/// Returns whether http addresses are expected to speed pages on this link.
fn http_pays(class: LinkClass, addresses: usize) -> bool {
    match class {
        LinkClass::ByteBound => true,
        LinkClass::LongRoundTrips => addresses >= MIN_HTTP_ADDRESSES_ON_LONG_LINKS,
        LinkClass::ShortRoundTrips => false,
    }
}

/// Chooses; `authorities` come whole and are cut to the shards by the caller.
pub(super) fn choose(settings: &Settings, model: &LinkModel) -> TargetChoice {
    let https = settings.https_authorities();
    let http = settings.http_authorities();
    let chosen = |kind, authorities, reason: String| TargetChoice { kind, authorities, reason, warning: None };
    if settings.rewrite.level == Level::Off {
        return chosen(TargetKind::Nothing, Vec::new(), "rewrite.level is off".to_owned());
    }
    match settings.rewrite.target {
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
