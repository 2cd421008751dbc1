//! `longhaul pair`: the certificates and files of a pair.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::Subcommand;
use longhaul_config::load;
use longhaul_config::{HostName, HostPort};

use super::{ConfigFile, FAILED, Outcome, fail, load_or_refuse, print};
use crate::pair::{self, AUTHORITY_KEY, Added, Folder, GROUND, Line, LinkText, Peers, Site, Verdict};

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make the authority, both certificates and both files; with an existing authority, add one more remote
    Init(Init),
    /// Replace the certificate and key of one end
    Renew(Renew),
    /// Try the handshake with the other end, and show which certificate is refused and why
    Check(ConfigFile),
}

#[derive(clap::Args)]
struct Init {
    /// The remote's name in its certificate and in the ground's file, for example ship
    #[arg(value_parser = name)]
    name: HostName,
    /// The address of the ground as the remote dials it, for example ground.example.org:8443
    #[arg(value_name = "GROUND:PORT", value_parser = host_port)]
    ground: HostPort,
    #[command(flatten)]
    folder: FolderArgument,
    /// The link's round-trip time, for example 600ms
    #[arg(long, value_parser = quantity)]
    rtt: Option<String>,
    /// The link's rate towards the clients, for example 20mbit
    #[arg(long, value_parser = quantity)]
    down: Option<String>,
    /// The link's rate from the clients, for example 5mbit
    #[arg(long, value_parser = quantity)]
    up: Option<String>,
    /// The remote's address at which its clients meet it
    #[arg(long, value_name = "ADDRESS")]
    clients: Option<IpAddr>,
    /// A resolver for the names of origins
    #[arg(long, value_name = "ADDRESS")]
    resolver: Option<IpAddr>,
}

#[derive(clap::Args)]
struct Renew {
    /// The remote's name, or `ground`
    name: String,
    #[command(flatten)]
    folder: FolderArgument,
}

#[derive(clap::Args)]
struct FolderArgument {
    /// The folder of the pair; keep it, because it holds the authority's key
    #[arg(long, value_name = "DIR", default_value = "pair")]
    dir: PathBuf,
}

fn name(text: &str) -> Result<HostName, String> {
    HostName::parse(text).map_err(|error| format!("expected a name such as ship or ship.example.org; this is {error}"))
}

fn host_port(text: &str) -> Result<HostPort, String> {
    HostPort::parse(text).ok_or_else(|| "expected HOST:PORT such as ground.example.org:8443".to_owned())
}

/// Only characters that `link:` knows: the value stands in a file as it is typed.
fn quantity(text: &str) -> Result<String, String> {
    let known = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
    if known { Ok(text.to_owned()) } else { Err("expected a number with a unit, such as 600ms or 20mbit".to_owned()) }
}

pub(super) fn command(arguments: &Arguments) -> Outcome {
    match &arguments.action {
        Action::Init(arguments) => init(arguments),
        Action::Renew(arguments) => renew(arguments),
        Action::Check(file) => check(&file.file),
    }
}

fn check(file: &Path) -> Outcome {
    let loaded = load_or_refuse(file)?;
    let lines = match pair::check(&loaded.settings, None) {
        Ok(lines) => lines,
        Err(error) => return fail(&error.to_string()),
    };
    print(&lines.iter().map(text_of).collect::<String>())?;
    if lines.iter().any(|line| line.verdict == Verdict::Problem) { Err(FAILED) } else { Ok(()) }
}

fn text_of(line: &Line) -> String {
    match line.verdict {
        Verdict::Good => format!("ok       {}\n", line.text),
        Verdict::Problem => format!("problem  {}\n", line.text),
        Verdict::Note => format!("         {}\n", line.text),
    }
}

fn init(arguments: &Init) -> Outcome {
    let folder = Folder::new(arguments.folder.dir.clone());
    let link = LinkText { rtt: arguments.rtt.clone(), down: arguments.down.clone(), up: arguments.up.clone() };
    let site = Site { link, clients: arguments.clients, resolver: arguments.resolver };
    match folder.init(&arguments.name, &arguments.ground, &site, SystemTime::now()) {
        Ok(added) => print(&next_steps(&folder, arguments, &added)),
        Err(error) => fail(&error.to_string()),
    }
}

/// Lists the files to complete, the commands to type, and the file to keep.
fn next_steps(folder: &Folder, arguments: &Init, added: &Added) -> String {
    let remote = arguments.name.as_str();
    let ground_host = arguments.ground.host.to_string();
    let dir = arguments.folder.dir.display();
    let made = if added.new_authority { "the authority, the ground and the remote" } else { "the remote" };
    let mut text = format!("{dir}: made {made} `{remote}`\n");
    let incomplete: Vec<PathBuf> =
        [GROUND, remote].iter().map(|end| folder.config_of(end)).filter(|file| load(file).is_err()).collect();
    if !incomplete.is_empty() {
        text.push_str("\nfill in the empty values first; these commands list them:\n");
        for file in incomplete {
            let _ = writeln!(text, "  longhaul check {}", file.display());
        }
    }
    text.push_str("\ncopy and start, where the package is installed:\n");
    match added.peers {
        Peers::New => {
            let _ = writeln!(text, "{}", copy(folder, GROUND, &Folder::files_of(GROUND), &ground_host));
            let _ = writeln!(text, "  ssh root@{ground_host} systemctl enable --now longhaul");
        }
        // A running ground applies a changed file by itself.
        Peers::Extended => {
            let [config, ..] = Folder::files_of(GROUND);
            let _ = writeln!(text, "{}", copy(folder, GROUND, &[config], &ground_host));
        }
        Peers::ByHand => {
            let file = folder.config_of(GROUND);
            let _ = writeln!(text, "  add `{remote}` to `split.peer` in {}, and copy it to the ground", file.display());
        }
    }
    let _ = writeln!(text, "{}", copy(folder, remote, &Folder::files_of(remote), remote));
    let _ = writeln!(text, "  ssh root@{remote} systemctl enable --now longhaul longhaul-host@lan0");
    let _ = writeln!(
        text,
        "\n`{remote}` stands for the remote's address, and lan0 for its interface towards the clients.\n\
         Keep {dir}/{AUTHORITY_KEY} safe and secret. It admits remotes, and `longhaul pair renew` needs it."
    );
    text
}

/// The service's group may read the files, and nobody else may read the key.
fn copy(folder: &Folder, end: &str, files: &[String], host: &str) -> String {
    let (from, files) = (folder.of(end), files.join(" "));
    format!(
        "  tar -C {} --owner=root --group=longhaul -cf - {files} | ssh root@{host} tar -xpf - -C /etc/longhaul",
        from.display()
    )
}

fn renew(arguments: &Renew) -> Outcome {
    let folder = Folder::new(arguments.folder.dir.clone());
    let end = &arguments.name;
    let renewed = folder.renew(end, SystemTime::now()).and_then(|()| folder.ground());
    let host = match renewed {
        Err(error) => return fail(&error.to_string()),
        Ok(Some(ground)) if end == GROUND => ground.host.to_string(),
        Ok(_) => end.clone(),
    };
    let [_, certificate, key, _] = Folder::files_of(end);
    let copy = copy(&folder, end, &[certificate, key], &host);
    print(&format!("renewed the certificate and key of `{end}`; copy them, and new connections use them:\n{copy}\n"))
}
