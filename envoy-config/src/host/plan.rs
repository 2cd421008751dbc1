//! The steps on the machine, each with its reason and its reversal.

use std::fs;
use std::process::{Command, Stdio};

use super::nft;
use super::routes;
use crate::config::units::Bytes;
use crate::config::{Intercept, Role, Settings};
use crate::derive::{CongestionControl, Derived};

/// The steps for one configuration on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// In the order they are taken; taken back in the reverse order.
    pub steps: Vec<Step>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Why.
    pub why: String,
    /// The action.
    pub action: Action,
}

/// The action of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// A kernel setting, and what it is now.
    Sysctl {
        /// As `sysctl` names it.
        name: String,
        /// The value to set.
        value: String,
        /// The present value.
        before: String,
    },
    /// A command, and the one that takes it back.
    Command {
        /// Program and arguments.
        command: Vec<String>,
        /// Program and arguments of the way back.
        undo: Vec<String>,
    },
    /// A rule set for `nft -f`; it replaces itself.
    Rules(String),
}

/// The machine as it is: what the plan starts from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machine {
    /// The clients' interface.
    pub interface: String,
    /// Its routes, as `ip -4 route show dev IF` prints them; empty where there is no such interface yet.
    pub routes: String,
    /// Values of kernel settings by name.
    pub sysctls: Vec<(&'static str, String)>,
    /// Policy routing rules, as `ip -4 rule show` prints them.
    pub rules: String,
}

const SLOW_START: &str = "net.ipv4.tcp_slow_start_after_idle";
const WMEM: &str = "net.ipv4.tcp_wmem";
const RMEM: &str = "net.ipv4.tcp_rmem";
const FORWARD: &str = "net.ipv4.ip_forward";
const ALLOWED: &str = "net.ipv4.tcp_allowed_congestion_control";
const SYSCTLS: &[&str] = &[SLOW_START, WMEM, RMEM, FORWARD, ALLOWED];
/// The table of routes for packets TPROXY has given to a listener.
const LOCAL_TABLE: &str = "4170";

impl Machine {
    /// Asks this machine.
    pub fn this(interface: &str) -> Self {
        let read =
            |name: &&'static str| fs::read_to_string(sysctl_path(name)).ok().map(|value| (*name, normal(&value)));
        Self {
            interface: interface.to_owned(),
            routes: output(&["-4", "route", "show", "dev", interface]),
            sysctls: SYSCTLS.iter().filter_map(read).collect(),
            rules: output(&["-4", "rule", "show"]),
        }
    }

    fn sysctl(&self, name: &str) -> Option<&str> {
        self.sysctls.iter().find(|(have, _)| *have == name).map(|(_, value)| value.as_str())
    }
}

/// The network interfaces of this machine, sorted; None where the kernel does not say.
pub fn interfaces() -> Option<Vec<String>> {
    let table = fs::read_to_string("/proc/net/dev").ok()?;
    let mut names: Vec<String> =
        table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect();
    names.sort();
    Some(names)
}

/// Output of `ip`; empty where it fails, which for us means: nothing of the kind.
fn output(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output();
    output
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default()
}

