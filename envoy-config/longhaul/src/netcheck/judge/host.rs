//! Ports, the packet filter and kernel settings.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use longhaul_derive::{CongestionControl, CongestionControls, HostFacts, Origin, Value};

use super::super::finding::Finding;
use super::super::firewall::{Harm, Keeper, Obstacle, Port, Ruleset, not_forwarded, obstacles};
use super::super::gather::host::Rules;
use super::super::table::Check;
use crate::run::{OwnSocket, SocketHolder};

/// A port of clients that Longhaul never takes.
const OTHER_PORT: Port = Port { udp: false, number: 22 };

/// Judges the holders of the box's own sockets.
pub(crate) fn ports(sockets: &[OwnSocket]) -> Vec<Finding> {
    let of = |is: fn(&SocketHolder) -> bool| -> Vec<Port> {
        sockets.iter().filter(|one| is(&one.holder)).map(port).collect()
    };
    let foreign: Vec<Finding> = sockets.iter().filter_map(taken).collect();
    if !foreign.is_empty() {
        return foreign;
    }
    let free = of(|holder| *holder == SocketHolder::Nobody);
    let ours = of(|holder| *holder == SocketHolder::Run);
    if free.is_empty() {
        return vec![Finding::ok(Check::Ports, format!("{}: Longhaul has them", listed(ours)))];
    }
    if ours.is_empty() {
        let text = format!("{}: free, because Longhaul does not run", listed(free));
        return vec![Finding::warning(Check::Ports, text, "systemctl start longhaul")];
    }
    let text = format!("{}: Longhaul runs and does not listen there", listed(free));
    vec![Finding::warning(Check::Ports, text, "longhaul status")]
}

fn port(socket: &OwnSocket) -> Port {
    Port { udp: socket.is_udp, number: socket.socket.port() }
}

fn taken(socket: &OwnSocket) -> Option<Finding> {
    let SocketHolder::Other(why) = &socket.holder else { return None };
    let (text, cure) = why.split_once("; ").unwrap_or((why, "free it"));
    Some(Finding::error(Check::Ports, text, cure))
}

/// Lists ports by protocol: `TCP 80, 443 and UDP 53`.
fn listed(ports: impl IntoIterator<Item = Port>) -> String {
    let ports: BTreeSet<Port> = ports.into_iter().collect();
    let of = |udp| ports.iter().filter(|port| port.udp == udp).map(|port| port.number.to_string()).collect::<Vec<_>>();
    let word =
        |name: &str, numbers: Vec<String>| (!numbers.is_empty()).then(|| format!("{name} {}", numbers.join(", ")));
    let protocols: Vec<String> = [word("TCP", of(false)), word("UDP", of(true))].into_iter().flatten().collect();
    protocols.join(" and ")
}

/// Judges foreign rules that take packets to `ports`, on which clients or remotes connect.
pub(crate) fn firewall(rules: &Rules, ports: &[Port], own: Own) -> Vec<Finding> {
    let rules = match readable(rules, Check::Firewall) {
        Ok(rules) => rules,
        Err(finding) => return vec![finding],
    };
    let interface = rules.clients();
    let found = obstacles(rules, ports, interface.as_deref());
    let foreign = found.iter().map(|one| obstacle(Check::Firewall, one, interface.as_deref()));
    let findings: Vec<Finding> = missing(rules, own).into_iter().chain(foreign).collect();
    if !findings.is_empty() {
        return findings;
    }
    let text = format!("no foreign rule drops or redirects {}", listed(ports.iter().copied()));
    vec![Finding::ok(Check::Firewall, text)]
}

/// The need for Longhaul's own packet rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    /// Clients bypass the box without them.
    Needed,
    /// Clients may come by the DNS instead.
    Usual,
    /// There are none.
    None,
}

