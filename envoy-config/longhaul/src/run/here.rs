//! The facts of this machine on which a run depends. `longhaul check` states them without a start, in the words of `run`.

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use longhaul_config::{Cache, Dns, Loaded, Settings, reaches};
use longhaul_derive::{CongestionControl, CongestionControls, Derived, HostFacts};
use longhaul_observe::report::RunReport;
use longhaul_render::host::Machine;
use longhaul_render::{Emptied, NearSockets, ProgramSockets, Weighing};

use super::access_log::Destination;
use super::engine::{Engine, NativePlace};
use super::envoy;
use super::error::RunError;
use super::generation::{Generation, RunContext};
use super::locate::{self, Overridden, local_addresses, locate};
use super::ports::{self, Present};
use super::preflight::too_few_files;
use super::private::{ADMIN, DNS_METRICS, TOLD};
use super::taken_range::in_use;
use super::{disk_space, links_here, service_user, state, watches};
use crate::host::{interfaces, link_device};

/// A fact of this machine that an operator should know before a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fact {
    /// The key that the fact contradicts, if there is one.
    pub key: Option<&'static str>,
    /// The effect of the fact.
    pub weight: Weight,
    /// The fact, and the remedy.
    pub text: String,
}

/// The effect of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// The configuration does not work on this machine.
    Contradicts,
    /// It works, but an operator should know.
    Advises,
}

impl Fact {
    fn contradicts(key: Option<&'static str>, text: &impl ToString) -> Self {
        Self { key, weight: Weight::Contradicts, text: text.to_string() }
    }

    fn advises(key: Option<&'static str>, text: String) -> Self {
        Self { key, weight: Weight::Advises, text }
    }
}

/// Returns every fact of this machine that contradicts the accepted file, and advice. Starts and makes nothing.
///
/// Everything that [`super::run`] refuses before it starts a program is among the facts. A live run of this file is none:
/// the sockets that it has are its own, and a change of the file needs no start.
pub(crate) fn facts(state: Option<&Path>, loaded: &Loaded, derived: &Derived) -> Vec<Fact> {
    let run = run_of(&loaded.settings.file, state);
    let present = Present { dns: run.as_ref().and_then(|run| run.listen.dns.as_ref()), ..Present::default() };
    let (loaded, left_out) = &ports::on_this_machine(loaded.clone(), present);
    let settings = &loaded.settings;
    let mut facts = Vec::new();
    let left_out = left_out.iter().filter(|error| !run.as_ref().is_some_and(|run| error.is_held_by(run)));
    facts.extend(left_out.map(|error| Fact::advises(Some(error.key()), error.costs_a_transport())));
    facts.extend(locate(&Overridden::default()).err().map(|error| Fact::contradicts(None, &error)));
    if let Some(error) = state::refusal(state, &settings.file).filter(|_| run.is_none()) {
        facts.push(Fact::contradicts(None, &error));
    } else {
        let occupied = ports::check(&ports::wanted(settings));
        let foreign = occupied.iter().filter(|error| !run.as_ref().is_some_and(|run| error.is_held_by(run)));
        facts.extend(foreign.map(|error| Fact::contradicts(Some(error.key()), error)));
    }
    facts.extend(rendering(loaded).err().map(|error| Fact::contradicts(None, &error)));
    if let Cache::Disk { dir, size, is_assumed: false, .. } = &settings.cache {
        facts.extend(disk_space::refusal(dir, *size).map(|error| {
            let key = if matches!(error, RunError::CacheTooLarge { .. }) { "cache.size" } else { "cache.dir" };
            Fact::advises(Some(key), format!("{error}. A run starts with a smaller cache, or without one"))
        }));
    }
    facts.extend(congestion_control(derived, &HostFacts::of_this_machine()));
    facts.extend(absent_addresses(settings));
    facts.extend(absent_ranges(settings));
    facts.extend(unsteered_names(settings));
    facts.extend(taken_range(settings));
    facts.extend(parents_on_this_box(settings, &local_addresses()));
    facts.extend(too_few_files(settings).map(|text| Fact::advises(Some("limits.connections"), text)));
    facts.extend(link_queue(settings, derived, run.is_some()));
    let missing = links_here::missing(settings, derived, interfaces().as_deref());
    facts.extend(missing.into_iter().map(|text| Fact::advises(Some("links"), text)));
    facts.extend(readable_keys(settings));
    facts.extend(notice_program(settings));
    facts.extend(service_user::unreadable(loaded).into_iter().map(|(key, text)| Fact::advises(key, text)));
    facts
}

