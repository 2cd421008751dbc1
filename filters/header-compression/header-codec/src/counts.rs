//! Counters of the two ends, for operators.

use http_semantics::labelled;

labelled! {
    /// An event or an amount that an end counts. The label is the metric's name without prefix; the part after `_reason_`
    /// becomes a label.
    Count {
        /// Messages compressed here.
        Packed = "packed_total";
        /// Compressed requests that could refer to earlier exchanges.
        Referring = "referring_total";
        /// Messages decompressed here.
        Unpacked = "unpacked_total";
        /// Bytes of names and values before compression.
        PlainBytes = "plain_bytes_total";
        /// Bytes of the compressed fields. The ratio of both is the saving.
        PackedBytes = "packed_bytes_total";
        /// Messages sent plain: the peer does not support compression, or is not known to.
        PlainPeer = "plain_total_reason_peer";
        /// Messages sent plain: an upgrade or a tunnel.
        PlainUpgrade = "plain_total_reason_upgrade";
        /// Requests sent plain: the proxy might not keep the body for a retry, or does not retry them.
        PlainBody = "plain_total_reason_body";
        /// Messages sent plain: too large, or compression would not have made them smaller.
        PlainBlock = "plain_total_reason_block";
        /// Requests retried without references.
        RetriedHistory = "retried_total_reason_history";
        /// Requests retried plain.
        RetriedPlain = "retried_total_reason_peer";
        /// Requests refused: they refer to exchanges that this end does not hold.
        RefusedHistory = "refused_total_reason_history";
        /// Requests refused: another version of the format.
        RefusedFormat = "refused_total_reason_format";
        /// Requests refused: malformed, or beyond the limits.
        RefusedMessage = "refused_total_reason_message";
        /// Responses that could not be decompressed: a fault of the ground.
        Undecodable = "undecodable_total";
    }
}

/// Amounts since the last [`Counts::take`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts([u64; Count::ALL.len()]);

impl Counts {
    /// Adds `amount` to one counter.
    pub(crate) fn add(&mut self, count: Count, amount: usize) {
        if let Some(sum) = self.0.get_mut(count.index()) {
            *sum = sum.saturating_add(u64::try_from(amount).unwrap_or(u64::MAX));
        }
    }

    /// Returns the amount of one counter.
    pub fn get(&self, count: Count) -> u64 {
        self.0.get(count.index()).copied().unwrap_or(0)
    }

    /// Returns every counter that is not zero, and resets all of them to zero.
    pub fn take(&mut self) -> impl Iterator<Item = (Count, u64)> + use<> {
        let taken = std::mem::take(self).0;
        Count::ALL.iter().copied().zip(taken).filter(|(_, amount)| *amount > 0)
    }
}
