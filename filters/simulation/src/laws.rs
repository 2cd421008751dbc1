//! The laws that every run keeps.

use swarm::Breach;

/// A law that was broken, with what was seen.
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
    /// A word of a client or an origin reached an end as the word of the other end.
    Forged(String),
    /// A list of hosts reached somebody but the resolver of the ground, or holds more than hosts of pages.
    LeakedHosts(String),
    /// A request failed although nothing had happened to the link or to the ends since a round trip before it.
    FailedAlone(String),
    /// Such a request was repeated more than once.
    Disagree(String),
    /// A request has no end, or a stream is left when all requests have ended.
    Hangs(String),
    /// An end holds more than its budget.
    Memory(String),
    /// An end holds more for one client than that client's budget.
    ClientMemory(String),
}

impl Breach for Broken {
    fn law(&self) -> &str {
        self.parts().0
    }

    fn seen(&self) -> &str {
        self.parts().1
    }
}

impl Broken {
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Self::OtherBytes(seen) => ("every response is the origin's bytes for that request, or an error", seen),
            Self::UntrueFields(seen) => ("fields describe the body", seen),
            Self::ForeignSecret(seen) => ("no private byte crosses clients", seen),
            Self::LentCredential(seen) => ("no credential is lent", seen),
            Self::LeakedField(seen) => ("the words of the ends stay between them", seen),
            Self::Forged(seen) => ("nobody but the ground speaks for the ground", seen),
            Self::LeakedHosts(seen) => ("the hosts of a page reach the ground's resolver alone", seen),
            Self::FailedAlone(seen) => ("a request on an undisturbed link succeeds", seen),
            Self::Disagree(seen) => ("both ends agree again within one round trip", seen),
            Self::Hangs(seen) => ("no stream waits forever", seen),
            Self::Memory(seen) => ("memory stays within its budget in total", seen),
            Self::ClientMemory(seen) => ("memory stays within its budget for each client", seen),
        }
    }
}
