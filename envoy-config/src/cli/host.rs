//! `longhaul host FILE --clients IF`: packet rules, routes and kernel settings of this machine.

use std::path::{Path, PathBuf};

use super::{FAILED, Outcome, fail, load_or_refuse, print};
use crate::derive::{HostFacts, derive};
use crate::host::{Machine, Plan, RECORD, apply, interfaces, plan, script, undo, undo_command};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// The configuration file, longhaul.yaml; not used by --undo
    #[arg(value_name = "FILE", required_unless_present = "undo")]
    file: Option<PathBuf>,
    /// The interface towards the clients; not used by --undo
    #[arg(long, value_name = "IF", value_parser = interface, required_unless_present = "undo")]
    clients: Option<String>,
    #[command(flatten)]
    what: What,
    /// Where --apply writes what --undo takes back
    #[arg(long, value_name = "FILE", default_value = RECORD)]
    record: PathBuf,
}

#[derive(clap::Args)]
#[group(multiple = false)]
struct What {
    /// Print a shell script that does it (the default)
    #[arg(long)]
    print: bool,
    /// Do it
    #[arg(long)]
    apply: bool,
    /// Take back what --apply did
    #[arg(long)]
    undo: bool,
}

/// The kernel's `IFNAMSIZ`, and nothing that a shell or nft would read as more than a name.
fn interface(text: &str) -> Result<String, String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"._-@".contains(&b);
    let is_name = (1..=15).contains(&text.len()) && text.bytes().all(plain);
    if is_name { Ok(text.to_owned()) } else { Err("expected the name of a network interface, such as lan0".to_owned()) }
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
    let derived = derive(&loaded.settings, &HostFacts::unknown());
    let machine = Machine::this(clients);
    let plan = plan(&loaded.settings, &derived, &machine);
    if !arguments.what.apply {
        warn_without_routes(&machine);
        return print(&script(&plan, &file.display().to_string(), clients));
    }
    // The rules refuse everybody who does not come from this interface: with a wrong name, every client.
    if let Some(names) = interfaces().filter(|names| !names.contains(clients)) {
        return fail(&format!("there is no network interface `{clients}`; this machine has {}", names.join(", ")));
    }
    warn_without_routes(&machine);
    carry_out(&plan, &arguments.record)
}

fn warn_without_routes(machine: &Machine) {
    if machine.routes.is_empty() {
        eprintln!("warning: no routes over {}: no initial window is set; is it up?", machine.interface);
    }
}

fn carry_out(plan: &Plan, record: &Path) -> Outcome {
    match apply(plan, record) {
        Ok(()) => print(&format!("applied {} steps; undo them with: {}\n", plan.steps.len(), undo_command(record))),
        Err(not_done) if not_done.left.is_empty() => fail(&format!("{}; nothing is changed", not_done.why)),
        Err(not_done) => {
            for error in &not_done.left {
                eprintln!("warning: not taken back: {error}");
            }
            fail(&format!("{}; what is above is still changed, try again: {}", not_done.why, undo_command(record)))
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
                "taken back, but for what is above; try again: {}. If that is gone already, remove {}",
                undo_command(record),
                record.display()
            );
            Err(FAILED)
        }
        Err(error) => fail(&error.to_string()),
    }
}
