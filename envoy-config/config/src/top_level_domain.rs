//! Names of one label: whole top-level domains, which an operator seldom means.

use super::names::HostName;

/// Top-level domains of private networks, of tests and of documents (RFC 2606, 6761, 6762, 8375, 9476), which may stand alone.
const PRIVATE: &[&str] = &[
    "alt",
    "arpa",
    "corp",
    "example",
    "home",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "onion",
    "private",
    "test",
];

/// Returns the name, if it is a top-level domain of the Internet.
pub(crate) fn top_level_domain(name: &HostName) -> Option<&str> {
    let name = name.as_str();
    (!name.contains('.') && !PRIVATE.contains(&name)).then_some(name)
}

/// Returns what to write in place of a top-level domain.
pub(crate) fn instead_of_domain(name: &str) -> String {
    format!("write the sites that you mean, such as `example.{name}`")
}
