//! A page on its way to become a base.

use page_scanner::{Broken, Unpacker};
use shared_board::Board;

use super::bases::{self, Name, Place};
use super::limits;

/// A page that becomes a base when it is complete.
#[derive(Debug, Default)]
pub(super) struct Kept {
    page: Vec<u8>,
    is_too_long: bool,
}

impl Kept {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.is_too_long |= self.page.len().saturating_add(bytes.len()) > limits::PAGE_BYTES;
        if self.is_too_long {
            self.page = Vec::new();
        } else {
            self.page.extend_from_slice(bytes);
        }
    }

    /// Keeps the complete page. `name` is known if a coder has seen the page.
    pub(super) fn put(self, board: &dyn Board, place: Place, name: Option<Name>) -> bool {
        !self.is_too_long && bases::put(board, place, &name.unwrap_or_else(|| bases::name(&self.page)), &self.page)
    }
}

/// Decodes a piece of a body in gzip.
pub(super) fn unpacked(gzip: &mut Unpacker, bytes: &[u8], is_end: bool) -> Result<Vec<u8>, Broken> {
    let mut plain = Vec::new();
    gzip.write(bytes, |piece| plain.extend_from_slice(piece))?;
    if is_end {
        gzip.finish(|piece| plain.extend_from_slice(piece))?;
    }
    Ok(plain)
}
