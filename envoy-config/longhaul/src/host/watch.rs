//! Watches the packet rules: whether they are still loaded, and whether what they lead to the listeners arrives there. It
//! also watches whether the device of the link still has its queue.
//!
//! It reads the rules every few seconds. [`Keeper`](super::Keeper) changes one map of them. Both need `CAP_NET_ADMIN`, which
//! `longhaul run` lacks on purpose: it holds the connections of strangers. So this is a process of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, io, mem};

use longhaul_config::{DeviceName, Settings};
use longhaul_derive::{Derived, HostFacts, derive};
use longhaul_observe::report::{HostFault, HostReport, LinkState};
use longhaul_render::host::{ClientInterface, Counted, Machine, QueueKind};

use super::link_device::{kinds_of_queues, link_device};
use super::links::LinkWatch;
use super::ruleset::{Foreign, Packet, Ruleset};
use super::this_machine::{names, this_machine};
use crate::replaced_file;

/// The pause between two readings.
const PAUSE: Duration = Duration::from_secs(3);
/// The pause between two looks at the links.
const LINK_PAUSE: Duration = Duration::from_millis(250);
/// Reading the rules of a large firewall takes at most this part of one processor.
const PART_OF_TIME: u32 = 50;
/// The time without packets after which those that were lost count no more.
const REST: Duration = Duration::from_mins(1);
/// Packets without an arrival that mean a fault. A client sends a lost packet again within a second.
const FEW: u64 = 2;

/// The rules to watch.
pub(crate) struct Watch {
    file: PathBuf,
    /// The interfaces to the clients, as in `--clients`.
    clients: String,
    ports: Vec<Counted>,
    /// True if clients' IPv6 traffic passes this box by, where they have IPv6.
    ipv6_bypasses: bool,
    derived: Derived,
    /// `link.device`, and the kinds of queue that the kernel makes.
    device: Option<(DeviceName, Option<Vec<QueueKind>>)>,
}

/// Returns true if the same links work.
fn same_work(before: &[LinkState], now: &[LinkState]) -> bool {
    before.iter().map(|link| link.alive).eq(now.iter().map(|link| link.alive))
}

impl Watch {
    pub(crate) fn of(file: PathBuf, clients: String, settings: &Settings) -> Self {
        Self {
            file,
            clients,
            ports: Counted::of(settings),
            ipv6_bypasses: settings.listen.ipv6_bypasses(),
            derived: derive(settings, &HostFacts::unknown()),
            device: settings.link.device.clone().map(|device| (device, kinds_of_queues())),
        }
    }

