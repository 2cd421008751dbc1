//! The verdict on a page of a pair: it crosses the link as its difference from another page of its site, or whole.

use http_semantics::Fields;
use longhaul_config::Settings;
use pipe_encoding::delta::{Left, verdict};
use serde::Serialize;

/// The verdict on a page that crosses the link of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DeltaFate {
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
        let gain = || settings.link.delta_saving();
        (!settings.role.is_alone()).then(|| Self::at_an_end(settings.sends_deltas(), gain, response)).flatten()
    }

    fn at_an_end(is_on: bool, gain: impl FnOnce() -> String, response: &Fields<'_>) -> Option<Self> {
        let verdict = verdict(response);
        let (base, reason, explanation) = match verdict {
            Err(Left::Type) => return None,
            _ if !is_on => (false, None, format!("whole, because differences between pages are off: {}", gain())),
            Err(why) => (false, Some(why.as_str()), format!("whole ({}): {}", why.as_str(), why.sentence())),
            Ok(()) => {
                let of_both = "as its difference from another page of its site, if both ends have one";
                (true, None, format!("{of_both}; it is a base for other pages"))
            }
        };
        let explanation = format!("the page crosses the link {explanation}");
        Some(Self { delta: is_on && verdict.is_ok(), base, reason, explanation })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HTML: (&str, &str) = ("content-type", "text/html");

    fn of(is_on: bool, headers: &[(&str, &str)]) -> Option<DeltaFate> {
        let headers = [(":status", "200")].iter().chain(headers);
        let response = headers.map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        DeltaFate::at_an_end(is_on, || "they save 1ms".to_owned(), &response)
    }

    #[test]
    fn a_page_is_a_difference_or_whole_with_its_reason() {
        for (headers, delta, base, reason) in [
            (&[HTML][..], true, true, None),
            (&[HTML, ("cache-control", "private")], false, false, Some("private")),
            (&[HTML, ("set-cookie", "a=b")], false, false, Some("private")),
            (&[HTML, ("cache-control", "no-transform")], false, false, Some("no_transform")),
        ] {
            let fate = of(true, headers).unwrap();
            assert_eq!((fate.delta, fate.base, fate.reason), (delta, base, reason), "{headers:?}");
        }
        let off = of(false, &[HTML]).unwrap();
        assert_eq!((off.delta, off.base, off.reason), (false, false, None));
        assert!(off.explanation.ends_with("are off: they save 1ms"), "{}", off.explanation);
        assert_eq!(of(true, &[("content-type", "image/png")]), None);
    }
}
