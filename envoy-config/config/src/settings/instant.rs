//! Addresses of names before their true responses are known: `split.instant_answers` for listed names, and `dns.instant` for
//! those that a browser looks up first.

use std::fmt;

use ipnet::Ipv4Net;

use super::{Intercept, Remote, Role, Settings};
use crate::sockets::Family;

/// `dns.instant`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InstantWish {
    /// Off. Where clients have a public search domain, Chromium's probes for forged responses would find names that do not
    /// exist.
    Auto,
    /// The operator's choice.
    On,
    /// Every lookup waits for the truth.
    Off,
}

/// The reason why browsers' first lookups wait for the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotInstant {
    /// The operator's wish.
    Off,
    /// The default.
    Auto,
    /// No lookup crosses the link.
    NotRemote,
    /// No client asks.
    NoDns,
    /// No connection to an address of the range comes here.
    NotIntercepted,
    /// The same, of one of the ports.
    NotBothPorts,
    /// Nothing tells a first lookup from others.
    NothingRemembered,
}

impl fmt::Display for NotInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "`dns.instant` is off",
            Self::Auto => {
                "`dns.instant` is auto, which is off: names that do not exist fail in another way, so `on` is your choice"
            }
            Self::NotRemote => "only the lookups of a remote cross the link",
            Self::NoDns => "`listen.dns` is off",
            Self::NotIntercepted => "`listen.intercept` is none, so connections to such addresses do not come here",
            Self::NotBothPorts => "`listen.http` and `listen.tls` do not both serve IPv4",
            Self::NothingRemembered => "`dns.remember` is off, so no lookup is known as the first one",
        })
    }
}

impl Settings {
    /// Returns the range in which a name has an address of its own after a browser's first lookup, or the reason why such
    /// lookups wait for the truth.
    pub fn first_visits(&self) -> Result<Ipv4Net, NotInstant> {
        if !matches!(self.role, Role::Remote(_)) {
            return Err(NotInstant::NotRemote);
        }
        match self.dns.instant {
            InstantWish::Off => return Err(NotInstant::Off),
            InstantWish::Auto => return Err(NotInstant::Auto),
            InstantWish::On => {}
        }
        self.can_be_instant()?;
        Ok(if self.lists_are_instant() { self.halves()[1] } else { self.dns.instant_range })
    }

    /// Returns the range in which listed names have addresses of their own before the truth is known. None: responses wait.
    pub fn instant_range(&self) -> Option<Ipv4Net> {
        let whole = self.first_visits().is_err();
        self.lists_are_instant().then(|| if whole { self.dns.instant_range } else { self.halves()[0] })
    }

    /// Returns every address that a name may have before the truth is known. None: no name has one.
    pub fn instant_addresses(&self) -> Option<Ipv4Net> {
        (self.lists_are_instant() || self.first_visits().is_ok()).then_some(self.dns.instant_range)
    }

    fn lists_are_instant(&self) -> bool {
        let wanted = matches!(self.role, Role::Remote(Remote { instant_answers: true, .. }));
        wanted && self.lists_names() && self.answers_truly() && self.takes_both_ports()
    }

    fn can_be_instant(&self) -> Result<(), NotInstant> {
        if self.listen.dns.is_none() {
            Err(NotInstant::NoDns)
        } else if self.listen.intercept == Intercept::None {
            Err(NotInstant::NotIntercepted)
        } else if !self.takes_both_ports() {
            Err(NotInstant::NotBothPorts)
        } else if self.dns.remember.is_zero() {
            Err(NotInstant::NothingRemembered)
        } else {
            Ok(())
        }
    }

    fn takes_both_ports(&self) -> bool {
        self.listen.web().all(|sockets| sockets.serves(Family::Ipv4)) && self.listen.tls.is_some()
    }

    /// Returns the halves of the range. Two tables of one range would give one address to two names.
    fn halves(&self) -> [Ipv4Net; 2] {
        let range = self.dns.instant_range;
        let mut halves = range.subnets(range.prefix_len() + 1).into_iter().flatten();
        [halves.next().unwrap_or(range), halves.next().unwrap_or(range)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dns, load_text};

    fn remote(more: &str) -> Settings {
        let pem = concat!(env!("CARGO_MANIFEST_DIR"), "/../longhaul/tests/config/files/pep");
        let text = format!(
            "role: remote\nlink: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
             split: {{ peer: \"198.51.100.40:8443\", cert: {pem}.pem, key: {pem}.key, ca: {pem}.pem }}\n{more}\n"
        );
        load_text("test.yaml".as_ref(), text).unwrap().settings
    }

    #[test]
    fn first_visits_are_instant_where_the_operator_wants_it_and_connections_come_here() {
        let range = |text: &str| text.parse::<Ipv4Net>().unwrap();
        for (more, expected) in [
            ("", Err(NotInstant::Auto)),
            ("dns: { instant: off }", Err(NotInstant::Off)),
            ("dns: { instant: on }", Ok(range("198.18.0.0/15"))),
            ("dns: { instant: on, instant_range: 198.19.0.0/16 }", Ok(range("198.19.0.0/16"))),
            ("dns: { instant: on, www: true }", Ok(range("198.19.0.0/16"))),
            ("dns: { instant: on, remember: off }", Err(NotInstant::NothingRemembered)),
            ("dns: { instant: on }\nlisten: { dns: off }", Err(NotInstant::NoDns)),
            ("dns: { instant: on }\nlisten: { tls: off }", Err(NotInstant::NotBothPorts)),
            ("dns: { instant: on, www: true }\nlisten: { intercept: none }", Err(NotInstant::NotIntercepted)),
        ] {
            assert_eq!(remote(more).first_visits(), expected, "{more}");
        }
    }

    #[test]
    fn listed_names_and_first_visits_share_no_address() {
        let both = remote("dns: { instant: on, www: true }");
        let (listed, visits) = (both.instant_range().unwrap(), both.first_visits().unwrap());
        assert!(!listed.contains(&visits) && !visits.contains(&listed));
        assert_eq!(both.instant_addresses(), Some(Dns::INSTANT_RANGE));
        let listed = remote("dns: { www: true }");
        assert_eq!(
            (listed.instant_range(), listed.instant_addresses()),
            (Some(Dns::INSTANT_RANGE), Some(Dns::INSTANT_RANGE))
        );
        assert_eq!(remote("").instant_addresses(), None);
    }
}
