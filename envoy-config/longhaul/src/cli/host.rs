//! `longhaul host FILE --clients IF`: packet rules, routes, kernel settings and the queue of the link on this machine.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use longhaul_config::{DeviceName, Intercept, Listen};
use longhaul_derive::{HostFacts, derive};
use longhaul_observe::report::{HostReport, true_addresses_of_service};
use longhaul_render::host::{Counted, Machine, Plan, dhcp_options};

use super::{FAILED, Outcome, fail, load_or_refuse, print};
use crate::host::{
    HostError, Keeper, LinkWatch, RECORD, Watch, apply, interfaces, kinds_of_queues, link_device, names, this_machine,
    undo, undo_command, warnings,
};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The configuration file, longhaul.yaml; not used by --undo
    #[arg(value_name = "FILE", required_unless_present = "undo")]
    file: Option<PathBuf>,
    /// The network interface to the clients, or several with commas; not used by --undo
    #[arg(long, value_name = "IF[,IF]", value_parser = interfaces_of_clients, required_unless_present = "undo")]
    clients: Option<String>,
    #[command(flatten)]
    what: What,
    /// The record of the applied steps, for --undo
    #[arg(long, value_name = "FILE", default_value = RECORD)]
    record: PathBuf,
    /// The report of --watch [default: /run/longhaul-host-watch/IF/report.json]
    #[arg(long, value_name = "FILE", requires = "watch")]
    report: Option<PathBuf>,
    /// The socket with the true addresses of names, for --watch with `dns.instant` [default: that of longhaul.service]
    #[arg(long, value_name = "SOCKET", requires = "watch")]
    true_addresses: Option<PathBuf>,
}

#[derive(clap::Args)]
#[group(multiple = false)]
#[allow(clippy::struct_excessive_bools, reason = "at most one of these options is given")]
struct What {
    /// Print the steps as a shell script (the default)
    #[arg(long)]
    print: bool,
    /// Apply the steps
    #[arg(long)]
    apply: bool,
    /// Undo the applied steps
    #[arg(long)]
    undo: bool,
    /// Watch the applied packet rules, and write what is wrong for `longhaul status`, until ended. With `links`, also keep
    /// rules, routes and endpoints for the links that work
    #[arg(long)]
    watch: bool,
}

fn interfaces_of_clients(text: &str) -> Result<String, String> {
    if !names(text).all(|name| DeviceName::parse(name).is_some()) {
        return Err("expected the name of a network interface, such as lan0, or several: lan0,lan0.20".to_owned());
    }
    let mut seen = BTreeSet::new();
    match names(text).find(|name| !seen.insert(*name)) {
        Some(twice) => Err(format!("{twice} is named twice")),
        None => Ok(text.to_owned()),
    }
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    // Neither is missing where it is needed: the command line is refused then.
    let (Some(file), Some(clients)) = (&arguments.file, &arguments.clients) else {
        return take_back(&arguments.record);
    };
    if arguments.what.undo {
        return take_back(&arguments.record);
    }
    let loaded = load_or_refuse(file)?;
    let ports = Counted::of(&loaded.settings);
    if arguments.what.watch {
        let path = arguments.report.clone();
        let path = path.unwrap_or_else(|| HostReport::path(clients));
        let file = loaded.settings.file.clone();
        let sockets = arguments.true_addresses.clone().map_or_else(true_addresses_of_service, |socket| vec![socket]);
        Keeper::start(&loaded.settings, sockets);
        let links = match LinkWatch::start(&loaded.settings) {
            Ok(links) => links,
            Err(error) => return fail(&format!("cannot watch the links: {error}")),
        };
        let outcome = Watch::of(file, clients.clone(), &loaded.settings).forever(&path, &links);
        links.stop();
        return outcome.or_else(|error| fail(&format!("cannot watch the packet rules: {error}")));
    }
    let derived = derive(&loaded.settings, &HostFacts::unknown());
    let link = loaded.settings.link.device.as_ref().map(|device| link_device(device, kinds_of_queues()));
    let machine = Machine { link, ..this_machine(clients, &loaded.settings.proxy.siblings) };
    warn_of_ipv6(&loaded.settings.listen, &machine);
    if let Some(warning) = machine.wide_device(&derived) {
        eprintln!("warning: {warning}");
    }
    let plan = Plan::of(&loaded.settings, &derived, &machine);
    if !arguments.what.apply {
        warn_without_routes(&machine);
        return print(&(plan.script(&file.display().to_string(), clients) + &dhcp_options(&loaded.settings)));
    }
    // The rules refuse everybody who does not come from this interface: with a wrong name, every client.
    if let Some(present) = interfaces()
        && let Some(missing) = names(clients).find(|name| !present.iter().any(|one| one == name))
    {
        return fail(&format!("there is no network interface `{missing}`; this machine has {}", present.join(", ")));
    }
    warn_without_routes(&machine);
    for warning in warnings(clients, &ports) {
        eprintln!("warning: {warning}");
    }
    carry_out(&plan, &arguments.record)
}