/// A socket of this box, and its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnSocket {
    /// The socket.
    pub socket: SocketAddr,
    /// True for UDP.
    pub is_udp: bool,
    /// The process that has it.
    pub holder: SocketHolder,
}

/// The process that has a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SocketHolder {
    /// The socket is free.
    Nobody,
    /// The live run of this file.
    Run,
    /// Another process, or the socket cannot be had: the reason and the remedy.
    Other(String),
}

/// Returns each socket of the settings with its holder. `state` is the state folder of the run, if it was started with one.
pub(crate) fn own_sockets(state: Option<&Path>, loaded: &Loaded) -> Vec<OwnSocket> {
    let settings = &ports::on_this_machine(loaded.clone(), Present::default()).0.settings;
    let run = run_of(&settings.file, state);
    let holder = |wanted| match ports::check(&[wanted]).pop() {
        None => SocketHolder::Nobody,
        Some(error) if run.as_ref().is_some_and(|run| error.is_held_by(run)) => SocketHolder::Run,
        Some(error) => SocketHolder::Other(error.to_string()),
    };
    let own = |wanted: ports::ListenSocket| OwnSocket {
        socket: wanted.socket,
        is_udp: wanted.transport == ports::Protocol::Udp,
        holder: holder(wanted),
    };
    ports::wanted(settings).into_iter().map(own).collect()
}

/// Returns the live run of `file`: in the state folder `state`, or without one in any that this user may see.
fn run_of(file: &Path, state: Option<&Path>) -> Option<RunReport> {
    let run = match state {
        Some(folder) => RunReport::find(None, Some(folder)),
        None => RunReport::find(Some(file), None),
    };
    run.ok().filter(|run| run.file == file)
}

fn native_here() -> NativePlace {
    let envoy = locate(&Overridden::default()).ok().map(|located| located.envoy);
    NativePlace { copies: None, ..locate::native_place(envoy, Path::new("/")) }
}

/// Returns the engine that a run of these settings would have, and why.
///
/// # Errors
/// The native engine cannot run, in the words of `run`.
pub(crate) fn engine_here(settings: &Settings) -> Result<Engine, RunError> {
    Engine::choose(settings.engine, &native_here()).map_err(|error| RunError::Generate(error.into()))
}

/// Renders everything without writing it, and counts the files that Envoy would watch.
fn rendering(loaded: &Loaded) -> Result<(), RunError> {
    let system = |error: std::io::Error| RunError::System(error.to_string());
    let wanted = ports::wanted(&loaded.settings);
    let [dns_ready, resolver] = ports::free_loopback(&wanted).map_err(system)?;
    let images = locate::images(&loaded.settings, None)?;
    let objects = locate::objects(&loaded.settings, None)?;
    let machine = RunContext {
        root: loaded.settings.file.clone(),
        kept: loaded.settings.file.clone(),
        admin: ADMIN.into(),
        dns_metrics: Some(DNS_METRICS.into()),
        told: Some(TOLD.into()),
        filters: locate::filters(&loaded.settings)?,
        native: native_here(),
        dns_ready,
        resolver,
        near: NearSockets::CUSTOMARY,
        images: ProgramSockets::below(Path::new("/"), "images").filter(|_| images.is_some()),
        objects: ProgramSockets::below(Path::new("/"), "objects").filter(|_| objects.is_some()),
        renewals: None,
        access_log: Destination::default(),
        weighing: Weighing::default(),
        emptied: Emptied::default(),
        marks_pages: true,
    };
    let generation = Generation::of(loaded.clone(), &machine)?;
    // One for this program's own watch.
    watches::are_to_be_had(envoy::watched(&generation.tree) + 1).map_err(system)
}