    /// Writes a report to `path` every few seconds, for as long as the process lives.
    ///
    /// # Errors
    /// `nft` cannot be run, or the report cannot be written.
    pub(crate) fn forever(mut self, path: &Path, links: &LinkWatch) -> io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let (start, mut arrivals) = (Instant::now(), Arrivals::default());
        let changed = |file: &Path| fs::metadata(file).and_then(|metadata| metadata.modified()).ok();
        let mut read_at = changed(&self.file);
        loop {
            let began = Instant::now();
            if changed(&self.file) != read_at {
                read_at = changed(&self.file);
                self.follow();
            }
            let rules = loaded_rules()?;
            let report = HostReport {
                at: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs()),
                file: self.file.clone(),
                clients: self.clients.clone(),
                faults: [self.faults(&rules, &arrivals.add(start.elapsed(), self.counts(&rules))), self.lost_queue()]
                    .concat(),
                links: links.states(),
            };
            replaced_file::replace(path, &serde_json::to_vec_pretty(&report)?, 0o644)?;
            let pause = PAUSE.max(began.elapsed() * PART_OF_TIME);
            let paused = Instant::now();
            // A link that dies or comes back is reported at once: the limits of both ends follow it.
            while paused.elapsed() < pause && same_work(&report.links, &links.states()) {
                thread::sleep(LINK_PAUSE);
            }
        }
    }

    /// Follows a change of the file. One that is refused changes nothing.
    fn follow(&mut self) {
        if let Ok(loaded) = longhaul_config::load(&self.file) {
            *self = Self::of(mem::take(&mut self.file), mem::take(&mut self.clients), &loaded.settings);
        }
    }

    fn counts(&self, rules: &Ruleset) -> Counts {
        let of = |way: &str, port: &Counted| rules.counted(&format!("{way}_{}", port.name)).unwrap_or(0);
        self.ports.iter().map(|port| (port.to, (of("to", port), of("at", port)))).collect()
    }

    fn faults(&self, rules: &Ruleset, lost: &BTreeMap<u16, u64>) -> Vec<HostFault> {
        if !rules.has_ours() {
            return vec![HostFault::Gone { cure: self.again() }];
        }
        let lost_ports: Vec<&Counted> = self.ports.iter().filter(|port| lost.contains_key(&port.to)).collect();
        let mut faults = Vec::new();
        if !lost_ports.is_empty() {
            let by = dropped(rules, &self.clients, &lost_ports);
            faults.push(HostFault::Dropped {
                packets: lost.values().sum(),
                ports: listed(lost_ports.iter().flat_map(|port| port.from.iter().copied())),
                by: by.first().map(|(by, _)| by.name()),
                cure: let_in(rules, &self.clients, &self.ports, by.first().map(|(by, _)| by)),
            });
        }
        faults.extend(self.redirects(rules));
        faults.extend(self.of_the_machine());
        faults
    }

    /// Returns the command that applies everything again. The name of a unit may have no comma.
    fn again(&self) -> String {
        format!("systemctl restart longhaul-host@{}", self.clients.replace(',', ":"))
    }

    /// Returns the fault of the link's device, if it could have a queue and has none.
    fn lost_queue(&self) -> Vec<HostFault> {
        let Some((device, kinds)) = &self.device else { return Vec::new() };
        let link = Some(link_device(device, kinds.clone()));
        let clients = names(&self.clients).map(|name| ClientInterface { name: name.to_owned(), ..Default::default() });
        let machine = Machine { link, clients: clients.collect(), ..Machine::default() };
        let fault = |why| HostFault::Unshaped { why, cure: self.again() };
        machine.lost_queue(&self.derived).map(fault).into_iter().collect()
    }

    /// Returns the faults of the kernel's settings and of the interfaces. Without interception, clients need no gateway.
    fn of_the_machine(&self) -> Vec<HostFault> {
        if self.ports.is_empty() {
            return Vec::new();
        }
        let machine = this_machine(&self.clients, &[]);
        let mut faults = Vec::new();
        if !machine.forwards_ipv4() {
            faults.push(HostFault::NotForwarding { cure: "sysctl -w net.ipv4.ip_forward=1".to_owned() });
        }
        if self.ipv6_bypasses && machine.clients.iter().any(ClientInterface::has_ipv6_network) {
            let cure =
                "write `listen: { http: [0.0.0.0:80, \"[::]:80\"] }`, and the same for `tls` and `dns`".to_owned();
            faults.push(HostFault::Ipv6Passes { cure });
        }
        faults
    }

    fn redirects(&self, rules: &Ruleset) -> Option<HostFault> {
        let all: Vec<&Counted> = self.ports.iter().collect();
        let found = redirected(rules, &self.clients, &all);
        let by = found.first()?.0.name();
        let mut rules: Vec<String> = found
            .iter()
            .filter_map(|(by, _)| Some(format!("nft delete rule {} handle {}", by.name(), by.handle?)))
            .collect();
        rules.dedup();
        let mut ports: Vec<u16> = found.iter().map(|(_, port)| *port).collect();
        ports.dedup();
        Some(HostFault::Redirected { ports: listed(ports), by, cure: rules.join(" && ") })
    }
}

/// Returns what foreign rules do with packets of clients on these interfaces. Empty if the rules cannot be read.
pub(crate) fn warnings(clients: &str, ports: &[Counted]) -> Vec<String> {
    let Ok(rules) = loaded_rules() else { return Vec::new() };
    warnings_of(&rules, clients, ports)
}

fn warnings_of(rules: &Ruleset, clients: &str, ports: &[Counted]) -> Vec<String> {
    let all: Vec<&Counted> = ports.iter().collect();
    let dropped = dropped(rules, clients, &all);
    let redirected = redirected(rules, clients, &all);
    let mut warnings = Vec::new();
    if let Some((by, _)) = dropped.first() {
        let dialled = listed(dropped.iter().map(|(_, port)| *port));
        warnings.push(format!(
            "the chain `{}` drops packets of clients to port {dialled}; let them in: {}",
            by.name(),
            let_in(rules, clients, ports, Some(by))
        ));
    }
    if let Some((by, _)) = redirected.first() {
        let ports = listed(redirected.iter().map(|(_, port)| *port));
        let handle = by.handle.unwrap_or_default();
        warnings.push(format!(
            "the chain `{name}` takes packets of clients to port {ports} before these rules; remove its rule: nft delete rule {name} handle {handle}",
            name = by.name()
        ));
    }
    warnings
}

