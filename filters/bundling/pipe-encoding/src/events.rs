//! Counted events, and the treatments of a body.

use http_semantics::labelled;

use crate::decoder::Broken;

labelled! {
    /// An event or an amount that is counted. The label is the metric's name without prefix; the part after `_reason_`
    /// becomes a label.
    Event {
        /// Responses that the remote decompressed for a client that does not accept br.
        Responses = "decompressed_total";
        /// Bytes of these responses as they crossed the link.
        Bytes = "decompressed_bytes_total";
        /// Responses that ended early: the bytes are not in their content encoding.
        Damaged = "broken_total_reason_damaged";
        /// Responses that ended early: the origin or the ground broke off.
        CutOff = "broken_total_reason_cut_off";
        /// Responses that ended early: one piece decompresses to more than 40 MiB.
        Expansion = "broken_total_reason_expansion";
        /// Responses that ended early: no memory for another window.
        Window = "broken_total_reason_window";
        /// Responses that ended early: the page is not the one that the ground encoded as a delta.
        Mismatch = "broken_total_reason_mismatch";
        /// Pages that crossed the link as a difference from another page.
        Deltas = "deltas_total";
        /// Bytes of these pages on the link.
        DeltaBytes = "delta_bytes_total";
        /// Bytes of these pages themselves.
        DeltaPageBytes = "delta_page_bytes_total";
        /// Pages kept as a base.
        Bases = "bases_total";
        /// Pages requested again without a base, because the remote had lost it.
        BaseLost = "base_lost_total";
        /// Responses to page requests that crossed without a base: the status is not 200, or there is no body.
        LeftStatus = "delta_left_total_reason_status";
        /// Responses to page requests that crossed without a base: no HTML.
        LeftType = "delta_left_total_reason_type";
        /// Pages that crossed without a base: the origin forbids changes.
        LeftNoTransform = "delta_left_total_reason_no_transform";
        /// Pages that crossed without a base: they have a content encoding already.
        LeftEncoded = "delta_left_total_reason_encoded";
        /// Pages that crossed without a base: not every client may have them.
        LeftPrivate = "delta_left_total_reason_private";
        /// Pages that crossed without a base: both ends have no page of the site in common.
        LeftNoBase = "delta_left_total_reason_no_base";
        /// Pages that crossed without a base: the worker encodes too many pages already.
        LeftMemory = "delta_left_total_reason_memory";
    }
}

impl From<Broken> for Event {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Damaged => Self::Damaged,
            Broken::CutOff => Self::CutOff,
            Broken::Expansion => Self::Expansion,
            Broken::Window => Self::Window,
            Broken::Mismatch => Self::Mismatch,
        }
    }
}

impl From<page_scanner::Broken> for Event {
    fn from(broken: page_scanner::Broken) -> Self {
        match broken {
            page_scanner::Broken::Damaged => Self::Damaged,
            page_scanner::Broken::CutOff => Self::CutOff,
            page_scanner::Broken::Bomb => Self::Expansion,
        }
    }
}

/// The treatment of a piece of a body.
#[derive(Debug, PartialEq, Eq)]
pub enum Body {
    /// The bytes pass as they came.
    Pass,
    /// These bytes replace them.
    Replace(Vec<u8>),
    /// The response ends here, and the client must see that it is incomplete.
    BreakOff,
}

/// Returns a number of bytes as it is counted.
pub(crate) fn byte_count(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
