//! Counters of the two ends, for operators.

/// An event or an amount that an end counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// Messages compressed.
    Packed,
    /// Compressed requests that could refer to earlier exchanges.
    Referring,
    /// Messages decompressed.
    Unpacked,
    /// Bytes of headers before compression.
    PlainBytes,
    /// Bytes of the compressed fields.
    PackedBytes,
    /// Messages sent plain: the peer does not support compression, or is not known to.
    PlainPeer,
    /// Messages sent plain: an upgrade or a tunnel.
    PlainUpgrade,
    /// Requests sent plain: the proxy might not keep the body for a retry.
    PlainBody,
    /// Messages sent plain: too large, or compression would not have made them smaller.
    PlainBlock,
    /// Requests retried without references.
    RetriedHistory,
    /// Requests retried plain.
    RetriedPlain,
    /// Requests refused: they refer to exchanges that this end does not hold.
    RefusedHistory,
    /// Requests refused: another version of the format.
    RefusedFormat,
    /// Requests refused: malformed, or beyond the limits.
    RefusedMessage,
    /// Responses that could not be decompressed.
    Undecodable,
}

impl Count {
    /// Every counter.
    pub const ALL: [Self; 15] = [
        Self::Packed,
        Self::Referring,
        Self::Unpacked,
        Self::PlainBytes,
        Self::PackedBytes,
        Self::PlainPeer,
        Self::PlainUpgrade,
        Self::PlainBody,
        Self::PlainBlock,
        Self::RetriedHistory,
        Self::RetriedPlain,
        Self::RefusedHistory,
        Self::RefusedFormat,
        Self::RefusedMessage,
        Self::Undecodable,
    ];

    /// Returns the metric's name without its prefix. The text after `_reason_` becomes a label.
    pub fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed_total",
            Self::Referring => "referring_total",
            Self::Unpacked => "unpacked_total",
            Self::PlainBytes => "plain_bytes_total",
            Self::PackedBytes => "packed_bytes_total",
            Self::PlainPeer => "plain_total_reason_peer",
            Self::PlainUpgrade => "plain_total_reason_upgrade",
            Self::PlainBody => "plain_total_reason_body",
            Self::PlainBlock => "plain_total_reason_block",
            Self::RetriedHistory => "retried_total_reason_history",
            Self::RetriedPlain => "retried_total_reason_peer",
            Self::RefusedHistory => "refused_total_reason_history",
            Self::RefusedFormat => "refused_total_reason_format",
            Self::RefusedMessage => "refused_total_reason_message",
            Self::Undecodable => "undecodable_total",
        }
    }
}

/// Amounts since the last [`Counts::take`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts([u64; Count::ALL.len()]);

impl Counts {
    /// Adds `amount` to one counter.
    pub(crate) fn add(&mut self, count: Count, amount: usize) {
        if let Some(sum) = self.0.get_mut(count as usize) {
            *sum = sum.saturating_add(u64::try_from(amount).unwrap_or(u64::MAX));
        }
    }

    /// Returns the amount of one counter.
    pub fn get(&self, count: Count) -> u64 {
        self.0.get(count as usize).copied().unwrap_or(0)
    }

    /// Returns every counter that is not zero, and resets all of them to zero.
    pub fn take(&mut self) -> impl Iterator<Item = (Count, u64)> + use<> {
        let taken = std::mem::take(self).0;
        Count::ALL.into_iter().zip(taken).filter(|(_, amount)| *amount > 0)
    }
}