/// Returns the chains that drop packets to the listeners, with the port of other hosts.
fn dropped(rules: &Ruleset, clients: &str, ports: &[&Counted]) -> Vec<(Foreign, u16)> {
    foreign(clients, ports, |interface, protocol, _, port| {
        rules.dropped_by(&Packet { interface, protocol, port, is_local: true })
    })
}

/// Returns the chains that take packets of clients first, with the port of other hosts.
fn redirected(rules: &Ruleset, clients: &str, ports: &[&Counted]) -> Vec<(Foreign, u16)> {
    foreign(clients, ports, |interface, protocol, port, _| {
        rules.redirected_by(&Packet { interface, protocol, port, is_local: false })
    })
}

/// Returns the chains that `find` names for a packet of any interface, with the port of other hosts. It gets that port and
/// the one of the listener.
fn foreign(
    clients: &str,
    ports: &[&Counted],
    find: impl Fn(&str, &'static str, u16, u16) -> Option<Foreign>,
) -> Vec<(Foreign, u16)> {
    let protocols = |port: &Counted| if port.udp { ["tcp", "udp"].as_slice() } else { ["tcp"].as_slice() };
    let each = ports.iter().flat_map(|port| {
        protocols(port).iter().flat_map(|protocol| port.from.iter().map(|from| (*protocol, *from, port.to)))
    });
    let by = |protocol, from, to| names(clients).find_map(|interface| find(interface, protocol, from, to));
    each.filter_map(|(protocol, from, to)| Some((by(protocol, from, to)?, from))).collect()
}

fn listed(ports: impl IntoIterator<Item = u16>) -> String {
    let mut ports: Vec<u16> = ports.into_iter().collect();
    ports.sort_unstable();
    ports.dedup();
    ports.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the commands that let clients reach the listeners, in the language of the firewall that has the rules.
fn let_in(rules: &Ruleset, clients: &str, ports: &[Counted], by: Option<&Foreign>) -> String {
    let tcp = listed(ports.iter().map(|port| port.to)).replace(' ', "");
    let udp = listed(ports.iter().filter(|port| port.udp).map(|port| port.to)).replace(' ', "");
    let with_udp = |command: String| if udp.is_empty() { String::new() } else { command };
    let each = |command: &dyn Fn(&str) -> String| names(clients).map(command).collect::<Vec<_>>().join(" && ");
    if rules.has_chain_of("ufw-") {
        return each(&|name| {
            let udp = with_udp(format!(" && ufw allow in on {name} to any port {udp} proto udp"));
            format!("ufw allow in on {name} to any port {tcp} proto tcp{udp}")
        });
    }
    if rules.has_chain_of("firewalld") || by.is_some_and(|by| by.table == "firewalld") {
        let port = |port: &str, protocol: &str| format!(" --add-port={port}/{protocol}");
        let tcp: String = tcp.split(',').map(|one| port(one, "tcp")).collect();
        let udp: String = udp.split(',').filter(|one| !one.is_empty()).map(|one| port(one, "udp")).collect();
        let zone = |name: &str| format!("--zone=$(firewall-cmd --get-zone-of-interface={name})");
        let open = each(&|name| format!("firewall-cmd --permanent {}{tcp}{udp}", zone(name)));
        return format!("{open} && firewall-cmd --reload");
    }
    let listed = names(clients).collect::<Vec<_>>().join(", ");
    let Some(by) = by else {
        return format!("accept TCP {tcp} and UDP {udp} from {listed} in its input chain; `nft list ruleset` shows it");
    };
    let chain = by.name();
    let accept = |protocol: &str, ports: &str| {
        format!("nft insert rule {chain} iifname '{{ {listed} }}' {protocol} dport '{{ {ports} }}' accept")
    };
    format!("{}{}", accept("tcp", &tcp), with_udp(format!(" && {}", accept("udp", &udp))))
}

fn loaded_rules() -> io::Result<Ruleset> {
    let done = Command::new("nft").args(["-j", "list", "ruleset"]).stdin(Stdio::null()).output()?;
    if !done.status.success() {
        return Err(io::Error::other(format!("nft: {}", String::from_utf8_lossy(&done.stderr).trim())));
    }
    Ruleset::parse(&String::from_utf8_lossy(&done.stdout)).ok_or_else(|| io::Error::other("nft printed no JSON"))
}

/// The packets led to each port so far, and those that arrived.
type Counts = BTreeMap<u16, (u64, u64)>;

/// The packets of each port since the last one that arrived.
#[derive(Debug, Default)]
struct Arrivals(BTreeMap<u16, Waiting>);

#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// The packets led there when one arrived last.
    base: u64,
    /// The counts of the last reading.
    last: (u64, u64),
    /// The time of the last packet.
    came: Duration,
}

impl Arrivals {
    /// Adds a reading. Returns the packets of each port since the last arrival, if there are a few. A port that nobody asks
    /// any more has none.
    fn add(&mut self, at: Duration, counts: Counts) -> BTreeMap<u16, u64> {
        let mut lost = BTreeMap::new();
        for (port, now) in counts {
            let before = self.0.get(&port).copied();
            // Rules that were loaded again count from zero.
            let before = before.filter(|before| now.0 >= before.last.0 && now.1 >= before.last.1);
            let Some(mut one) = before else {
                self.0.insert(port, Waiting { base: now.0, last: now, came: at });
                continue;
            };
            // Packets of this moment may be under way.
            let earlier = one.last.0 > one.base;
            if now.0 > one.last.0 {
                one.came = at;
            }
            if now.1 > one.last.1 || at.saturating_sub(one.came) > REST {
                one.base = now.0;
            }
            one.last = now;
            self.0.insert(port, one);
            if earlier && now.0 - one.base >= FEW {
                lost.insert(port, now.0 - one.base);
            }
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(to: u64, at: u64) -> Counts {
        BTreeMap::from([(53, (to, at)), (80, (0, 0))])
    }

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn packets_after_the_last_arrival_are_lost_until_one_arrives_or_nobody_asks() {
        let mut arrivals = Arrivals::default();
        assert!(arrivals.add(s(0), counts(100, 0)).is_empty(), "from before");
        assert!(arrivals.add(s(3), counts(104, 4)).is_empty());
        assert!(arrivals.add(s(6), counts(106, 4)).is_empty(), "they may be under way");
        assert_eq!(arrivals.add(s(9), counts(107, 4)), BTreeMap::from([(53, 3)]));
        assert_eq!(arrivals.add(s(12), counts(107, 4)), BTreeMap::from([(53, 3)]));
        assert!(arrivals.add(s(15), counts(108, 5)).is_empty());
        arrivals.add(s(18), counts(110, 5));
        assert_eq!(arrivals.add(s(21), counts(111, 5)), BTreeMap::from([(53, 3)]));
        assert!(arrivals.add(s(90), counts(111, 5)).is_empty(), "nobody asks any more");
    }

    #[test]
    fn each_of_several_interfaces_is_looked_at_and_named_in_the_cure() {
        let json = r#"{"nftables": [
            {"table": {"family": "inet", "name": "longhaul", "handle": 1}},
            {"chain": {"family": "inet", "table": "filter", "name": "input", "handle": 1, "type": "filter", "hook": "input", "prio": 0, "policy": "drop"}},
            {"rule": {"family": "inet", "table": "filter", "chain": "input", "handle": 2, "expr": [{"match": {"op": "==", "left": {"meta": {"key": "iifname"}}, "right": "lan0"}}, {"accept": null}]}}
        ]}"#;
        let rules = Ruleset::parse(json).unwrap();
        let ports = [Counted { name: "53".to_owned(), from: vec![53], to: 53, udp: true }];
        assert!(warnings_of(&rules, "lan0", &ports).is_empty());
        let [warning] = &warnings_of(&rules, "lan0:lan0.20", &ports)[..] else { panic!("one warning") };
        assert!(warning.contains("iifname '{ lan0, lan0.20 }' tcp dport '{ 53 }' accept"), "{warning}");
        let text = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\nproxy: { addresses: [198.51.100.12] }\n\
                    upstream: { resolvers: [192.0.2.53] }\n";
        let settings = longhaul_config::load_text("longhaul.yaml".as_ref(), text.to_owned()).unwrap().settings;
        let watch = Watch::of("longhaul.yaml".into(), "lan0,lan0.20".to_owned(), &settings);
        assert_eq!(watch.lost_queue(), [], "no device");
        let gone = watch.faults(&Ruleset::parse(r#"{"nftables": []}"#).unwrap(), &BTreeMap::new());
        assert_eq!(gone, [HostFault::Gone { cure: "systemctl restart longhaul-host@lan0:lan0.20".to_owned() }]);
    }

    #[test]
    fn rules_that_were_loaded_again_count_from_zero() {
        let mut arrivals = Arrivals::default();
        arrivals.add(s(0), counts(0, 0));
        arrivals.add(s(3), counts(5, 0));
        assert!(arrivals.add(s(6), counts(1, 0)).is_empty());
        assert!(arrivals.add(s(9), counts(1, 0)).is_empty());
    }
}
