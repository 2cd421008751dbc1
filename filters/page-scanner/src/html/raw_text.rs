//! The content of elements that is text and not markup: where it ends.
//!
//! A script ends at `</script>`. But between `<!--` and `-->` a whole `<script>...</script>` is part of it. Pages once hid
//! scripts in this way from browsers that knew none
//! (<https://html.spec.whatwg.org/multipage/parsing.html#script-data-escaped-state>).

use memchr::memchr2;

use super::elements::Text;
use super::input::Input;
use super::tag_end::ends_name;

/// How deep a script is in what looks like a comment; `since`: where its dashes begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Escape {
    #[default]
    No,
    Comment {
        since: usize,
    },
    ScriptInComment {
        since: usize,
    },
}

/// How far a text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// To its end tag, or to what may be one if it is cut; `needed`: from where on the bytes must be at hand next time.
    Open { until: usize, needed: usize },
    /// It ends here, at its end tag.
    Ended(usize),
}

/// Any text but a script's, from `at` on.
pub(super) fn read(input: &Input<'_>, mut at: usize, text: Text) -> Reach {
    let open = |until| Reach::Open { until, needed: until };
    let name = match text {
        Text::Until { name, .. } => name,
        Text::UntilMarkup => "",
        Text::Forever => return open(input.end()),
    };
    loop {
        let Some(found) = input.find(at, b'<') else { return open(input.end()) };
        if name.is_empty() {
            return Reach::Ended(found);
        }
        match tag(input, found, true, name) {
            Match::Yes => return Reach::Ended(found),
            Match::Cut => return open(found),
            Match::No => at = found + 1,
        }
    }
}

/// A script's text from `at` on.
pub(super) fn read_script(input: &Input<'_>, mut at: usize, escape: &mut Escape) -> Reach {
    const SCRIPT: &str = "script";
    let open = |until| Reach::Open { until, needed: until };
    loop {
        let (Escape::Comment { since } | Escape::ScriptInComment { since }) = *escape else {
            let Some(found) = input.find(at, b'<') else { return open(input.end()) };
            if !matches!(input.byte(found + 1), None | Some(b'/' | b'!')) {
                at = found + 1;
                continue;
            }
            let is_end = tag(input, found, true, SCRIPT);
            match if is_end == Match::No { begins(input, found, "<!--") } else { is_end } {
                Match::Yes if is_end == Match::Yes => return Reach::Ended(found),
                Match::Yes => {
                    *escape = Escape::Comment { since: found + 2 };
                    at = found + 4;
                }
                Match::Cut => return open(found),
                Match::No => at = found + 1,
            }
            continue;
        };
        let Some(found) = memchr2(b'<', b'>', input.from(at)).map(|distance| at + distance) else {
            // Two dashes at the end may belong to a `-->`.
            let until = input.end();
            return Reach::Open { until, needed: until.saturating_sub(2).max(since) };
        };
        at = found + 1;
        if input.byte(found) == Some(b'>') {
            if found >= since + 2 && input.range(found - 2..found) == b"--" {
                *escape = Escape::No;
            }
            continue;
        }
        let in_script = matches!(*escape, Escape::ScriptInComment { .. });
        match (tag(input, found, true, SCRIPT), tag(input, found, false, SCRIPT)) {
            (Match::Yes, _) if in_script => *escape = Escape::Comment { since },
            (Match::Yes, _) => return Reach::Ended(found),
            (Match::Cut, _) | (_, Match::Cut) => return open(found),
            (_, Match::Yes) => *escape = Escape::ScriptInComment { since },
            _ => {}
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    Yes,
    No,
    /// So far, and there are no more bytes.
    Cut,
}

/// Returns true if the tag whose `<` stands at `at` has this name.
#[inline]
fn tag(input: &Input<'_>, at: usize, closing: bool, name: &str) -> Match {
    let named = at + 1 + usize::from(closing);
    match input.byte(at + 1) {
        // One byte tells most tags from an end tag.
        Some(byte) if closing && byte != b'/' => Match::No,
        None if input.last => Match::No,
        None => Match::Cut,
        Some(_) => is_name(input, named, name),
    }
}

/// Returns true if this name, in any case, and the end of a name stand at `at`.
fn is_name(input: &Input<'_>, at: usize, name: &str) -> Match {
    let behind = match begins(input, at, name) {
        Match::Yes => at + name.len(),
        other => return other,
    };
    match input.byte(behind) {
        Some(byte) if ends_name(byte) => Match::Yes,
        None if !input.last => Match::Cut,
        _ => Match::No,
    }
}

/// Returns true if `text` stands at `at`, in any case.
fn begins(input: &Input<'_>, at: usize, text: &str) -> Match {
    let bytes = input.from(at);
    let there = bytes.get(..text.len().min(bytes.len())).unwrap_or_default();
    let same = text.as_bytes().get(..there.len()).is_some_and(|start| start.eq_ignore_ascii_case(there));
    match same {
        false => Match::No,
        true if there.len() == text.len() => Match::Yes,
        true if input.last => Match::No,
        true => Match::Cut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a script is, read in pieces from where its bytes are needed.
    fn script(text: &str, piece: usize) -> Option<usize> {
        let (mut at, mut needed, mut escape) = (0, 0, Escape::default());
        for end in (0..text.len()).step_by(piece).skip(1).chain([text.len()]) {
            let input = Input { bytes: &text.as_bytes()[needed..end], start: needed, last: end == text.len() };
            match read_script(&input, at, &mut escape) {
                Reach::Ended(ended) => return Some(ended),
                Reach::Open { until, needed: next } => (at, needed) = (until, next),
            }
        }
        None
    }

    #[test]
    fn a_script_ends_at_its_end_tag_but_not_at_that_of_a_script_in_a_comment_of_it() {
        for (text, rest) in [
            ("a</script>b", "</script>b"),
            ("a</scripty></SCRIPT ><", "</SCRIPT ><"),
            ("<script></script>", "</script>"),
            ("<!-- a </script> -->", "</script> -->"),
            ("<!-- <script> </script> --></script>", "</script>"),
            ("<!-- <script/ </script> </script>", "</script>"),
            ("<!-- <scripts> </script> -->", "</script> -->"),
            ("<!-- <script> --> </script>", "</script>"),
            ("<!--><script></script>", "</script>"),
            ("<!---><script></script>", "</script>"),
            ("<!-- --!> <script> </script></script>", "</script>"),
            ("<!-- <script> </script> <SCRIPT\n> </script\t></script>", "</script>"),
            ("<!- <script></script>", "</script>"),
            ("a</script", ""),
            ("<!-- <script></script>", ""),
        ] {
            for piece in 1..=text.len() {
                let ended = script(text, piece).map_or("", |at| &text[at..]);
                assert_eq!(ended, rest, "{text} in pieces of {piece}");
            }
        }
    }
}
