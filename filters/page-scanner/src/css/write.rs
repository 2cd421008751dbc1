//! A URL written so that it reads back as itself. It may stand in quotes, in `url()` without quotes, or in a `<style>`
//! element.

use std::borrow::Cow;
use std::fmt::Write;

/// `url` escaped for a quoted string or an unquoted `url()`, whichever it stands in.
///
/// `<` is escaped too. In a `<style>` element, the text would end at `</style`.
pub(crate) fn escape(url: &str) -> Cow<'_, str> {
    let punctuation = |character| matches!(character, '"' | '\'' | '(' | ')' | '\\');
    let by_number = |character: char| character == '<' || character == ' ' || character.is_ascii_control();
    if !url.chars().any(|character| punctuation(character) || by_number(character)) {
        return Cow::Borrowed(url);
    }
    let mut written = String::with_capacity(url.len() + 16);
    for character in url.chars() {
        if punctuation(character) {
            written.push('\\');
            written.push(character);
        } else if by_number(character) {
            // The space ends the number.
            // Writing to a string cannot fail.
            let _ = write!(written, "\\{:x} ", u32::from(character));
        } else {
            written.push(character);
        }
    }
    Cow::Owned(written)
}
