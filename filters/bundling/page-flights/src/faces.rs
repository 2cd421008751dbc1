//! Chooses the one font of an `@font-face` rule that a browser loads.
//!
//! A rule names a font in several formats. A browser loads the first source that it can read, from the last `src`
//! (<https://www.w3.org/TR/css-fonts-4/#font-face-src-parsing>). It loads the font only if the page has characters of
//! its `unicode-range`.

/// Returns which of `urls` a browser loads: positions of URLs in the rule's `text`. `None` means that it loads another
/// source, or none. `text` ends before the rule's closing brace.
pub(crate) fn taken(text: &[u8], urls: &[usize]) -> Option<usize> {
    let declarations = split(text, b';', 0);
    let is_for_latin = declarations
        .iter()
        .all(|(_, declaration)| value_of(declaration, b"unicode-range").is_none_or(has_latin_letters));
    if !is_for_latin {
        return None;
    }
    for (at, declaration) in declarations.iter().rev() {
        let mut sources = split(declaration, b',', *at).into_iter().filter(|(_, source)| is_readable(source));
        if let Some((begin, source)) = sources.next() {
            let range = begin..begin + source.len();
            let place = urls.iter().position(|url| range.contains(url));
            if place.is_some() || value_of(declaration, b"src").is_some() {
                return place;
            }
        }
    }
    None
}

/// Splits `text` at each `mark` outside quotes and parentheses. Positions count from `at`, where `text` begins.
fn split(text: &[u8], mark: u8, at: usize) -> Vec<(usize, &[u8])> {
    let (mut parts, mut begin, mut depth, mut quote) = (Vec::new(), 0, 0_usize, None);
    for (position, &byte) in text.iter().enumerate() {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'(') => depth += 1,
            (None, b')') => depth = depth.saturating_sub(1),
            (None, _) if byte == mark && depth == 0 => {
                parts.push((at + begin, text.get(begin..position).unwrap_or_default()));
                begin = position + 1;
            }
            _ => {}
        }
    }
    parts.push((at + begin, text.get(begin..).unwrap_or_default()));
    parts
}

/// Returns the value of a declaration if it is of this property.
fn value_of<'d>(declaration: &'d [u8], property: &[u8]) -> Option<&'d [u8]> {
    let colon = declaration.iter().position(|byte| *byte == b':')?;
    let (name, value) = declaration.split_at(colon);
    // Text before the rule may stand before the first declaration.
    let name = name.rsplit(|byte| matches!(byte, b'{' | b'/')).next().unwrap_or_default();
    name.trim_ascii().eq_ignore_ascii_case(property).then(|| value.get(1..).unwrap_or_default())
}

/// Returns true if a browser can read the source: a URL without a format that no browser reads. Fonts of the machine
/// (`local()`) are rarely installed.
fn is_readable(source: &[u8]) -> bool {
    let lower = source.to_ascii_lowercase();
    let find = |what: &[u8]| lower.windows(what.len()).position(|window| window == what);
    let Some(url_at) = find(b"url(") else { return false };
    if let Some(at) = find(b"format(") {
        let hint = lower.get(at + 7..).unwrap_or_default();
        let hint: Vec<u8> = hint.iter().copied().filter(|byte| !matches!(byte, b'"' | b'\'' | b' ')).collect();
        return !(hint.starts_with(b"embedded-opentype")
            || hint.starts_with(b"svg")
            || hint.starts_with(b"collection"));
    }
    let url = lower.get(url_at..).unwrap_or_default();
    let path = url.split(|byte| matches!(byte, b'?' | b'#' | b')')).next().unwrap_or_default();
    let path = path.trim_ascii_end().strip_suffix(b"\"").or_else(|| path.strip_suffix(b"'")).unwrap_or(path);
    !(path.ends_with(b".eot") || path.ends_with(b".svg"))
}

/// Returns true if a `unicode-range` contains the letter `a`.
fn has_latin_letters(value: &[u8]) -> bool {
    const LETTER: u32 = 0x61;
    let value = String::from_utf8_lossy(value).to_ascii_lowercase();
    value.split(',').any(|range| {
        let Some(range) = range.trim().strip_prefix("u+") else { return true };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str, digit: &str| u32::from_str_radix(&text.trim().replace('?', digit), 16);
        match (number(first, "0"), number(last, "f")) {
            (Ok(first), Ok(last)) => (first..=last).contains(&LETTER),
            _ => true,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the URL in `rule` that a browser loads. Each URL stands behind `url(` or its quote.
    fn takes(rule: &str) -> Option<&str> {
        let urls: Vec<usize> = rule
            .match_indices("url(")
            .map(|(at, _)| at + 4 + usize::from(rule[at + 4..].starts_with(['"', '\''])))
            .filter(|at| !rule[*at..].starts_with("data:"))
            .collect();
        let at = urls[taken(rule.as_bytes(), &urls)?];
        rule[at..].split(['"', '\'', ')']).next()
    }

    #[test]
    fn of_several_formats_a_browser_takes_the_first_of_the_last_list_that_it_can_read() {
        for (rule, expected) in [
            ("font-family:F;src:url(f.woff2)format('woff2'),url(f.woff)format('woff')", Some("f.woff2")),
            ("src:url('f.woff') format('woff'), url('f.ttf') format('truetype')", Some("f.woff")),
            (
                "src:url(f.eot);src:url(f.eot?#iefix)format(\"embedded-opentype\"),url(f.svg#f)format(\"svg\"),url(f.woff)",
                Some("f.woff"),
            ),
            ("src:url(f.woff);src:url(f.eot?#iefix)", Some("f.woff")),
            ("src:local('F'),url(f.ttf)", Some("f.ttf")),
            ("src:url(f.eot);font-family:F", None),
            ("src:url(data:font/woff2;base64,AA,==)format('woff2'),url(f.woff)", None),
            ("src:url(f.woff2);unicode-range:U+0000-00FF,U+0131", Some("f.woff2")),
            ("src:url(f.woff2);unicode-range:u+0400-045f, U+1F??", None),
            ("src:url(f.woff2);unicode-range:U+0-7F", Some("f.woff2")),
            ("src:url(f.woff2);unicode-range:u+??", Some("f.woff2")),
            ("src:url(a.woff2) format(woff2) , url(b.woff)", Some("a.woff2")),
        ] {
            assert_eq!(takes(rule), expected, "{rule}");
        }
    }
}
