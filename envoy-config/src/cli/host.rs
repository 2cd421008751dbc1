//! `longhaul host FILE --clients IF`: packet rules, routes and kernel settings of this machine.

use std::path::PathBuf;

use super::{ConfigFile, FAILED, Outcome, fail, load_or_refuse, print};
use crate::derive::{HostFacts, derive};
use crate::host::{Machine, Plan, apply, plan, script, undo};

/// Nothing that is applied outlives a reboot, and neither does this.
const RECORD: &str = "/run/longhaul/host.json";

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    config: ConfigFile,
    /// The interface towards the clients
    #[arg(long, value_name = "IF", value_parser = interface)]
    clients: String,
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
    if arguments.what.undo {
        return take_back(arguments);
    }
    let loaded = load_or_refuse(&arguments.config.file)?;
    let derived = derive(&loaded.settings, &HostFacts::unknown());
    let machine = Machine::this(&arguments.clients);
    let plan = plan(&loaded.settings, &derived, &machine);
    if machine.routes.is_empty() {
        eprintln!("warning: no routes over {}: no initial window is set; is it up?", arguments.clients);
    }
    if arguments.what.apply { carry_out(arguments, &plan) } else { print_script(arguments, &plan) }
}

fn print_script(arguments: &Arguments, plan: &Plan) -> Outcome {
    print(&script(plan, &arguments.config.file.display().to_string(), &arguments.clients))
}

fn carry_out(arguments: &Arguments, plan: &Plan) -> Outcome {
    match apply(plan, &arguments.record) {
        Ok(()) => print(&format!("applied {} steps; `--undo` takes them back\n", plan.steps.len())),
        Err(error) => fail(&format!("{error}; nothing is changed")),
    }
}

fn take_back(arguments: &Arguments) -> Outcome {
    match undo(&arguments.record) {
        Ok(errors) if errors.is_empty() => print("taken back\n"),
        Ok(errors) => {
            for error in errors {
                eprintln!("warning: {error}");
            }
            eprintln!("taken back, but for what is above");
            Err(FAILED)
        }
        Err(error) => fail(&error.to_string()),
    }
}
