//! The last pages, from an access log that Envoy writes for this program alone. A page has a number and no name: the log
//! holds no host, no path and no address of a client.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use longhaul_observe::report::{PageLoad, PageReport};

/// The pages that are remembered.
const REMEMBERED: usize = 50;

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

    #[test]
    fn the_last_fifty_pages_are_kept_by_number() {
        let pages = RecentPages::default();
        for _ in 0..60 {
            pages.add(PageLoad::parse(" 200 - 3 - - -").unwrap());
        }
        let numbers: Vec<u64> = pages.list().iter().map(|page| page.number).collect();
        assert_eq!((numbers.len(), numbers[0], numbers[49]), (50, 60, 11));
    }
}
