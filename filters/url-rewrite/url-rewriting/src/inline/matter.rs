//! What an object at hand is, by what its server says and by its bytes.

use std::rc::Rc;

use super::Kept;
use super::picture::Type;
use super::text::Text;
use crate::headers::mime;

/// An object as it can be put into pages.
#[derive(Debug, Clone)]
pub(super) enum Matter {
    Picture(Type, Rc<[u8]>),
    Sheet(Text),
    Script(Text),
}

impl Matter {
    /// An error if nothing of the kind is put into pages.
    pub(super) fn of(content_type: &[u8], body: &[u8], takes_scripts: bool) -> Result<Self, Kept> {
        let essence = mime::essence(content_type);
        if essence == "text/css" {
            Text::of_sheet(content_type, body).map(Self::Sheet)
        } else if !mime::is_javascript(essence.as_bytes()) {
            Type::of(content_type, body).map(|kind| Self::Picture(kind, body.into())).ok_or(Kept::NotHeld)
        } else if takes_scripts {
            Text::of_script(content_type, body).map(Self::Script)
        } else {
            Err(Kept::Level)
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Picture(_, body) => body.len(),
            Self::Sheet(text) | Self::Script(text) => text.as_str().len(),
        }
    }
}
