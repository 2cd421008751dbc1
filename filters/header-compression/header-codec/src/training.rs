//! The codec's interface for the dictionary trainer: every decision of a message, in order, with its value.

use crate::block::Block;
pub use crate::coder::Coder;
use crate::dictionary::Dictionary;
pub use crate::dictionary::check_of;
use crate::error::DecodeError;
use crate::exchange::{Side, View};
use crate::message::{FollowingHead, OpeningHead, VIEWS};
use crate::policy::{self, Form, Scope};
use crate::scene::{Scene, Setting};
use crate::walk;

/// Passes every decision of a block to `coder`. `request` is the request of a response.
///
/// # Errors
/// The errors of an encoder; see [`crate::limits`].
pub fn block<C: Coder>(
    coder: &mut C,
    dictionary: &Dictionary,
    side: Side,
    view: &View,
    request: Option<&Block>,
    block: &Block,
) -> Result<(), DecodeError> {
    let mut scene = Scene::new(Setting { side, view, request }, dictionary);
    walk::code(coder, &mut scene, block).map(|_| ())
}

/// Passes every decision of the head of a following request to `coder`. `client` is the number of the client and
/// `appended` holds the differences of the appended exchanges. `exchange` is the difference of the request's own
/// exchange.
pub fn following<C: Coder>(coder: &mut C, client: u64, appended: &[i64], exchange: u64) -> Result<(), DecodeError> {
    let head = FollowingHead { client, view: exchange % VIEWS, appended: appended.to_vec(), exchange };
    head.code(coder).map(|_| ())
}

/// Passes every decision of the head of an opening request to `coder`.
pub fn opening<C: Coder>(coder: &mut C, client: u64, exchange: u64) {
    OpeningHead { session: 0, client, epoch: 0, exchange }.code(coder);
}

/// Returns roughly the number of bytes that a base saves for a block.
pub fn likeness(block: &Block, base: &Block) -> i32 {
    walk::likeness(block, base.keys(), true)
}

/// Returns true if the values of a field are the same for everybody. Then a dictionary may hold them.
pub fn is_common(name: &[u8]) -> bool {
    let policy = policy::of(name);
    policy.scope == Scope::Client && !matches!(policy.form, Form::Date | Form::Number | Form::Url)
}
