//! Metrics of both ends.

use http_semantics::labels::labelled;

labelled! {
    /// An event or an amount that is counted. The label is the metric's name without prefix; the part after `_reason_`
    /// becomes a label.
    Count {
        // ----- remote
        /// Pages for which a flight was opened.
        Flights = "flights_total";
        /// Browsers' requests served with an object that was there already.
        Ready = "answered_total_reason_ready";
        /// Browsers' requests served after they were held.
        Awaited = "answered_total_reason_awaited";
        /// Browsers' requests for objects in the remote's cache that the ground had validated.
        Valid = "valid_total";
        /// Held requests that crossed the link after all: the wait was too long.
        LetGoLate = "let_go_total_reason_late";
        /// Held requests that crossed the link after all: the object will not come, or does not fit the request.
        LetGoWithdrawn = "let_go_total_reason_withdrawn";
        /// Objects that were reported to be at the remote and were not there any more.
        Lost = "lost_total";
        /// Objects at the remote that were too old to be served when a browser requested them.
        Stale = "stale_total";
        /// Parcels that break the format.
        Malformed = "malformed_total";
        // ----- ground
        /// Pages that were read for a flight.
        Pages = "pages_total";
        /// Objects sent.
        Objects = "objects_total";
        /// Bytes of objects sent, before they are compressed.
        ObjectBytes = "object_bytes_total";
        /// Objects named instead of sent, because the remote has them.
        References = "references_total";
        /// Objects validated instead of sent: the remote's cache has them.
        Cached = "cached_total";
        /// Objects not sent: their origin did not respond in time, or responded that it cannot now.
        UnfitFailed = "unfit_total_reason_failed";
        /// Objects not sent: a status other than 200, or a policy for another kind of cache.
        UnfitStatus = "unfit_total_reason_status";
        /// Objects not sent: they are pages.
        UnfitType = "unfit_total_reason_type";
        /// Objects not sent: their origin meant them for one client.
        UnfitPrivate = "unfit_total_reason_private";
        /// Objects not sent: they depend on request fields.
        UnfitVary = "unfit_total_reason_vary";
        /// Objects not sent: in a content encoding that the browser does not accept.
        UnfitEncoding = "unfit_total_reason_encoding";
        /// Objects not sent: too large, or more than the link is to carry for one page.
        UnfitSize = "unfit_total_reason_size";
        /// Objects not fetched: the browsers of earlier visitors did not request them.
        Skipped = "skipped_total_reason_unused";
        /// Objects that a page does not name but its visitors' browsers request: sent from now on.
        LearntAdded = "learnt_total_reason_added";
        /// Objects of that kind that are not requested any more, and so no longer sent.
        LearntDropped = "learnt_total_reason_dropped";
        /// Bytes of sent objects that browsers requested.
        UsedBytes = "used_bytes_total";
        /// Bytes of sent objects that browsers did not request.
        UnusedBytes = "unused_bytes_total";
        /// Lists of hosts that pages name, which CoreDNS has taken.
        NamesTaken = "names_total_reason_taken";
        /// Lists of hosts that pages name, which CoreDNS has not taken in time.
        NamesFailed = "names_total_reason_failed";
    }
}

/// Counts since they were last taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts([u64; Count::ALL.len()]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; Count::ALL.len()])
    }
}

impl Counts {
    pub(crate) fn add(&mut self, count: Count, amount: u64) {
        if let Some(sum) = self.0.get_mut(count.index()) {
            *sum = sum.saturating_add(amount);
        }
    }

    /// Returns one count.
    pub fn get(&self, count: Count) -> u64 {
        self.0.get(count.index()).copied().unwrap_or(0)
    }

    /// Returns all counts that are not zero, and resets them.
    pub fn take(&mut self) -> impl Iterator<Item = (Count, u64)> + use<> {
        let taken = std::mem::take(self).0;
        Count::ALL.iter().copied().zip(taken).filter(|(_, amount)| *amount > 0)
    }
}
