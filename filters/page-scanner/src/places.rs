//! Where sub-resource URLs live in HTML: the whole policy on one screen.
//!
//! `Move(usage)` says what the object is used as; the mapping decides by that and by the URL whether it moves at the
//! configured level. Rules with names of their own look at the rest of the tag and live in `rules`. URLs in no row are
//! never touched: `data-*`, `a`, `area`, `form`, `cite`, `ping`, Open Graph, microdata, JSON in scripts.

use url_mapping::{Reason, Use};

/// One place in a page where a URL, or several, can stand.
#[derive(Debug)]
pub struct Place {
    /// Tag name in lower case.
    pub element: &'static str,
    /// Attribute name in lower case, or what stands for the element's text.
    pub attribute: &'static str,
    pub(crate) syntax: Syntax,
    pub(crate) rule: Rule,
}

impl Place {
    /// `image` with the attributes that it has as an old name of `img`; SVG's has others.
    pub(crate) fn is_of_html_image(&self) -> bool {
        self.element == "image" && matches!(self.attribute, "src" | "srcset")
    }
}

/// How URLs are written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// The value is one URL.
    Url,
    /// Image candidates: <https://html.spec.whatwg.org/multipage/images.html#srcset-attribute>
    Srcset,
    /// A value of a CSS property.
    Css,
    /// `TIME; url=URL`: <https://html.spec.whatwg.org/multipage/semantics.html#shared-declarative-refresh-steps>
    Refresh,
    /// Markup of a page in the page.
    Markup,
}

/// The rule that decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    Move(Use),
    Leave(Reason),
    /// By `type`: only classic scripts move.
    Script,
    /// By the tokens of `rel`, and `as`.
    Link,
    /// Only `type=image` has an image.
    Input,
}

use Rule::{Input, Leave, Link, Move, Script};
use Syntax::{Css, Markup, Refresh, Srcset, Url};

macro_rules! places {
    ($($element:literal $attribute:literal $syntax:ident $rule:expr;)+) => {
        &[$(Place { element: $element, attribute: $attribute, syntax: $syntax, rule: $rule }),+]
    };
}

/// Attributes of elements of HTML, and of SVG inside it. The name of an element does not say which of the two it is of.
/// Browsers ignore an attribute that its language does not define, such as `href` of a `script` in HTML.
pub static PLACES: &[Place] = places! {
    "img"    "src"         Url    Move(Use::Image);
    "img"    "srcset"      Srcset Move(Use::Image);
    "source" "src"         Url    Move(Use::Media);
    "source" "srcset"      Srcset Move(Use::Image);
    "input"  "src"         Url    Input;
    "video"  "poster"      Url    Move(Use::Poster);
    "video"  "src"         Url    Move(Use::Media);
    "audio"  "src"         Url    Move(Use::Media);
    "track"  "src"         Url    Move(Use::Track);
    "script" "src"         Url    Script;
    "script" "href"        Url    Script;
    "script" "xlink:href"  Url    Script;
    "link"   "href"        Url    Link;
    "link"   "imagesrcset" Srcset Link;
    "body"   "background"  Url    Move(Use::Background);
    "table"  "background"  Url    Move(Use::Background);
    "thead"  "background"  Url    Move(Use::Background);
    "tbody"  "background"  Url    Move(Use::Background);
    "tfoot"  "background"  Url    Move(Use::Background);
    "tr"     "background"  Url    Move(Use::Background);
    "td"     "background"  Url    Move(Use::Background);
    "th"     "background"  Url    Move(Use::Background);
    "iframe" "src"         Url    Leave(Reason::Document);
    // A page of its own, written as a value of this one: what is in it is not looked at.
    "iframe" "srcdoc"      Markup Leave(Reason::Document);
    "frame"  "src"         Url    Leave(Reason::Document);
    "embed"  "src"         Url    Leave(Reason::Document);
    "object" "data"        Url    Leave(Reason::Document);
    // SVG; in HTML, `image` is an old name of `img`.
    "image"   "href"       Url    Move(Use::Image);
    "image"   "xlink:href" Url    Move(Use::Image);
    "image"   "src"        Url    Move(Use::Image);
    "image"   "srcset"     Srcset Move(Use::Image);
    "feimage" "href"       Url    Move(Use::Image);
    "feimage" "xlink:href" Url    Move(Use::Image);
    "use"     "href"       Url    Leave(Reason::SameOriginOnly);
    "use"     "xlink:href" Url    Leave(Reason::SameOriginOnly);
};

/// Attributes that SVG has for what in HTML is a property of CSS:
/// <https://svgwg.org/svg2-draft/styling.html#PresentationAttributes>. They name a part of a document, nearly always
/// of this one, and browsers take none from another origin; the picture of a `cursor` is too rare to be worth a rule.
pub(crate) static PRESENTATION: &[Place] = places! {
    "svg *" "fill"         Css Leave(Reason::SameOriginOnly);
    "svg *" "stroke"       Css Leave(Reason::SameOriginOnly);
    "svg *" "filter"       Css Leave(Reason::SameOriginOnly);
    "svg *" "mask"         Css Leave(Reason::SameOriginOnly);
    "svg *" "clip-path"    Css Leave(Reason::SameOriginOnly);
    "svg *" "marker-start" Css Leave(Reason::SameOriginOnly);
    "svg *" "marker-mid"   Css Leave(Reason::SameOriginOnly);
    "svg *" "marker-end"   Css Leave(Reason::SameOriginOnly);
    "svg *" "cursor"       Css Leave(Reason::SameOriginOnly);
};

/// `meta http-equiv=refresh`: where the page leads.
pub(crate) const META_REFRESH: &Place =
    &Place { element: "meta", attribute: "content", syntax: Refresh, rule: Leave(Reason::Document) };

/// The `style` attribute of any element: a list of CSS declarations.
pub(crate) const STYLE_ATTRIBUTE: &Place =
    &Place { element: "*", attribute: "style", syntax: Url, rule: Move(Use::CssImage) };

/// The text of a `style` element: a style sheet.
pub const STYLE_ELEMENT: &Place =
    &Place { element: "style", attribute: "#text", syntax: Url, rule: Move(Use::CssImage) };

/// A style sheet of its own (`text/css`).
pub(crate) const STYLE_SHEET: &Place =
    &Place { element: "text/css", attribute: "#text", syntax: Url, rule: Move(Use::CssImage) };