/// The kernel separates by tabs what it accepts separated by spaces.
fn normal(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// The steps that `settings` need on `machine`, without those that are in place already.
pub fn plan(settings: &Settings, derived: &Derived, machine: &Machine) -> Plan {
    let steps = [sysctls(settings, derived, machine), client_routes(derived, machine), interception(settings, machine)];
    Plan { steps: steps.concat() }
}

fn sysctls(settings: &Settings, derived: &Derived, machine: &Machine) -> Vec<Step> {
    let mut wanted = vec![
        (SLOW_START, "0".to_owned(), "a kept connection starts its next page at the speed it had".to_owned()),
        (WMEM, with_maximum(machine.sysctl(WMEM), derived.send_buffer_max.value), derived.send_buffer_max.comment()),
        (RMEM, receive_buffers(settings, derived, machine.sysctl(RMEM)), derived.receive_buffer_max.comment()),
    ];
    if settings.listen.intercept != Intercept::None {
        wanted.push((FORWARD, "1".to_owned(), "this host is on the clients' way".to_owned()));
    }
    if let (CongestionControl::Named(name), Some(allowed)) =
        (&derived.congestion_control.value, machine.sysctl(ALLOWED))
        && !allowed.split(' ').any(|word| word == name)
    {
        wanted.push((ALLOWED, format!("{allowed} {name}"), format!("processes without CAP_NET_ADMIN may use {name}")));
    }
    let step = |(name, value, why): (&str, String, String)| {
        let before = machine.sysctl(name)?.to_owned();
        (before != value).then(|| Step { why, action: Action::Sysctl { name: name.to_owned(), value, before } })
    };
    wanted.into_iter().filter_map(step).collect()
}

/// The payload of a segment on Ethernet.
const SEGMENT_BYTES: u64 = 1460;

/// A remote's pipe receives whole pages at once. The kernel offers half of the default as a connection's first window, whatever
/// `initrwnd` says, and a window that opens only as bytes come costs a round trip.
fn receive_buffers(settings: &Settings, derived: &Derived, present: Option<&str>) -> String {
    let with_maximum = with_maximum(present, derived.receive_buffer_max.value);
    let words: Vec<u64> = with_maximum.split(' ').filter_map(|word| word.parse().ok()).collect();
    match (&settings.role, words.as_slice()) {
        (Role::Remote(_), [least, default, most]) => {
            let first = 2 * SEGMENT_BYTES * u64::from(derived.initial_window.value);
            format!("{least} {} {most}", first.clamp(*default, (*most).max(*default)))
        }
        _ => with_maximum,
    }
}

/// `min default max` with at least this maximum: what the host allows already is not taken away.
fn with_maximum(present: Option<&str>, maximum: Bytes) -> String {
    let mut words: Vec<u64> = present.unwrap_or_default().split(' ').filter_map(|word| word.parse().ok()).collect();
    words.resize(3, 4096);
    if let Some(last) = words.last_mut() {
        *last = (*last).max(maximum.0);
    }
    words.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn client_routes(derived: &Derived, machine: &Machine) -> Vec<Step> {
    let why = format!("initial window: {}", derived.initial_window.comment());
    let command =
        |arguments: Vec<String>| ["ip", "route", "change"].map(str::to_owned).into_iter().chain(arguments).collect();
    let changes = routes::changes(&machine.routes, &machine.interface, derived).into_iter();
    let changes = changes.filter(|change| change.wanted != change.before);
    changes
        .map(|change| Step {
            why: why.clone(),
            action: Action::Command { command: command(change.wanted), undo: command(change.before) },
        })
        .collect()
}

fn interception(settings: &Settings, machine: &Machine) -> Vec<Step> {
    let mut steps = Vec::new();
    if settings.listen.intercept == Intercept::Tproxy {
        let mark = format!("{:#x}", nft::MARK);
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        if !machine.rules.contains(&format!("fwmark {mark} lookup {LOCAL_TABLE}")) {
            steps.push(Step {
                why: "packets that TPROXY gave to a listener stay on this host".to_owned(),
                action: Action::Command {
                    command: words(&format!("ip rule add fwmark {mark} lookup {LOCAL_TABLE}")),
                    undo: words(&format!("ip rule del fwmark {mark} lookup {LOCAL_TABLE}")),
                },
            });
        }
        steps.push(Step {
            why: "whatever address they were sent to".to_owned(),
            action: Action::Command {
                command: words(&format!("ip route replace local default dev lo table {LOCAL_TABLE}")),
                undo: words(&format!("ip route del local default dev lo table {LOCAL_TABLE}")),
            },
        });
    }
    let why = match settings.listen.intercept {
        Intercept::None => "nobody but the clients reaches the listeners",
        Intercept::Redirect | Intercept::Tproxy => {
            "clients' web and DNS traffic comes to the listeners, and nobody else's"
        }
    };
    steps.push(Step { why: why.to_owned(), action: Action::Rules(nft::rules(settings, &machine.interface)) });
    steps
}
