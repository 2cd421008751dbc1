//! The configuration files of a new pair, as text.
//!
//! A value that the operator has not given stays empty. `longhaul check` then refuses the file and points to the line.

use std::fmt::Write as _;
use std::net::IpAddr;

use longhaul_config::{DialledPorts, Host, HostName, HostPort};

/// The authority's certificate, which each end has.
pub(super) const AUTHORITY: &str = "pair-ca.pem";
/// The folder of the ground, and the base name of its files.
pub(crate) const GROUND: &str = "ground";
/// The port of a ground, unless `split.listen` names another one.
const DEFAULT_PORT: u16 = 8443;

/// The values of the link, as `link:` accepts them.
#[derive(Debug, Clone, Default)]
pub(crate) struct LinkText {
    /// The round-trip time, for example `600ms`.
    pub rtt: Option<String>,
    /// The rate towards the clients, for example `20mbit`.
    pub down: Option<String>,
    /// The rate from the clients, for example `5mbit`.
    pub up: Option<String>,
}

/// The values of the two machines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Site {
    /// The link between the ends.
    pub link: LinkText,
    /// The address at which clients reach the remote.
    pub clients: Option<IpAddr>,
    /// A resolver for the names of origins.
    pub resolver: Option<IpAddr>,
}

/// Returns the ground's `longhaul.yaml`.
pub(super) fn ground(at: &HostPort, remote: &HostName, site: &Site) -> String {
    let mut text = head("The ground of a pair: the end on the wired side of the link.", "ground", &site.link);
    let ports: Vec<String> = [80, 443].iter().chain(&DialledPorts::AUTO).map(u16::to_string).collect();
    upstream(&mut text, site, &format!(", ports: [{}]", ports.join(", ")));
    let listen = if at.port == DEFAULT_PORT { String::new() } else { format!("listen: \"0.0.0.0:{}\", ", at.port) };
    let _ = writeln!(text, "split: {{ peer: [{remote}], {listen}{} }}", credentials(GROUND));
    text
}

/// Returns the remote's `longhaul.yaml`.
pub(super) fn remote(name: &HostName, ground: &HostPort, site: &Site) -> String {
    let mut text = head("The remote of a pair: the end beside the clients.", "remote", &site.link);
    let _ = writeln!(text, "proxy: {{ addresses: [{}] }}   # where clients meet this box", empty_or(site.clients));
    if matches!(ground.host, Host::Name(_)) {
        upstream(&mut text, site, "");
    }
    text.push_str("listen: { tcp: auto }   # ssh, mail and chat cross the link here, too\n");
    let _ = writeln!(text, "split: {{ peer: \"{ground}\", {} }}", credentials(name.as_str()));
    text
}

fn head(title: &str, role: &str, link: &LinkText) -> String {
    let [rtt, down, up] = [&link.rtt, &link.down, &link.up].map(|value| value.as_deref().unwrap_or_default());
    format!(
        "# {title} `longhaul check` explains each choice.\nrole: {role}\nlink: {{ rtt: {rtt}, down: {down}, up: {up}, fill: auto }}\n"
    )
}

fn upstream(text: &mut String, site: &Site, more: &str) {
    let _ = writeln!(text, "upstream: {{ resolvers: [{}]{more} }}", empty_or(site.resolver));
}

fn empty_or(address: Option<IpAddr>) -> String {
    address.map(|address| address.to_string()).unwrap_or_default()
}

fn credentials(name: &str) -> String {
    format!("cert: {name}.pem, key: {name}.key, ca: {AUTHORITY}")
}
