//! Where the URLs of a `srcset` (or `imagesrcset`) stand.
//!
//! Splitting at commas is wrong. A URL may contain commas, and often does, because image servers put their options there.
//! It only cannot start or end with one. This is the algorithm of
//! <https://html.spec.whatwg.org/multipage/images.html#parsing-a-srcset-attribute>, as far as finding URLs needs it.

use std::ops::Range;

use crate::find::{Block, find_where};

/// The byte ranges of the candidates' URLs, in order. Descriptors are stepped over, not judged. A browser does not
/// fetch a candidate that it drops, and moving its URL changes nothing.
#[derive(Debug, Clone)]
pub(crate) struct Candidates<'s> {
    srcset: &'s str,
    at: usize,
}

impl<'s> Candidates<'s> {
    pub(crate) fn of(srcset: &'s str) -> Self {
        Self { srcset, at: 0 }
    }

    fn skip_while(&mut self, skipped: impl Fn(u8) -> bool) {
        let rest = self.srcset.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().position(|&byte| !skipped(byte)).unwrap_or(rest.len());
    }

    /// Descriptors end at a comma that is not inside parentheses.
    fn skip_descriptors(&mut self) {
        let mut in_parentheses = false;
        let rest = self.srcset.as_bytes().get(self.at..).unwrap_or_default();
        let special = |block: Block| block.is_in(b'('..=b')') | block.is(b',');
        let start = find_where(rest, special).unwrap_or(rest.len());
        let end = rest.iter().skip(start).position(|&byte| {
            match byte {
                b'(' => in_parentheses = true,
                b')' => in_parentheses = false,
                _ => {}
            }
            byte == b',' && !in_parentheses
        });
        self.at += end.map_or(rest.len(), |end| start + end);
    }
}

impl Iterator for Candidates<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        self.skip_while(|byte| is_space(byte) || byte == b',');
        let start = self.at;
        let rest = self.srcset.as_bytes().get(self.at..)?;
        self.at += find_where(rest, Block::is_space).unwrap_or(rest.len());
        let written = self.srcset.get(start..self.at)?;
        if written.is_empty() {
            return None;
        }
        let url = written.trim_end_matches(',');
        if url.len() == written.len() {
            self.skip_descriptors();
        }
        Some(start..start + url.len())
    }
}

/// Returns true if a URL can stand in a `srcset` and be read back as itself.
pub(crate) fn can_hold(url: &str) -> bool {
    !url.is_empty() && !url.starts_with(',') && !url.ends_with(',') && !url.bytes().any(is_space)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0C' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(srcset: &str) -> Vec<&str> {
        Candidates::of(srcset).map(|range| &srcset[range]).collect()
    }

    #[test]
    fn urls_may_contain_commas_and_may_not_end_with_one() {
        assert_eq!(urls("a.png 1x, b.png 2x"), ["a.png", "b.png"]);
        assert_eq!(urls("a.png, b.png"), ["a.png", "b.png"]);
        assert_eq!(urls("a.png,b.png 2x"), ["a.png,b.png"]);
        assert_eq!(urls("/w_1,h_2/a.png 1x,/w_2,h_4/a.png 2x"), ["/w_1,h_2/a.png", "/w_2,h_4/a.png"]);
        assert_eq!(urls("a.png,,, b.png,"), ["a.png", "b.png"]);
        assert_eq!(urls(" ,\t, a.png\n1x\r,\x0Cb.png "), ["a.png", "b.png"]);
        assert_eq!(urls("data:,a 1x, b.png 2x"), ["data:,a", "b.png"]);
    }

    #[test]
    fn commas_in_parentheses_belong_to_the_descriptor() {
        assert_eq!(urls("a.png future(1,2) 1x, b.png"), ["a.png", "b.png"]);
        assert_eq!(urls("a.png (, b.png"), ["a.png"]);
    }

    #[test]
    fn nothing_but_separators_holds_no_url() {
        assert_eq!(urls(""), [] as [&str; 0]);
        assert_eq!(urls(" , ,, \n"), [] as [&str; 0]);
    }

    #[test]
    fn only_what_is_read_back_as_itself_can_be_put_in() {
        assert!(can_hold("https://a.example/x,y"));
        for bad in ["", ",a", "a,", "a b", "a\tb"] {
            assert!(!can_hold(bad), "{bad:?}");
        }
    }
}
