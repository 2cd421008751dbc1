//! The verdict on a page of a pair: it crosses the link as its difference from another page of its site, or whole.

use http_semantics::Fields;
use pipe_encoding::delta::{Left, verdict};
use serde::Serialize;

use crate::config::{DeltaGain, RoleName, Settings};

/// The verdict on a page that crosses the link of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeltaFate {
    /// True if the page crosses the link as a difference, once both ends have another page of its site.
    pub delta: bool,
    /// True if other pages may cross the link as differences from this one.
    pub base: bool,
    /// The reason why the page crosses the link whole, as a label. None: it does not, or differences are off.
    pub reason: Option<&'static str>,
    /// The verdict in a sentence.
    pub explanation: String,
}

impl DeltaFate {
    /// Returns the verdict on a response to a visitor without cookies or credentials. Returns None for a box without a
    /// pair, and for a response that is no page.
    pub(super) fn of(settings: &Settings, response: &Fields<'_>) -> Option<Self> {
        if settings.role.name() == RoleName::Edge {
            return None;
        }
        let (base, reason, explanation) = match verdict(response) {
            Err(Left::Type) => return None,
            _ if !settings.sends_deltas() => {
                let gain = DeltaGain::of(&settings.link).words();
                (false, None, format!("whole, because differences between pages are off: {gain}"))
            }
            Err(why) => (false, Some(why.as_str()), format!("whole ({}): {}", why.as_str(), why.sentence())),
            Ok(base) => {
                let own = if base { "a base" } else { "no base, because it is not for every client," };
                let of_both = "as its difference from another page of its site, if both ends have one";
                (base, None, format!("{of_both}; it is {own} for other pages"))
            }
        };
        let delta = reason.is_none() && settings.sends_deltas();
        Some(Self { delta, base, reason, explanation: format!("the page crosses the link {explanation}") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::load_text;

    const HTML: (&str, &str) = ("content-type", "text/html");
    const GROUND: &str = "role: ground\nsplit: { peer: [ship.test] }\n";

    fn of(role: &str, down: &str, headers: &[(&str, &str)]) -> Option<DeltaFate> {
        let text = format!(
            "link: {{ rtt: 600ms, down: {down}, up: 64kbit }}\nupstream: {{ resolvers: [192.0.2.53] }}\n{role}"
        );
        let settings = load_text("test.yaml".as_ref(), text).unwrap().settings;
        let fields: Fields<'_> =
            [(":status", "200")].iter().chain(headers).map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
        DeltaFate::of(&settings, &fields)
    }

    #[test]
    fn a_page_is_a_difference_or_whole_with_its_reason() {
        let (strict, private) = (("cache-control", "no-transform"), ("cache-control", "private"));
        for (headers, delta, base, reason) in [
            (&[HTML][..], true, true, None),
            (&[HTML, private], true, false, None),
            (&[HTML, strict], false, false, Some("no_transform")),
        ] {
            let fate = of(GROUND, "384kbit", headers).unwrap();
            assert_eq!((fate.delta, fate.base, fate.reason), (delta, base, reason), "{headers:?}");
        }
        let off = of(GROUND, "1gbit", &[HTML]).unwrap();
        assert_eq!((off.delta, off.base, off.reason), (false, false, None));
        assert!(off.explanation.contains("are off: they save"), "{}", off.explanation);
        assert_eq!(of(GROUND, "384kbit", &[("content-type", "image/png")]), None);
        let edge = "proxy: { addresses: [198.51.100.12] }\n";
        assert_eq!(of(edge, "384kbit", &[HTML]), None);
    }
}
