//! The rules of `places` that look at more of a tag than the URL's own attribute.

use http_semantics::media_type;
use url_mapping::{Reason, Use};

use crate::links;
use crate::markup::tag::{Tag, bits};
use crate::media::{self, Screen};
use crate::places::{Place, Rule};
use crate::visitor::LoadRequest;

/// The facts in the tag about the object at this place. The URL itself is not looked at.
pub(crate) fn load_request(place: &Place, tag: &Tag<'_>) -> Result<LoadRequest, Reason> {
    let mut is_preload = false;
    let usage = match place.rule {
        Rule::Move(usage) => usage,
        Rule::Leave(reason) => return Err(reason),
        Rule::Script => script(tag)?,
        Rule::Link => {
            let purpose = links::purpose(&tag.text("rel"), &tag.text("as"))?;
            is_preload = purpose.is_preload && !becomes_sheet(tag);
            purpose.usage
        }
        Rule::Input if tag.says("type", "image") => Use::Image,
        Rule::Input => return Err(Reason::NotFetched),
    };
    let cors = with_cors(tag, usage)?;
    // Fonts always are. A text track is with the attribute of the media element around it; without one it must be of the
    // page's own origin (HTML, "start the track processing model"), and one of that origin must not move either way.
    let cors = cors || matches!(usage, Use::Font | Use::Track);
    Ok(LoadRequest { usage, cors, at_once: at_once(place, tag, usage), is_preload })
}

/// Returns true for the usual way to load a style sheet late: a preload whose `onload` makes it the link of the style
/// sheet itself.
fn becomes_sheet(tag: &Tag<'_>) -> bool {
    tag.text("onload").windows(b"stylesheet".len()).any(|word| word.eq_ignore_ascii_case(b"stylesheet"))
}

/// The attributes of a tag that say when its object is fetched.
const TIMING: u64 = bits(&["srcset", "imagesrcset", "media", "rel", "loading", "disabled", "nomodule"]);

/// Returns true if a browser fetches the object whenever it reads the tag; see [`LoadRequest::at_once`].
fn at_once(place: &Place, tag: &Tag<'_>, usage: Use) -> bool {
    let is_late = matches!(usage, Use::Media | Use::Track | Use::Icon);
    if !tag.may_have(TIMING) {
        return !is_late;
    }
    let one_of_several =
        place.attribute.ends_with("srcset") || tag.get("srcset").is_some() || tag.get("imagesrcset").is_some();
    let for_any_medium = tag.get("media").is_none_or(|media| {
        match media::applies_to_screen(&String::from_utf8_lossy(&media.text())) {
            Screen::Always => true,
            // Browsers fetch sheets whatever the window: it may change. Other objects wait until they are needed.
            Screen::Depends => tag.lists("rel", "stylesheet"),
            Screen::Never => false,
        }
    });
    let is_preferred = !tag.lists("rel", "alternate") && !tag.lists("rel", "prefetch");
    let waits = is_late || tag.says("loading", "lazy");
    let is_off = tag.get("disabled").is_some() || tag.get("nomodule").is_some();
    !one_of_several && for_any_medium && is_preferred && !waits && !is_off
}

/// Returns true if the object is fetched with CORS, by `crossorigin`; an error if that, or `integrity`, forbids a move.
///
/// A moved object is fetched from another origin than before. Browsers then check its digest only if they fetch it with
/// CORS. The digest fits only objects that the proxy delivers as they are, which excludes style sheets.
fn with_cors(tag: &Tag<'_>, usage: Use) -> Result<bool, Reason> {
    if !tag.may_have(const { bits(&["crossorigin", "integrity"]) }) {
        return Ok(false);
    }
    let crossorigin = tag.get("crossorigin");
    if tag.says("crossorigin", "use-credentials") {
        return Err(Reason::Cors);
    }
    let integrity = !tag.text("integrity").trim_ascii().is_empty();
    if integrity && (crossorigin.is_none() || usage == Use::Stylesheet) {
        return Err(Reason::Integrity);
    }
    Ok(crossorigin.is_some())
}

/// <https://html.spec.whatwg.org/multipage/scripting.html#prepare-the-script-element>, the script's type.
fn script(tag: &Tag<'_>) -> Result<Use, Reason> {
    let text = |name| tag.get(name).map(|attribute| attribute.text());
    let classic = match (text("type"), text("language")) {
        (Some(kind), _) if kind.is_empty() => true,
        (Some(kind), _) if kind.trim_ascii().eq_ignore_ascii_case(b"module") => return Err(Reason::Module),
        (Some(kind), _) => media_type::is_javascript(kind.trim_ascii()),
        (None, Some(language)) if !language.is_empty() => {
            media_type::is_javascript(&[b"text/", language.as_ref()].concat())
        }
        (None, _) => true,
    };
    if classic { Ok(Use::Script) } else { Err(Reason::NotFetched) }
}
