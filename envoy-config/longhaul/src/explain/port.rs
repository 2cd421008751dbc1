//! The fate of a connection to another TCP port than those of the web.

use std::net::{IpAddr, SocketAddr};

use longhaul_config::{DialledPorts, RoleName, Settings};
use longhaul_render::{Guard, Refused};
use url::{Host, Url};

/// Returns the fate of `tcp://HOST:PORT`, as a sentence. None for any other URL.
pub(crate) fn explain_port(settings: &Settings, url: &str) -> Option<String> {
    let url = Url::parse(url).ok().filter(|url| url.scheme() == "tcp")?;
    let (host, port) = (url.host()?, url.port()?);
    let address: Option<IpAddr> = match host {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        // URLs of unknown schemes keep an IPv4 address as text. Packet rules see no name.
        Host::Domain(name) => name.parse().ok(),
    };
    let refused = address.and_then(|address| Guard::new(settings, &[]).refusal(SocketAddr::new(address, port)));
    let dialled = settings.listen.tcp.as_ref().map(|tcp| &tcp.dialled);
    Some(format!("{}\n", fate(settings.role.name(), dialled, port, refused)))
}

fn fate(role: RoleName, dialled: Option<&DialledPorts>, port: u16, refused: Option<Refused>) -> String {
    if DialledPorts::TAKEN.contains(&port) {
        return "taken by `listen.http`, `listen.tls` or `listen.dns`, whatever `listen.tcp` says".to_owned();
    }
    if role != RoleName::Remote {
        return "direct: only a remote takes other ports of clients".to_owned();
    }
    match (dialled, refused) {
        (None, _) => "direct: `listen.tcp` is off".to_owned(),
        (Some(dialled), _) if !dialled.has(port) => format!("direct: `listen.tcp` does not take port {port}"),
        (Some(_), Some(why @ (Refused::NotPublic | Refused::Own))) => format!("direct: the address is {why}"),
        (Some(_), _) => {
            "over the pipe, to the address that the client dialled. Directly if the ground does not respond, \
                         or refuses the port or the address"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_port_of_a_public_address_crosses_the_pipe_and_no_other_does() {
        let auto = DialledPorts::Listed(DialledPorts::AUTO.into());
        let of = |dialled: Option<&DialledPorts>, port, refused| fate(RoleName::Remote, dialled, port, refused);
        for (dialled, port) in [(&auto, 22), (&auto, 993), (&DialledPorts::All, 8022)] {
            // A remote itself refuses each port but 80 and 443: the ground decides.
            for refused in [None, Some(Refused::Port)] {
                assert!(of(Some(dialled), port, refused).starts_with("over the pipe"), "{port}");
            }
        }
        assert_eq!(of(Some(&auto), 8022, None), "direct: `listen.tcp` does not take port 8022");
        assert_eq!(of(Some(&DialledPorts::All), 25, None), "direct: `listen.tcp` does not take port 25");
        assert!(of(Some(&DialledPorts::All), 443, None).starts_with("taken by"));
        assert_eq!(of(None, 22, None), "direct: `listen.tcp` is off");
        assert!(of(Some(&auto), 22, Some(Refused::NotPublic)).starts_with("direct: the address is not"));
        assert!(fate(RoleName::Edge, None, 22, None).starts_with("direct: only a remote"));
    }
}
