//! The kind of an object, by its `Content-Type` and its bytes.

use std::rc::Rc;

use super::NotInlined;
use super::picture::Type;
use super::text::Text;
use http_semantics::media_type;

/// An object in a form that can be put into pages.
#[derive(Debug, Clone)]
pub(super) enum Content {
    Picture(Type, Rc<[u8]>),
    Sheet(Text),
    Script(Text),
}

impl Content {
    /// Reads an object. An error if no object of its kind is put into pages.
    pub(super) fn of(content_type: &[u8], body: &[u8], takes_scripts: bool) -> Result<Self, NotInlined> {
        let essence = media_type::essence(content_type);
        if essence == "text/css" {
            Text::of_sheet(content_type, body).map(Self::Sheet)
        } else if !media_type::is_javascript(essence.as_bytes()) {
            Type::of(content_type, body).map(|kind| Self::Picture(kind, body.into())).ok_or(NotInlined::NotHeld)
        } else if takes_scripts {
            Text::of_script(content_type, body).map(Self::Script)
        } else {
            Err(NotInlined::Level)
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Picture(_, body) => body.len(),
            Self::Sheet(text) | Self::Script(text) => text.as_str().len(),
        }
    }
}
