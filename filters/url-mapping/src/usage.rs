//! The uses of objects, and the level at which each moves.

use http_semantics::object_request::Destination;
use serde::{Deserialize, Serialize};

/// The rewriting level (`rewrite.level`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Nothing moves.
    Off,
    /// Objects of other hosts that load the same from any host.
    Safe,
    /// Adds the objects that the original paper moved: those of the page's own host, media and fonts.
    Full,
}

/// The use of an object in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Use {
    /// `img`, `picture`, `input type=image`, SVG `image` and `feImage`.
    Image,
    /// `link rel=icon` and its relatives.
    Icon,
    /// `video poster`.
    Poster,
    /// The legacy `background` attribute.
    Background,
    /// `url()` and `image-set()` where CSS expects an image.
    CssImage,
    /// A classic script; modules never move.
    Script,
    /// `link rel=stylesheet`.
    Stylesheet,
    /// `@import` in a style sheet.
    CssImport,
    /// `src` of an `@font-face` rule, or a font preload. Browsers always fetch fonts with CORS.
    Font,
    /// `video`, `audio` and their `source`.
    Media,
    /// A text track, `track`.
    Track,
}

impl Use {
    /// Every use, in the order of declaration.
    pub const ALL: [Self; 11] = [
        Self::Image,
        Self::Icon,
        Self::Poster,
        Self::Background,
        Self::CssImage,
        Self::Script,
        Self::Stylesheet,
        Self::CssImport,
        Self::Font,
        Self::Media,
        Self::Track,
    ];

    /// Returns the request destination of an object of this use.
    pub const fn destination(self) -> Destination {
        match self {
            Self::Image | Self::Icon | Self::Poster | Self::Background | Self::CssImage => Destination::Image,
            Self::Stylesheet | Self::CssImport => Destination::Style,
            Self::Script => Destination::Script,
            Self::Font => Destination::Font,
            Self::Media => Destination::Video,
            Self::Track => Destination::Track,
        }
    }

    /// Returns the lowest level at which an object of this use moves.
    pub const fn moves_at(self) -> Level {
        match self {
            Self::Image
            | Self::Icon
            | Self::Poster
            | Self::Background
            | Self::CssImage
            | Self::Script
            | Self::Stylesheet
            | Self::CssImport => Level::Safe,
            Self::Font | Self::Media | Self::Track => Level::Full,
        }
    }

    /// Returns a short name for messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Icon => "icon",
            Self::Poster => "poster",
            Self::Background => "background",
            Self::CssImage => "css image",
            Self::Script => "script",
            Self::Stylesheet => "stylesheet",
            Self::CssImport => "css import",
            Self::Font => "font",
            Self::Media => "media",
            Self::Track => "track",
        }
    }
}