/// Says where IPv6 traffic of clients bypasses this box, or does not get through it. A network without IPv6 needs no
/// warning.
fn warn_of_ipv6(listen: &Listen, machine: &Machine) {
    let with_ipv6: Vec<&str> =
        machine.clients.iter().filter(|one| one.has_ipv6_network()).map(|one| one.name.as_str()).collect();
    if listen.intercept == Intercept::None || with_ipv6.is_empty() {
        return;
    }
    if listen.ipv6_bypasses() {
        eprintln!(
            "warning: {} has IPv6, and IPv6 traffic of clients bypasses this box: `listen.http` has no IPv6 \
             address. Browsers prefer IPv6 where they have it",
            with_ipv6.join(", ")
        );
    } else if !machine.forwards_ipv6() {
        eprintln!(
            "warning: this machine does not forward IPv6: other ports than the listeners' do not get through. Forwarding \
             also ignores router advertisements, so it is left to you: sysctl -w net.ipv6.conf.all.forwarding=1"
        );
    }
}

fn warn_without_routes(machine: &Machine) {
    for interface in machine.clients.iter().filter(|interface| interface.routes.is_empty()) {
        eprintln!(
            "warning: no routes over {}, so no initial window is set; check that the interface is up",
            interface.name
        );
    }
}

fn carry_out(plan: &Plan, record: &Path) -> Outcome {
    match apply(plan, record) {
        Ok(failed) => {
            say_what_is_missing(plan, &failed);
            let steps = plan.steps.len() - failed.len();
            print(&format!("applied {steps} steps; undo them with: {}\n", undo_command(record)))
        }
        Err(not_done) if not_done.left.is_empty() => fail(&format!("{}; nothing was changed", not_done.why)),
        Err(not_done) => {
            for error in &not_done.left {
                eprintln!("warning: not undone: {error}");
            }
            fail(&format!("{}; the steps above remain applied, try again: {}", not_done.why, undo_command(record)))
        }
    }
}

/// Says what this machine does not have, and the commands for one that has it.
fn say_what_is_missing(plan: &Plan, failed: &[HostError]) {
    for error in failed {
        eprintln!("warning: not done: {error}");
    }
    for part in &plan.left_out {
        eprintln!("warning: {}", part.why);
        for command in &part.commands {
            eprintln!("  not run: {}", command.join(" "));
        }
    }
}

fn take_back(record: &Path) -> Outcome {
    match undo(record) {
        Ok(errors) if errors.is_empty() => print("taken back\n"),
        Ok(errors) => {
            for error in errors {
                eprintln!("warning: {error}");
            }
            eprintln!(
                "undone except for the steps above; try again: {}. If those changes are gone, remove {}",
                undo_command(record),
                record.display()
            );
            Err(FAILED)
        }
        Err(error) => fail(&error.to_string()),
    }
}