fn congestion_control(derived: &Derived, host: &HostFacts) -> Option<Fact> {
    let CongestionControls::Known { available, .. } = &host.congestion_controls else { return None };
    let CongestionControl::Named(name) = &derived.congestion_control.value else { return None };
    (!available.contains(name)).then(|| {
        let text = format!(
            "this kernel has no congestion control `{name}`, set by `transport.congestion_control`; it has {}. Load its module (modprobe tcp_{name}), or write one of these, or `host`",
            available.join(", ")
        );
        Fact::contradicts(Some("transport.congestion_control"), &text)
    })
}

/// A program of `notify.command` that cannot be started.
fn notice_program(settings: &Settings) -> Option<Fact> {
    let program = &settings.notify.as_ref()?.program;
    let path = program.display();
    let fault = match fs::metadata(program) {
        Err(error) => format!("{path}: {error}"),
        Ok(file) if !file.is_file() => format!("{path} is no file"),
        Ok(file) if file.permissions().mode() & 0o111 == 0 => format!("{path} is not executable: chmod +x {path}"),
        Ok(_) => return None,
    };
    Some(Fact::advises(Some("notify.command"), format!("nobody hears of problems: {fault}")))
}

/// Addresses that clients are sent to and that no interface has.
fn absent_addresses(settings: &Settings) -> Vec<Fact> {
    let local = local_addresses();
    // Every address of 127.0.0.0/8 belongs to this machine, but only one of them is on an interface.
    let is_absent = |address: &&IpAddr| !local.is_empty() && !address.is_loopback() && !local.contains(address);
    let absent = settings.proxy.addresses.iter().filter(is_absent);
    absent
        .map(|address| {
            let text = format!(
                "{address}, set by `proxy.addresses`, is on no interface of this machine. Add it to one, or write the address that clients reach; behind a NAT this is as it should be"
            );
            Fact::contradicts(Some("proxy.addresses"), &text)
        })
        .collect()
}

/// Listed names that are not steered, because browsers would keep public pages from them.
fn unsteered_names(settings: &Settings) -> Option<Fact> {
    let local = settings.proxy.local_steering();
    let lists = settings.dns.has_lists();
    let address = local.first().filter(|_| lists && !settings.lists_names())?;
    let text = format!(
        "no listed name is steered, because browsers keep public pages from {}, set by `proxy.addresses`. Write a public address of this box, or a range such as 198.18.0.0/16 behind it",
        if address.prefix_len() == address.max_prefix_len() { address.addr().to_string() } else { address.to_string() }
    );
    Some(Fact::contradicts(Some("proxy.addresses"), &text))
}

/// A range of instant addresses that somebody has. A file of an older version chose neither the range nor such addresses.
fn taken_range(settings: &Settings) -> Option<Fact> {
    let text = in_use(settings, &local_addresses())?;
    let chosen = settings.first_visits().is_ok() || settings.dns.instant_range != Dns::INSTANT_RANGE;
    let key = Some("dns.instant_range");
    Some(if chosen { Fact::contradicts(key, &text) } else { Fact::advises(key, text) })
}

/// Ranges that no route makes this machine's own. IPv6 is left out: its kernel code lets nobody bind an address of a route.
fn absent_ranges(settings: &Settings) -> Vec<Fact> {
    let absent = settings.proxy.ranges.iter().filter(|range| {
        range.addr().is_ipv4() && range.hosts().next().is_some_and(|address| UdpSocket::bind((address, 0)).is_err())
    });
    absent
        .map(|range| {
            let text = format!(
                "{range}, set by `proxy.addresses`, does not lead to this machine. Type `longhaul host`, or `ip route add local {range} dev lo`"
            );
            Fact::contradicts(Some("proxy.addresses"), &text)
        })
        .collect()
}

