//! How long a stored response may be reused.

/// The terms on which a stored response may be reused. Times are in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Life {
    /// When the response arrived, since 1970.
    pub received_s: u64,
    /// The age of the response on arrival (RFC 9111 section 4.2.3).
    pub initial_age_s: u64,
    /// The freshness lifetime (RFC 9111 section 4.2.1).
    pub lifetime_s: u64,
    /// `stale-while-revalidate` (RFC 5861 section 3).
    pub stale_while_revalidate_s: u64,
    /// `stale-if-error` (RFC 5861 section 4). `u64::MAX`: no limit.
    pub stale_if_error_s: u64,
    /// `no-cache`: the origin validates each use.
    pub always_validate: bool,
    /// `must-revalidate` or its like: never stale.
    pub never_stale: bool,
    /// The origin shares the response explicitly, also with clients that send cookies.
    pub public: bool,
}
