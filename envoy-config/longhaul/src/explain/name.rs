//! The outcome of DNS steering for a name, as the running box says it.

use std::fmt;
use std::net::IpAddr;

use longhaul_config::{HostName, Settings};
use serde::Serialize;

use crate::dns_query::{explained, remembered};

/// The outcome for a name.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct NameFate {
    /// The name.
    pub name: String,
    /// `steered`, or the reason in the plugin's words, as in `coredns_longhaul_skips_total`. `unlisted` if the plugin
    /// passes the name on unread.
    pub outcome: String,
    /// The outcome for people.
    pub explanation: String,
    /// The IPv4 addresses that a client gets, the first one first.
    pub addresses: Vec<IpAddr>,
    /// The source of the addresses at a remote: remembered, sent by the ground before they were asked, or asked now.
    pub source: Option<String>,
}

/// Queries the box's own DNS for a name.
///
/// # Errors
/// `listen.dns` is off, the name is none, or the DNS does not respond.
pub(crate) fn explain_name(settings: &Settings, name: &str) -> Result<NameFate, String> {
    let Some(sockets) = &settings.listen.dns else {
        return Err("`listen.dns` is off, so this box steers no name".to_owned());
    };
    let name = HostName::parse(name).map_err(|error| format!("`{name}` is no name: found {error}"))?;
    let own = sockets.from_this_machine();
    let found = explained(own, name.as_str())
        .map_err(|failure| format!("the DNS of this box at {own} {failure}; `longhaul status` says if it runs"))?;
    let (outcome, explanation) = outcome(found.outcome.as_deref());
    Ok(NameFate { name: name.to_string(), outcome, explanation, addresses: found.addresses, source: found.source })
}

/// Returns the source of the addresses that a running remote has for the host of a page. Nothing crosses the link.
pub(crate) fn source_of(settings: &Settings, host: &str) -> Option<String> {
    let sockets = settings.listen.dns.as_ref().filter(|_| settings.role.stands_beside_clients())?;
    remembered(sockets.from_this_machine(), HostName::parse(host).ok()?.as_str())
}

/// Splits the plugin's text: a word, a colon and the meaning.
fn outcome(text: Option<&str>) -> (String, String) {
    let (word, meaning) = match text {
        None => ("unlisted", "no list of `dns.domains` has the name, or it is a name of the proxy"),
        Some(text) => text.split_once(": ").unwrap_or((text, "")),
    };
    (word.to_owned(), meaning.to_owned())
}

impl fmt::Display for NameFate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outcome.as_str() {
            "steered" => writeln!(f, "{}: steered: {}", self.name, self.explanation)?,
            reason => writeln!(f, "{}: not steered ({reason}): {}", self.name, self.explanation)?,
        }
        match self.addresses.as_slice() {
            [] => writeln!(f, "  no IPv4 address"),
            addresses => {
                let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                writeln!(f, "  {}", addresses.join(", "))
            }
        }?;
        self.source.iter().try_for_each(|source| writeln!(f, "  {source}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_those_of_the_plugin() {
        let (word, meaning) = outcome(Some("except: the name is listed, and excepted"));
        let fate = NameFate {
            name: "bank.example".to_owned(),
            outcome: word,
            explanation: meaning,
            addresses: vec!["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()],
            source: None,
        };
        let shown = "bank.example: not steered (except): the name is listed, and excepted\n  192.0.2.1, 192.0.2.2\n";
        assert_eq!(fate.to_string(), shown);
        assert_eq!(outcome(None).0, "unlisted");
        let steered = NameFate { outcome: "steered".to_owned(), addresses: Vec::new(), ..fate };
        assert!(steered.to_string().starts_with("bank.example: steered: "));
        assert!(steered.to_string().ends_with("  no IPv4 address\n"));
        let remembered = NameFate { source: Some("remembered: a query brought it".to_owned()), ..steered };
        assert!(remembered.to_string().ends_with("  no IPv4 address\n  remembered: a query brought it\n"));
    }
}
