//! The lines that Envoy writes for `longhaul run` to its stderr, among its own.

/// The kind of such a line, which is its first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A failed handshake: a role, an address and a reason follow.
    Handshake,
    /// A page.
    Page,
    /// A report of a remote: the names of its certificate and a path follow.
    Report,
    /// The bytes of a client.
    Bill,
}

impl Mark {
    const ALL: [Self; 4] = [Self::Handshake, Self::Page, Self::Report, Self::Bill];

    /// Returns the word.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Handshake => "@handshake",
            Self::Page => "@page",
            Self::Report => "@report",
            Self::Bill => "@bill",
        }
    }

    /// Returns the mark of a line, and what follows it. None: the line is Envoy's own.
    #[must_use]
    pub fn of(line: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|mark| Some((mark, line.strip_prefix(mark.word())?)))
    }
}
