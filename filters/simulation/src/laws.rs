//! The laws that every run keeps.

/// A law that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// A response is not what the origin has at this URL for this visitor.
    OtherBytes(String),
    /// A response's fields do not describe its body.
    UntrueFields(String),
    /// One client received what is another's.
    ForeignSecret(String),
    /// An origin received credentials of another site or client.
    LentCredential(String),
    /// A field between the two ends reached a client.
    LeakedField(String),
    /// A request failed although nothing had happened to the link or to the ends since a round trip before it.
    FailedAlone(String),
    /// A request has no end, or a stream is left when all requests have ended.
    Hangs(String),
    /// An end holds more than its budget.
    Memory(String),
}

impl Broken {
    /// The law's name.
    pub fn law(&self) -> &'static str {
        match self {
            Self::OtherBytes(_) => "every response is the origin's bytes for that request, or an error",
            Self::UntrueFields(_) => "fields describe the body",
            Self::ForeignSecret(_) => "no private byte crosses clients",
            Self::LentCredential(_) => "no credential is lent",
            Self::LeakedField(_) => "what the ends say stays between them",
            Self::FailedAlone(_) => "both ends agree again within one round trip",
            Self::Hangs(_) => "no stream waits forever",
            Self::Memory(_) => "memory stays within its budget",
        }
    }

    /// The words for the event that broke it.
    pub fn seen(&self) -> &str {
        match self {
            Self::OtherBytes(seen)
            | Self::UntrueFields(seen)
            | Self::ForeignSecret(seen)
            | Self::LentCredential(seen)
            | Self::LeakedField(seen)
            | Self::FailedAlone(seen)
            | Self::Hangs(seen)
            | Self::Memory(seen) => seen,
        }
    }
}
