//! Style sheets and scripts that mean the same as the text of an element in a page.

use std::rc::Rc;

use encoding_rs::{Encoding, UTF_8};

use super::NotInlined;
use http_semantics::media_type;
use page_scanner::Charset;

/// Texts that end a `style` element too early, in lower case.
const ENDS_SHEET: &[&str] = &["</style"];
/// Texts that end a `script` element too early. Behind `<!--`, even `</script>` may be part of a script.
const ENDS_SCRIPT: &[&str] = &["</script", "<!--"];

/// Texts of scripts that look for their own URL, or load files beside it. In a page a script has no URL of its own. They
/// are in lower case, without white space, with single quotation marks.
const LOOKS_FOR_ITSELF: &[&str] = &[
    "currentscript",
    "document.scripts",
    "'scripts'",
    "bytagname('script",
    "bytagnamens(",
    "queryselector('script",
    "queryselectorall('script",
    "$('script",
    "script[src",
    // Relative to the script.
    "import(",
    "import/*",
    "import//",
    // Traces name the script's URL.
    ".stack",
];

/// A text that may stand in a page.
#[derive(Debug, Clone)]
pub(super) struct Text(Rc<str>);

impl Text {
    /// Reads a style sheet. An error if it cannot stand in any page.
    pub(super) fn of_sheet(content_type: &[u8], body: &[u8]) -> Result<Self, NotInlined> {
        let text = Self::read(content_type, body)?;
        let lower = text.0.to_ascii_lowercase();
        let declares_other = lower.match_indices("@charset").any(|(at, _)| at > 0)
            || (lower.starts_with("@charset") && !lower.starts_with("@charset \"utf-8\";"));
        if declares_other { Err(NotInlined::Charset) } else { text.unless_it_holds(&lower, ENDS_SHEET) }
    }

    /// Reads a classic script. An error if it cannot stand in any page.
    pub(super) fn of_script(content_type: &[u8], body: &[u8]) -> Result<Self, NotInlined> {
        let text = Self::read(content_type, body)?;
        let lower = text.0.to_ascii_lowercase();
        let told = |character: char| match character {
            '"' | '`' => '\'',
            other => other,
        };
        let dense: String = lower.chars().filter(|character| !character.is_whitespace()).map(told).collect();
        if LOOKS_FOR_ITSELF.iter().any(|needle| dense.contains(needle)) {
            return Err(NotInlined::Text);
        }
        text.unless_it_holds(&lower, ENDS_SCRIPT)
    }

    /// Reads a text that is UTF-8 and declared as nothing else. A byte order mark would be part of the element's text.
    fn read(content_type: &[u8], body: &[u8]) -> Result<Self, NotInlined> {
        let text = std::str::from_utf8(body).map_err(|_| NotInlined::Charset)?;
        let said = media_type::charset(content_type);
        let fits = said.is_none_or(|label| {
            let encoding = Encoding::for_label(label);
            encoding == Some(UTF_8) || (text.is_ascii() && encoding.is_some_and(Encoding::is_ascii_compatible))
        });
        if !fits || text.starts_with('\u{feff}') {
            Err(NotInlined::Charset)
        } else if text.contains('\0') {
            Err(NotInlined::Text)
        } else {
            Ok(Self(text.into()))
        }
    }

    fn unless_it_holds(self, lower: &str, needles: &[&str]) -> Result<Self, NotInlined> {
        if needles.iter().any(|needle| lower.contains(needle)) { Err(NotInlined::Text) } else { Ok(self) }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if its bytes mean the same in a page of this encoding.
    pub(super) fn is_legible_in(&self, page: Charset) -> bool {
        self.0.is_ascii() || page.is_utf_8()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(content_type: &str, body: &[u8]) -> Result<(), NotInlined> {
        Text::of_sheet(content_type.as_bytes(), body).map(|_| ())
    }

    fn script(body: &str) -> Result<(), NotInlined> {
        Text::of_script(b"text/javascript", body.as_bytes()).map(|_| ())
    }

    #[test]
    fn a_sheet_that_any_page_can_hold_is_taken_and_no_other() {
        for body in
            ["p{color:red}", "@charset \"utf-8\"; p{content:'\u{fc}'}", "@import 'a.css';", "a::after{content:'<'}"]
        {
            assert_eq!(sheet("text/css", body.as_bytes()), Ok(()), "{body}");
        }
        for (content_type, body, why) in [
            ("text/css", &b"p{content:'</STYLE>'}"[..], NotInlined::Text),
            ("text/css", b"p\0{}", NotInlined::Text),
            ("text/css", b"\xEF\xBB\xBFp{}", NotInlined::Charset),
            ("text/css", b"p{content:'\xFC'}", NotInlined::Charset),
            ("text/css", b"@charset \"iso-8859-1\"; p{}", NotInlined::Charset),
            ("text/css", b"p{} @charset \"utf-8\";", NotInlined::Charset),
            ("text/css; charset=iso-8859-1", "p{content:'\u{fc}'}".as_bytes(), NotInlined::Charset),
            ("text/css; charset=utf-16", b"p{}", NotInlined::Charset),
            ("text/css; charset=nonsense", b"p{}", NotInlined::Charset),
        ] {
            assert_eq!(sheet(content_type, body), Err(why), "{content_type} {}", String::from_utf8_lossy(body));
        }
        assert_eq!(sheet("text/css; charset=iso-8859-1", b"p{}"), Ok(()), "ASCII is ASCII");
    }

    #[test]
    fn a_script_that_ends_early_or_looks_for_itself_is_not_taken() {
        for body in [
            "document.getElementsByTagName('head')[0]",
            "document.createElement(\"script\").src='x.js'",
            "if (a < b && c --> d) e()",
            "important(1)",
        ] {
            assert_eq!(script(body), Ok(()), "{body}");
        }
        for body in [
            "a='</script>'",
            "a='</SCRIPT x'",
            "a='<!--'",
            "document.currentScript.src",
            "document [ \"currentScript\" ]",
            "d.getElementsByTagName( \"script\" )",
            "document.scripts[0]",
            "document['scripts']",
            "$(`script`).last()",
            "import ('./part.js')",
            "new Error().stack.split('@')",
        ] {
            assert_eq!(script(body), Err(NotInlined::Text), "{body}");
        }
    }

    #[test]
    fn text_beyond_ascii_needs_a_page_that_says_utf_8() {
        let text = Text::of_sheet(b"text/css", "p{content:'\u{fc}'}".as_bytes()).unwrap();
        let ascii = Text::of_sheet(b"text/css", b"p{}").unwrap();
        for (encoding, legible) in [(None, false), (Some(UTF_8), true), (Some(encoding_rs::WINDOWS_1252), false)] {
            let page = Charset::from_header(encoding);
            assert_eq!((text.is_legible_in(page), ascii.is_legible_in(page)), (legible, true));
        }
    }
}
