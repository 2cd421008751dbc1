//! Media query lists: <https://www.w3.org/TR/mediaqueries-4/#mq-syntax>.

use cssparser::{Delimiter, ParseError, Parser, Token};

/// The result of a media query list: does it apply to a browser window on a screen?
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Screen {
    /// Never: it names other media only, or is not valid.
    Never,
    /// It depends on the window, the device or the user's settings.
    Depends,
    /// Always.
    Always,
}

impl Screen {
    fn not(self) -> Self {
        match self {
            Self::Never => Self::Always,
            Self::Depends => Self::Depends,
            Self::Always => Self::Never,
        }
    }
}

/// Judges the value of a `media` attribute, character references decoded. The list applies if any of its queries does;
/// an empty list applies everywhere. A query that is not valid stands for `not all`.
pub(crate) fn applies_to_screen(list: &str) -> Screen {
    let text = list.trim_ascii();
    if text.is_empty() || text.eq_ignore_ascii_case("all") || text.eq_ignore_ascii_case("screen") {
        return Screen::Always;
    }
    let mut parser = Parser::new(list);
    let mut best = Screen::Never;
    loop {
        let query = parser.parse_until_before(Delimiter::Comma, |query| {
            let judged = judge(query);
            while query.next().is_ok() {}
            Ok::<_, ParseError<()>>(judged.unwrap_or(Screen::Never))
        });
        best = best.max(query.unwrap_or(Screen::Never));
        // The comma, or the end.
        if parser.next().is_err() {
            return best;
        }
    }
}

/// One query. None if it is not valid.
fn judge(query: &mut Parser<'_>) -> Option<Screen> {
    let mut negated = false;
    let medium = match query.next().ok()?.clone() {
        Token::Ident(word) if word.eq_ignore_ascii_case("not") || word.eq_ignore_ascii_case("only") => {
            negated = word.eq_ignore_ascii_case("not");
            match query.next().ok()?.clone() {
                Token::Ident(medium) => medium,
                // `not (condition)`.
                Token::ParenthesisBlock | Token::Function(_) if negated => return Some(Screen::Depends),
                _ => return None,
            }
        }
        Token::Ident(medium) => medium,
        Token::ParenthesisBlock | Token::Function(_) => return Some(Screen::Depends),
        _ => return None,
    };
    let reserved = ["not", "only", "and", "or", "layer"];
    if reserved.iter().any(|word| medium.eq_ignore_ascii_case(word)) {
        return None;
    }
    let of_medium = if medium.eq_ignore_ascii_case("all") || medium.eq_ignore_ascii_case("screen") {
        Screen::Always
    } else {
        Screen::Never
    };
    let applies = match query.next().cloned() {
        Err(_) => of_medium,
        Ok(Token::Ident(word)) if word.eq_ignore_ascii_case("and") => match query.next().cloned() {
            Ok(Token::ParenthesisBlock | Token::Function(_)) => of_medium.min(Screen::Depends),
            // `and not (condition)`.
            Ok(Token::Ident(word)) if word.eq_ignore_ascii_case("not") => of_medium.min(Screen::Depends),
            _ => return None,
        },
        Ok(_) => return None,
    };
    Some(if negated { applies.not() } else { applies })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_media_or_a_condition_is_taken_for_another_medium() {
        for list in [
            "",
            " ",
            "all",
            "Screen",
            "screen, projection",
            "projection,screen",
            "only screen",
            "not print",
            "print, all",
            "s\\63reen",
            "screen/**/",
            "%, screen",
            "not print and (color)",
            "screen, (",
        ] {
            assert_eq!(applies_to_screen(list), Screen::Always, "{list:?}");
        }
        for list in [
            "screen and (max-width: 600px)",
            "only screen and (min-width: 1px) and (color)",
            "(min-width: 40em)",
            "print, (orientation: landscape)",
            "not (hover)",
            "all and not (hover)",
            "not screen and (color)",
            "calc(1)",
        ] {
            assert_eq!(applies_to_screen(list), Screen::Depends, "{list:?}");
        }
        for list in [
            "print",
            "projection, tv",
            "not all",
            "not screen",
            "print and (color)",
            "only",
            "not",
            "and",
            "screen print",
            "screen and",
            "screen and print",
            "screen; all",
            "%",
        ] {
            assert_eq!(applies_to_screen(list), Screen::Never, "{list:?}");
        }
    }
}