/// A device of the link that cannot be shaped now, or that leads elsewhere. Before the first run, `longhaul host` has not
/// made the queue.
fn link_queue(settings: &Settings, derived: &Derived, runs: bool) -> Vec<Fact> {
    let Some(name) = &settings.link.device else { return Vec::new() };
    let device = link_device(name, None);
    let is_made_later = !runs && device.has_the_kernels_queue();
    let machine = Machine { link: Some(device), ..Machine::default() };
    let lost = machine.lost_queue(derived).filter(|_| !is_made_later);
    let lost = lost.map(|why| format!("{why}. `longhaul host` makes the queue when that has changed"));
    lost.into_iter().chain(machine.wide_device(derived)).map(|text| Fact::advises(Some("link.device"), text)).collect()
}

/// Parents that are listeners of this box at an address of the machine, `local`. The file does not name that address.
fn parents_on_this_box(settings: &Settings, local: &[IpAddr]) -> Vec<Fact> {
    let Cache::Parents(parents) = &settings.cache else { return Vec::new() };
    let listener = |parent: &SocketAddr| settings.listen.http_sockets().find(|(_, own)| reaches(*own, *parent, local));
    let found = parents.iter().filter_map(|parent| listener(parent).map(|(key, socket)| (parent, key, socket)));
    found
        .map(|(parent, key, socket)| {
            let text = format!(
                "{parent}, set by `cache.parent`, is this box itself: `listen.{key}` is {socket}. Name other boxes"
            );
            Fact::contradicts(Some("cache.parent"), &text)
        })
        .collect()
}

/// Private keys that every user of this machine can read.
fn readable_keys(settings: &Settings) -> Vec<Fact> {
    let pair = settings.role.identity().map(|own| ("split.key", own.key.as_path()));
    let terminated = settings.terminate.iter().map(|entry| ("tls.terminate", entry.key.as_path()));
    let readable = |path: &Path| fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o004 != 0);
    pair.into_iter()
        .chain(terminated)
        .filter(|(_, path)| readable(path))
        .map(|(key, path)| {
            let path = path.display();
            let text =
                format!("every user of this machine can read the private key {path}, set by `{key}`: chmod 640 {path}");
            Fact::advises(Some(key), text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use longhaul_config::load_text;
    use longhaul_derive::derive;

    use super::*;

    #[test]
    fn a_congestion_control_that_the_kernel_lacks_is_named_with_those_that_it_has() {
        let text = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\nproxy: { addresses: [198.51.100.12] }\n\
                    upstream: { resolvers: [192.0.2.53] }\ntransport: { congestion_control: bbr9 }\n";
        let settings = load_text(Path::new("longhaul.yaml"), text.to_owned()).unwrap().settings;
        let kernel = |available: &[&str]| {
            let available: Vec<String> = available.iter().map(|name| (*name).to_owned()).collect();
            let default = "cubic".to_owned();
            HostFacts {
                congestion_controls: CongestionControls::Known { allowed: available.clone(), available, default },
                ..HostFacts::unknown()
            }
        };
        let fact = |host: &HostFacts| congestion_control(&derive(&settings, host), host);
        let missing = fact(&kernel(&["cubic", "reno"])).unwrap();
        assert!(missing.text.contains("`bbr9`") && missing.text.contains("it has cubic, reno"), "{}", missing.text);
        assert_eq!(missing.weight, Weight::Contradicts);
        assert_eq!(fact(&kernel(&["cubic", "bbr9"])), None);
        assert_eq!(fact(&HostFacts::unknown()), None);
    }

    #[test]
    fn a_program_for_notices_that_cannot_be_started_is_named_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("notice");
        let text = format!(
            "link: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
             upstream: {{ resolvers: [192.0.2.53] }}\nnotify: {{ command: {} }}\n",
            program.display()
        );
        let settings = load_text(Path::new("longhaul.yaml"), text).unwrap().settings;
        let said = || notice_program(&settings).map(|fact| fact.text).unwrap_or_default();
        assert!(said().contains("No such file"), "{}", said());
        fs::write(&program, "#!/bin/sh\n").unwrap();
        assert!(said().contains("is not executable: chmod +x"), "{}", said());
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(notice_program(&settings), None);
    }
}
