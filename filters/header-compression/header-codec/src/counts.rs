//! What the ends count for operators.

/// Something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// A message was packed.
    Packed,
    /// One of those was a request that could refer to earlier ones.
    Referring,
    /// A message was unpacked.
    Unpacked,
    /// Bytes of headers before packing.
    PlainBytes,
    /// Bytes of the packed fields they became.
    PackedBytes,
    /// A message went plain: the peer does not speak this, or is not known to.
    PlainPeer,
    /// A message went plain: an upgrade or a tunnel.
    PlainUpgrade,
    /// A request went plain: the proxy might not keep its body for a retry.
    PlainBody,
    /// A message went plain: too large, or packing would not have made it smaller.
    PlainBlock,
    /// A request is sent again without references.
    RetriedHistory,
    /// A request is sent again plain.
    RetriedPlain,
    /// A request was refused: it refers to what is not held here.
    RefusedHistory,
    /// A request was refused: another version.
    RefusedFormat,
    /// A request was refused: malformed, or beyond the limits.
    RefusedMessage,
    /// A response could not be unpacked.
    Undecodable,
}

impl Count {
    /// All of them.
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

    /// The metric's name, without prefix. What follows `_reason_` becomes a label.
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

/// Counts since they were last taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts([u64; Count::ALL.len()]);

impl Counts {
    /// Adds to one.
    pub(crate) fn add(&mut self, count: Count, amount: usize) {
        if let Some(sum) = self.0.get_mut(count as usize) {
            *sum = sum.saturating_add(u64::try_from(amount).unwrap_or(u64::MAX));
        }
    }

    /// One of them.
    pub fn get(&self, count: Count) -> u64 {
        self.0.get(count as usize).copied().unwrap_or(0)
    }

    /// All that are not zero; they are zero afterwards.
    pub fn take(&mut self) -> impl Iterator<Item = (Count, u64)> + use<> {
        let taken = std::mem::take(self).0;
        Count::ALL.into_iter().zip(taken).filter(|(_, amount)| *amount > 0)
    }
}
