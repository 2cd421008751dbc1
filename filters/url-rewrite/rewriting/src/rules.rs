//! The rules of `places` that look at more of a tag than the URL's own attribute.

use url_mapping::{Reason, Use};

use crate::headers::mime;
use crate::html::tag::Tag;
use crate::ledger::Ask;
use crate::links;
use crate::places::{Place, Rule};

/// What the tag says about the object at this place; the URL itself has not been looked at.
pub(crate) fn verdict(place: &Place, tag: &Tag<'_>) -> Result<Ask, Reason> {
    let usage = match place.rule {
        Rule::Move(usage) => usage,
        Rule::Leave(reason) => return Err(reason),
        Rule::Script => script(tag)?,
        Rule::Link => link(tag)?,
        Rule::Input if tag.says("type", "image") => Use::Image,
        Rule::Input => return Err(Reason::NotFetched),
    };
    let cors = with_cors(tag, usage)?;
    // Fonts always are. A text track is with the attribute of the media element around it; without one it must be of the
    // page's own origin (HTML, "start the track processing model"), and one of that origin must not move either way.
    Ok(Ask { usage, cors: cors || matches!(usage, Use::Font | Use::Track), at_once: at_once(place, tag, usage) })
}

/// Whether a browser fetches the object whenever it reads the tag; see [`crate::Fetch::at_once`].
fn at_once(place: &Place, tag: &Tag<'_>, usage: Use) -> bool {
    let one_of_several =
        place.attribute.ends_with("srcset") || tag.get("srcset").is_some() || tag.get("imagesrcset").is_some();
    let for_any_medium = tag.get("media").is_none() || tag.says("media", "all") || tag.says("media", "screen");
    let is_preferred = tag.get("rel").is_none_or(|rel| {
        let mut tokens = rel.value.split(u8::is_ascii_whitespace);
        !tokens.any(|token| token.eq_ignore_ascii_case(b"alternate") || token.eq_ignore_ascii_case(b"prefetch"))
    });
    let waits = matches!(usage, Use::Media | Use::Track | Use::Icon) || tag.says("loading", "lazy");
    let is_off = tag.get("disabled").is_some() || tag.get("nomodule").is_some();
    !one_of_several && for_any_medium && is_preferred && !waits && !is_off
}

/// Whether the object is fetched with CORS, by `crossorigin`; an error if that, or `integrity`, forbids a move.
///
/// Moved, an object is fetched from another origin than before. Its digest can then be checked only if it is fetched with
/// CORS, and only of objects that the proxy delivers as they are, which style sheets are not.
fn with_cors(tag: &Tag<'_>, usage: Use) -> Result<bool, Reason> {
    let crossorigin = tag.get("crossorigin");
    if crossorigin.is_some_and(|attribute| attribute.value.eq_ignore_ascii_case(b"use-credentials")) {
        return Err(Reason::Cors);
    }
    let integrity = tag.get("integrity").is_some_and(|attribute| !attribute.value.trim_ascii().is_empty());
    if integrity && (crossorigin.is_none() || usage == Use::Stylesheet) {
        return Err(Reason::Integrity);
    }
    Ok(crossorigin.is_some())
}

/// <https://html.spec.whatwg.org/multipage/scripting.html#prepare-the-script-element>, the script's type.
fn script(tag: &Tag<'_>) -> Result<Use, Reason> {
    let classic = match (tag.get("type"), tag.get("language")) {
        (Some(kind), _) if kind.value.is_empty() => true,
        (Some(kind), _) if kind.value.trim_ascii().eq_ignore_ascii_case(b"module") => return Err(Reason::Module),
        (Some(kind), _) => mime::is_javascript(kind.value.trim_ascii()),
        (None, Some(language)) if !language.value.is_empty() => {
            mime::is_javascript(&[b"text/", language.value].concat())
        }
        (None, _) => true,
    };
    if classic { Ok(Use::Script) } else { Err(Reason::NotFetched) }
}

fn link(tag: &Tag<'_>) -> Result<Use, Reason> {
    let value = |name| tag.get(name).map(|attribute| attribute.value).unwrap_or_default();
    links::usage(value("rel"), value("as"))
}
