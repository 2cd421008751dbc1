//! Decides which rules of a style sheet can apply to a page, by the classes and ids in its markup. A browser loads a
//! rule's image when an element matches, and most rules of a site are for other pages.

use std::collections::HashSet;

use crate::digest::key;
use crate::limits;

/// The classes and ids in the part of a page that has passed.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    names: HashSet<u64>,
    /// The end of the last bytes, which may be part of a tag.
    rest: Vec<u8>,
    /// True if there were too many names to remember.
    is_full: bool,
}

/// The names that each selector of a rule needs. The rule can apply if the page has all names of one selector.
pub(crate) type Wanted = Vec<Vec<u64>>;

impl Vocabulary {
    /// Reads more of the page's markup. It reads scripts and text as well: a wrong name costs bytes, and a missing name
    /// costs a round trip.
    pub(crate) fn read(&mut self, markup: &[u8]) {
        self.rest.extend_from_slice(markup);
        let text = std::mem::take(&mut self.rest);
        let end = text.iter().rposition(|byte| *byte == b'>').map_or(0, |at| at + 1);
        let (whole, rest) = text.split_at(end);
        self.scan(whole);
        if rest.len() <= limits::TAG_BYTES {
            self.rest = rest.to_vec();
        } else {
            self.scan(rest);
        }
    }

    fn scan(&mut self, text: &[u8]) {
        let mut rest = text;
        while let Some(at) = rest.iter().position(|byte| *byte == b'=') {
            let (before, after) = rest.split_at(at);
            rest = after.get(1..).unwrap_or_default();
            let before = before.trim_ascii_end();
            let ends = |name: &[u8]| {
                let from = before.len().checked_sub(name.len());
                from.and_then(|from| before.get(from..)).is_some_and(|end| end.eq_ignore_ascii_case(name))
            };
            let mark = if ends(b"class") {
                b'.'
            } else if ends(b"id") {
                b'#'
            } else {
                continue;
            };
            let value = rest.trim_ascii_start();
            let names = match value.split_first() {
                Some((quote @ (b'"' | b'\''), inner)) => inner.split(|byte| byte == quote).next(),
                _ => value.split(|byte| byte.is_ascii_whitespace() || *byte == b'>').next(),
            };
            for name in names.unwrap_or_default().split(u8::is_ascii_whitespace).filter(|name| !name.is_empty()) {
                self.is_full |= self.names.len() >= limits::NAMES;
                if !self.is_full {
                    self.names.insert(name_key(mark, name));
                }
            }
        }
    }

    /// Returns true if a rule can apply to the page.
    pub(crate) fn has(&self, wanted: &Wanted) -> bool {
        self.is_full || wanted.iter().any(|names| names.iter().all(|name| self.names.contains(name)))
    }
}

fn name_key(mark: u8, name: &[u8]) -> u64 {
    key(&[&[mark], name].concat())
}

/// Returns the names that the rule around the position `at` of a style sheet needs; `None` if they cannot be
/// determined.
pub(crate) fn wanted(sheet: &[u8], at: usize) -> Option<Wanted> {
    let before = sheet.get(..at)?;
    let open = before.iter().rposition(|byte| matches!(byte, b'{' | b'}'))?;
    if before.get(open) != Some(&b'{') {
        return None;
    }
    let head = before.get(..open)?;
    let begin = head.iter().rposition(|byte| matches!(byte, b'{' | b'}' | b';' | b'/')).map_or(0, |at| at + 1);
    let selectors = head.get(begin..)?;
    if selectors.contains(&b'@') || selectors.contains(&b'\\') {
        return None;
    }
    let wanted: Wanted = selectors.split(|byte| *byte == b',').filter_map(names).collect();
    // An empty list means that the rule is only for another state of the page: hovered, active, focused.
    Some(wanted)
}

/// Returns the classes and ids of one selector; `None` if it is for a state in which no page begins.
fn names(selector: &[u8]) -> Option<Vec<u64>> {
    const STATES: [&[u8]; 5] = [b"hover", b"active", b"focus", b"focus-within", b"focus-visible"];
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') || *byte >= 0x80;
    let mut found = Vec::new();
    // A name in `:not(.x)` and the like decides nothing, and `[href="a.b"]` contains none.
    let plain = selector.split(|byte| matches!(byte, b'(' | b'[')).next().unwrap_or_default();
    let mut rest = plain;
    while let Some(at) = rest.iter().position(|byte| matches!(byte, b'.' | b'#' | b':')) {
        let (mark, after) = rest.split_at(at).1.split_first()?;
        let end = after.iter().position(|byte| !is_name(byte)).unwrap_or(after.len());
        let (name, next) = after.split_at(end);
        rest = next;
        if *mark == b':' {
            if STATES.iter().any(|state| name.eq_ignore_ascii_case(state)) {
                return None;
            }
        } else {
            found.push(name_key(*mark, name));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applies(markup: &str, rule: &str) -> Option<bool> {
        let mut page = Vocabulary::default();
        for byte in markup.as_bytes() {
            page.read(&[*byte]);
        }
        let sheet = format!("a{{b:c}}/* x */{rule}");
        Some(page.has(&wanted(sheet.as_bytes(), sheet.find("url(").unwrap())?))
    }

    #[test]
    fn a_rule_can_apply_if_the_page_has_the_names_of_one_of_its_selectors() {
        let page = "<body class='home wide'><div id=nav><a CLASS=\"icon\" href=x?a=b>x</a><p class = last>";
        for (rule, expected) in [
            (".icon{background:url(", Some(true)),
            ("p.icon.wide,.x{color:red;background:url(", Some(true)),
            (".x, #nav .icon{background:url(", Some(true)),
            (".home .sprite{background:url(", Some(false)),
            ("#footer{background:url(", Some(false)),
            ("body{background:url(", Some(true)),
            (".icon:hover{background:url(", Some(false)),
            (".icon:before{background:url(", Some(true)),
            ("a:not(.x){background:url(", Some(true)),
            (".last{background:url(", Some(true)),
            ("@media screen{.x{background:url(", Some(false)),
            ("@media screen{.icon{background:url(", Some(true)),
            ("@import url(", None),
            (".a\\:b{background:url(", None),
        ] {
            assert_eq!(applies(page, rule), expected, "{rule}");
        }
    }

    #[test]
    fn names_are_bounded_and_then_everything_may_apply() {
        let mut page = Vocabulary::default();
        for number in 0..=limits::NAMES {
            page.read(format!("<p class=c{number}>").as_bytes());
        }
        assert!(page.names.len() <= limits::NAMES && page.has(&vec![vec![1]]));
        let mut page = Vocabulary::default();
        page.read(&vec![b'x'; 10 * limits::TAG_BYTES]);
        assert!(page.rest.len() <= limits::TAG_BYTES);
    }
}
