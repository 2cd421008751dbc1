//! What a trainer needs of the codec: every question that a message raises, in order, with its answer.

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

/// Asks `coder` what a block is made of. `request` is the one a response answers.
///
/// # Errors
/// As an encoder would; see [`crate::limits`].
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

/// Asks `coder` what goes before the block of a request that refers to others: `client` is its number, `appended` the
/// differences of the exchanges it appends, `exchange` its own.
pub fn following<C: Coder>(coder: &mut C, client: u64, appended: &[i64], exchange: u64) -> Result<(), DecodeError> {
    let head = FollowingHead { client, view: exchange % VIEWS, appended: appended.to_vec(), exchange };
    head.code(coder).map(|_| ())
}

/// Asks `coder` what goes before the block of a request that refers to nothing.
pub fn opening<C: Coder>(coder: &mut C, client: u64, exchange: u64) {
    OpeningHead { session: 0, client, epoch: 0, exchange }.code(coder);
}

/// How many bytes a base saves a block, roughly.
pub fn likeness(block: &Block, base: &Block) -> i32 {
    walk::likeness(block, base.keys(), true)
}

/// Whether a field says the same to everybody, so that its values may go into a dictionary.
pub fn is_common(name: &[u8]) -> bool {
    let policy = policy::of(name);
    policy.scope == Scope::Client && !matches!(policy.form, Form::Date | Form::Number | Form::Url)
}
