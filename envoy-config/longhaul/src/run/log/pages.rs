//! The last pages, from an access log that Envoy writes for this program alone. A page has a number and no name: the log
//! holds no host, no path and no address of a client.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use longhaul_observe::access_log::counts;
use longhaul_observe::report::{Outcome, PageLoad, PageReport};
use longhaul_render::PAGE_MARK;

/// The pages that are remembered.
const REMEMBERED: usize = 50;
/// Envoy's word for a value that does not exist.
const NONE: &str = "-";

/// Parses `MARK STATUS FIRST_BYTE DURATION MOVED BAIL_OUT LEFT`.
pub(super) fn parse(line: &str) -> Option<PageLoad> {
    let mut words = line.strip_prefix(PAGE_MARK)?.trim_start().splitn(6, ' ');
    let mut word = || words.next();
    let known = |text: &str| (text != NONE).then(|| text.to_owned());
    let status: u16 = word()?.parse().ok()?;
    let first_byte_ms = word()?.parse().ok();
    let duration_ms = word()?.parse().ok()?;
    let moved: Option<u64> = word()?.parse().ok();
    let bail_out = known(word()?);
    let left = counts(word()?);
    let outcome = match (status, moved, &bail_out) {
        (0 | 400.., _, _) => Outcome::Failed,
        (_, None, _) => Outcome::PassedOn,
        (_, Some(_), Some(_)) => Outcome::RewrittenInPart,
        (_, Some(_), None) => Outcome::Rewritten,
    };
    Some(PageLoad { outcome, status, first_byte_ms, duration_ms, moved, left, bail_out })
}

/// The last pages, shared by the threads that read children and those that show them.
#[derive(Debug, Clone, Default)]
pub(in super::super) struct RecentPages(Arc<Mutex<VecDeque<PageReport>>>);

impl RecentPages {
    pub(super) fn add(&self, load: PageLoad) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = pages.front().map_or(0, |last| last.number) + 1;
        pages.push_front(PageReport { number, load });
        pages.truncate(REMEMBERED);
    }

    /// Returns the pages, the last one first.
    pub(in super::super) fn list(&self) -> Vec<PageReport> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rest: &str) -> PageLoad {
        parse(&format!("{PAGE_MARK} {rest}")).unwrap()
    }

    #[test]
    fn a_line_is_a_page_with_its_outcome() {
        let whole = page("200 12 340 7 - csp=2 document=31");
        assert_eq!((whole.outcome, whole.first_byte_ms, whole.duration_ms), (Outcome::Rewritten, Some(12), 340));
        assert_eq!((whole.moved, whole.left.len()), (Some(7), 2));
        let partly = page("200 12 340 7 too_long -");
        assert_eq!((partly.outcome, partly.bail_out.as_deref()), (Outcome::RewrittenInPart, Some("too_long")));
        assert_eq!(partly.left, []);
        assert_eq!(page("200 - 3 - - -").outcome, Outcome::PassedOn);
        assert_eq!([page("503 - 3 - - -").outcome, page("0 - 3 - - -").outcome], [Outcome::Failed; 2]);
        assert_eq!(parse(&format!("{PAGE_MARK} nonsense")), None);
    }

    #[test]
    fn the_last_fifty_pages_are_kept_by_number() {
        let pages = RecentPages::default();
        for _ in 0..60 {
            pages.add(page("200 - 3 - - -"));
        }
        let numbers: Vec<u64> = pages.list().iter().map(|page| page.number).collect();
        assert_eq!((numbers.len(), numbers[0], numbers[49]), (50, 60, 11));
    }
}