/// Returns the finding that Longhaul's own rules are not loaded.
fn missing(rules: &Ruleset, own: Own) -> Option<Finding> {
    let text = "Longhaul's own packet rules are not loaded, so clients bypass this box";
    let cure = "systemctl restart longhaul-host@IF, or longhaul host FILE --clients IF --apply";
    match own {
        _ if rules.has_ours() => None,
        Own::Needed => Some(Finding::error(Check::Firewall, text, cure)),
        Own::Usual => Some(Finding::warning(Check::Firewall, format!("{text} unless its DNS leads them"), cure)),
        Own::None => None,
    }
}

/// Returns the rules, or the finding that they could not be read.
fn readable(rules: &Rules, check: Check) -> Result<&Ruleset, Finding> {
    match rules {
        Rules::Read(rules) => Ok(rules),
        Rules::NeedsRoot => {
            Err(Finding::skipped(check, "reading the packet filter needs root: sudo longhaul netcheck"))
        }
        Rules::NoNft => Err(Finding::skipped(check, "the program nft is not installed, so its rules were not read")),
        Rules::Unreadable(why) => Err(Finding::skipped(check, format!("the packet filter cannot be read: {why}"))),
    }
}

fn obstacle(check: Check, found: &Obstacle, interface: Option<&str>) -> Finding {
    let Obstacle { family, table, chain, harm, ports, .. } = found;
    let place = format!("table {family} {table}, chain {chain}");
    let ports = listed(ports.iter().copied());
    let text = match harm {
        Harm::Drops { rule: None } => format!("{place} (policy drop) drops {ports}"),
        Harm::Drops { rule: Some(handle) } => format!("{place}, rule {handle} drops {ports}"),
        Harm::Redirects { rule } => format!("{place}, rule {rule} redirects {ports} before Longhaul's rules"),
    };
    Finding::error(check, text, cure(found, interface))
}

/// Returns the command that lets the packets pass, for the program that keeps the rules.
fn cure(found: &Obstacle, interface: Option<&str>) -> String {
    let Obstacle { family, table, chain, harm, ports, keeper } = found;
    if let Harm::Redirects { rule } = harm {
        return format!("nft delete rule {family} {table} {chain} handle {rule}");
    }
    let on = interface.unwrap_or("IF");
    let numbers = |udp| ports.iter().filter(move |port| port.udp == udp).map(|port| port.number.to_string());
    let mut commands = Vec::new();
    for (udp, protocol) in [(false, "tcp"), (true, "udp")] {
        let list: Vec<String> = numbers(udp).collect();
        if list.is_empty() {
            continue;
        }
        commands.push(match keeper {
            Keeper::Ufw => format!("ufw allow in on {on} to any port {} proto {protocol}", list.join(",")),
            Keeper::Firewalld => list.iter().fold("firewall-cmd".to_owned(), |mut command, number| {
                let _ = write!(command, " --add-port={number}/{protocol}");
                command
            }),
            Keeper::Docker | Keeper::Nft => format!(
                "nft insert rule {family} {table} {chain} iifname \"{on}\" {protocol} dport {{ {} }} accept",
                list.join(", ")
            ),
        });
    }
    commands.join(" && ")
}

/// Judges whether clients' packets for other ports pass through this machine.
pub(crate) fn forwarding(ip_forward: Option<&str>, rules: &Rules) -> Vec<Finding> {
    let check = Check::Forwarding;
    if ip_forward == Some("0") {
        let text = "net.ipv4.ip_forward is 0, so only what Longhaul takes passes from clients";
        return vec![Finding::error(
            check,
            text,
            "longhaul host FILE --clients IF --apply, or sysctl -w net.ipv4.ip_forward=1",
        )];
    }
    let Ok(rules) = readable(rules, check) else {
        return vec![Finding::ok(check, "net.ipv4.ip_forward is 1; the packet filter was not read")];
    };
    let interface = rules.clients();
    let found = not_forwarded(rules, &[OTHER_PORT], interface.as_deref());
    if found.is_empty() {
        return vec![Finding::ok(check, "net.ipv4.ip_forward is 1, and no foreign rule drops what is forwarded")];
    }
    found.iter().map(|one| dropped(check, one, interface.as_deref().unwrap_or("IF"))).collect()
}

