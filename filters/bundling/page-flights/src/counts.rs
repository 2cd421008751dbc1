//! What the ends count for operators.

use http_semantics::labels::labelled;

labelled! {
    /// Something that happened. Its label is the metric's name without prefix; what follows `_reason_` becomes a label.
    Count {
        // ----- near end
        /// Pages for which a flight was opened.
        Flights = "flights_total";
        /// Requests of browsers answered with an object that was there already.
        Ready = "answered_total_reason_ready";
        /// Requests of browsers answered after they were held.
        Awaited = "answered_total_reason_awaited";
        /// Requests let go across the link after they were held: it took too long.
        LetGoLate = "let_go_total_reason_late";
        /// Requests let go after they were held: the object will not come, or is not for this request.
        LetGoWithdrawn = "let_go_total_reason_withdrawn";
        /// Objects that were said to be here and were not any more.
        Lost = "lost_total";
        /// Objects that were here when a browser asked for them, and older than they may be given to anybody.
        Stale = "stale_total";
        /// Parcels that made no sense.
        Malformed = "malformed_total";
        // ----- far end
        /// Pages that were read for a flight.
        Pages = "pages_total";
        /// Objects sent.
        Objects = "objects_total";
        /// Bytes of them, before they are packed.
        ObjectBytes = "object_bytes_total";
        /// Objects named instead of sent, as the near end has them.
        References = "references_total";
        /// Objects not sent: their origin did not respond in time, or said that it could not now.
        UnfitFailed = "unfit_total_reason_failed";
        /// Objects not sent: their origin responded with another status than 200.
        UnfitStatus = "unfit_total_reason_status";
        /// Objects not sent: they are pages.
        UnfitType = "unfit_total_reason_type";
        /// Objects not sent: meant for one client.
        UnfitPrivate = "unfit_total_reason_private";
        /// Objects not sent: they differ by request.
        UnfitVary = "unfit_total_reason_vary";
        /// Objects not sent: packed in a way the browser does not take.
        UnfitCoding = "unfit_total_reason_coding";
        /// Objects not sent: too large, or beyond what the link is to carry for one page.
        UnfitSize = "unfit_total_reason_size";
        /// Objects not even fetched, as earlier visitors' browsers did not ask for them.
        Skipped = "skipped_total_reason_unused";
        /// Objects that a page does not name and its visitors' browsers ask for every time: sent from now on.
        LearntAdded = "learnt_total_reason_added";
        /// Objects of that kind that are not asked for any more.
        LearntDropped = "learnt_total_reason_dropped";
        /// Bytes of objects that browsers then asked for.
        UsedBytes = "used_bytes_total";
        /// Bytes of objects that they did not.
        UnusedBytes = "unused_bytes_total";
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

    /// One of them.
    pub fn get(&self, count: Count) -> u64 {
        self.0.get(count.index()).copied().unwrap_or(0)
    }

    /// All that are not zero; they are zero afterwards.
    pub fn take(&mut self) -> impl Iterator<Item = (Count, u64)> + use<> {
        let taken = std::mem::take(self).0;
        Count::ALL.iter().copied().zip(taken).filter(|(_, amount)| *amount > 0)
    }
}
