//! Objects that stand in the page themselves, instead of a URL.

use url_mapping::Outcome;

use crate::charset::Charset;
use crate::event::Ask;
use crate::form::Form;
use crate::kept::Kept;

/// What stands in the page instead of a URL.
#[derive(Debug)]
pub(crate) enum Put {
    /// A `data:` URL, in the place of the URL.
    Url(String),
    /// An element, in the place of the tag.
    Element {
        text: Vec<u8>,
        /// URLs of a sheet, and what became of them.
        urls: Vec<(String, Outcome, Option<Ask>)>,
    },
}

impl Put {
    /// Bytes in the page.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Url(url) => url.len(),
            Self::Element { text, .. } => text.len(),
        }
    }
}

/// Where a text would stand.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) form: Result<Form, Kept>,
    /// What the page is written in, as far as it has said so.
    pub(crate) charset: Charset,
}