fn dropped(check: Check, found: &Obstacle, on: &str) -> Finding {
    let Obstacle { family, table, chain, keeper, .. } = found;
    let text =
        format!("table {family} {table}, chain {chain} drops packets of clients to ports that Longhaul does not take");
    let cure = match keeper {
        Keeper::Ufw => format!("ufw route allow in on {on}"),
        Keeper::Firewalld => "firewall-cmd --add-forward".to_owned(),
        Keeper::Docker => format!("iptables -I DOCKER-USER -i {on} -j ACCEPT"),
        Keeper::Nft => format!("nft insert rule {family} {table} {chain} iifname \"{on}\" accept"),
    };
    Finding::warning(check, text, cure)
}

/// Judges the congestion control of the box's connections.
pub(crate) fn congestion(control: &Value<CongestionControl>, host: &HostFacts) -> Vec<Finding> {
    let check = Check::Congestion;
    let available = match &host.congestion_controls {
        CongestionControls::Known { available, .. } => available.as_slice(),
        CongestionControls::Unknown => &[],
    };
    vec![match (&control.value, control.origin) {
        (CongestionControl::Named(name), _) if name.starts_with("bbr") => {
            Finding::ok(check, format!("{name} on the connections over the link"))
        }
        (other, Origin::Overridden { line }) => {
            Finding::ok(check, format!("{other}, by `transport.congestion_control` in line {line}"))
        }
        (..) if available.iter().any(|name| name == "bbr") => {
            let all = available.join(" ");
            let text = "this user may not set bbr, so a lost packet slows a connection down";
            Finding::warning(check, text, format!("sysctl -w net.ipv4.tcp_allowed_congestion_control=\"{all}\""))
        }
        (..) => Finding::warning(
            check,
            "this kernel has not loaded bbr, so a lost packet slows a connection down",
            "modprobe tcp_bbr && echo tcp_bbr > /etc/modules-load.d/longhaul.conf",
        ),
    }]
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Verdict;
    use super::*;

    fn socket(port: u16, is_udp: bool, holder: SocketHolder) -> OwnSocket {
        OwnSocket { socket: ([0, 0, 0, 0], port).into(), is_udp, holder }
    }

    #[test]
    fn ports_of_others_are_errors_and_those_of_the_run_are_right() {
        let own = |holder: SocketHolder| {
            [socket(80, false, SocketHolder::Run), socket(53, true, SocketHolder::Run), socket(443, false, holder)]
        };
        let found = ports(&own(SocketHolder::Run));
        assert_eq!(found, [Finding::ok(Check::Ports, "TCP 80, 443 and UDP 53: Longhaul has them")]);
        let found = ports(&own(SocketHolder::Other("port 443 is in use by nginx (process 7); stop it".to_owned())));
        assert_eq!(found, [Finding::error(Check::Ports, "port 443 is in use by nginx (process 7)", "stop it")]);
        assert_eq!(ports(&own(SocketHolder::Nobody))[0].verdict, Verdict::Warning);
        let stopped = ports(&[socket(80, false, SocketHolder::Nobody)]);
        assert_eq!(stopped[0].cure.as_deref(), Some("systemctl start longhaul"));
    }

    fn dropping(chains: &str) -> Rules {
        let text = format!(
            r#"{{"nftables": [{{"chain": {{"family": "ip", "table": "filter", "name": "INPUT", "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}}}}{chains}]}}"#
        );
        Rules::Read(Ruleset::parse(&text).unwrap())
    }

    const WEB: [Port; 2] = [Port { udp: false, number: 80 }, Port { udp: true, number: 53 }];

    #[test]
    fn a_firewall_is_named_with_the_command_of_its_program() {
        let found = firewall(&dropping(""), &WEB, Own::None);
        assert_eq!(found[0].text, "table ip filter, chain INPUT (policy drop) drops TCP 80 and UDP 53");
        let by_nft = "nft insert rule ip filter INPUT iifname \"IF\" tcp dport { 80 } accept && \
                      nft insert rule ip filter INPUT iifname \"IF\" udp dport { 53 } accept";
        assert_eq!(found[0].cure.as_deref(), Some(by_nft));
        let ufw = r#", {"chain": {"family": "ip", "table": "filter", "name": "ufw-user-input"}}"#;
        let cure = firewall(&dropping(ufw), &WEB, Own::None).remove(0).cure.unwrap();
        assert!(cure.starts_with("ufw allow in on IF to any port 80 proto tcp && ufw allow"), "{cure}");
        let none = Rules::Read(Ruleset::parse(r#"{"nftables": []}"#).unwrap());
        assert_eq!(firewall(&none, &WEB, Own::None)[0].verdict, Verdict::Ok);
        assert_eq!(firewall(&none, &WEB, Own::Needed)[0].verdict, Verdict::Error);
        assert_eq!(firewall(&none, &WEB, Own::Usual)[0].verdict, Verdict::Warning);
        assert_eq!(firewall(&Rules::NeedsRoot, &WEB, Own::Needed)[0].verdict, Verdict::Skipped);
    }

    #[test]
    fn a_box_that_does_not_forward_is_an_error_and_a_chain_that_drops_a_warning() {
        let none = Rules::Read(Ruleset::parse(r#"{"nftables": []}"#).unwrap());
        assert_eq!(forwarding(Some("0"), &none)[0].verdict, Verdict::Error);
        assert_eq!(forwarding(Some("1"), &none)[0].verdict, Verdict::Ok);
        let docker = r#"{"nftables": [
            {"chain": {"family": "ip", "table": "filter", "name": "FORWARD", "type": "filter", "hook": "forward", "prio": 0, "policy": "drop"}},
            {"chain": {"family": "ip", "table": "filter", "name": "DOCKER-USER"}}]}"#;
        let found = forwarding(Some("1"), &Rules::Read(Ruleset::parse(docker).unwrap()));
        assert_eq!(
            (found[0].verdict, found[0].cure.as_deref()),
            (Verdict::Warning, Some("iptables -I DOCKER-USER -i IF -j ACCEPT"))
        );
    }

    #[test]
    fn a_kernel_without_bbr_is_a_warning_unless_the_file_chose_another() {
        let control = |value, origin| Value { value, formula: String::new(), source: "", origin };
        let host = |available: &[&str]| {
            let available: Vec<String> = available.iter().map(|name| (*name).to_owned()).collect();
            let controls = CongestionControls::Known { allowed: Vec::new(), available, default: "cubic".to_owned() };
            HostFacts { congestion_controls: controls, ..HostFacts::unknown() }
        };
        let named = |name: &str| CongestionControl::Named(name.to_owned());
        let verdict = |control: &Value<_>, host: &HostFacts| congestion(control, host).remove(0);
        assert_eq!(verdict(&control(named("bbr"), Origin::Derived), &host(&["bbr"])).verdict, Verdict::Ok);
        let by_hand = control(named("cubic"), Origin::Overridden { line: 3 });
        assert_eq!(verdict(&by_hand, &host(&["cubic"])).verdict, Verdict::Ok);
        let default = control(CongestionControl::HostDefault, Origin::Derived);
        assert!(verdict(&default, &host(&["cubic"])).cure.unwrap().starts_with("modprobe tcp_bbr"));
        let cure = verdict(&default, &host(&["cubic", "bbr"])).cure.unwrap();
        assert_eq!(cure, "sysctl -w net.ipv4.tcp_allowed_congestion_control=\"cubic bbr\"");
    }
}
