//! The command line program. It opens two TUN devices and emulates the link of a profile between them until a signal
//! arrives.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use longhaul_link::control::{self, ControlSocket};
use longhaul_link::end::{End, EndError, EndSettings, Subnet};
use longhaul_link::engine::{Engine, Settings, Woken, block_signals};
use longhaul_link::profile::{self, BUILT_IN};
use longhaul_link::random::Seed;
use longhaul_link::scheduling::Scheduling;
use longhaul_link::statistics::Statistics;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;

/// Emulates a link between two network namespaces.
///
/// Creates a TUN device at each end, and prints a line that begins with `ready` when both are up. Carries packets until
/// SIGINT or SIGTERM, then writes its counters as JSON and exits 0. SIGUSR1 writes the JSON and goes on. Direction `up`
/// is from end A (the clients) to end B (the wired side). Needs root.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
struct Arguments {
    #[command(subcommand)]
    act: Option<Act>,
    /// Name of a built-in profile (see `longhaul-link profiles`) or path of a TOML file.
    #[arg(long, required = true)]
    profile: Option<String>,
    /// Changes one value of the profile, such as `down.rate_bps=35000`. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// Seed of all random decisions; by default a new one, which the ready line prints.
    #[arg(long)]
    seed: Option<u64>,
    /// Namespace of end A, by name or path; by default this process's own.
    #[arg(long, value_name = "NAME")]
    a_netns: Option<String>,
    /// Namespace of end B.
    #[arg(long, value_name = "NAME")]
    b_netns: Option<String>,
    /// Device at end A.
    #[arg(long, value_name = "DEVICE", default_value = "tun0")]
    a_dev: String,
    /// Device at end B.
    #[arg(long, value_name = "DEVICE", default_value = "tun1")]
    b_dev: String,
    /// Address of end A with its prefix length, such as 10.1.0.1/30. May be repeated.
    #[arg(long, value_name = "ADDRESS/BITS")]
    a_addr: Vec<Subnet>,
    /// Address of end B. May be repeated.
    #[arg(long, value_name = "ADDRESS/BITS")]
    b_addr: Vec<Subnet>,
    /// UNIX socket for the commands stats, reset and outage.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// File for the JSON instead of standard output.
    #[arg(long, value_name = "PATH")]
    stats: Option<PathBuf>,
    /// Also counts the bytes sent in each slice of this many milliseconds.
    #[arg(long, value_name = "MILLISECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeline_ms: Option<u64>,
    /// Captures the packets at end A to a pcap file.
    #[arg(long, value_name = "FILE")]
    a_pcap: Option<PathBuf>,
    /// Captures the packets at end B to a pcap file.
    #[arg(long, value_name = "FILE")]
    b_pcap: Option<PathBuf>,
    /// Stops, as after SIGTERM, when the thread that started this process ends.
    #[arg(long)]
    exit_with_parent: bool,
}

#[derive(Debug, Subcommand)]
enum Act {
    /// Lists the built-in profiles.
    Profiles,
    /// Sends a command to a running emulator and prints the reply: stats, reset, outage 5s [hold|drop] [up|down|both].
    Control {
        /// The emulator's socket.
        path: PathBuf,
        /// The command.
        #[arg(required = true)]
        command: Vec<String>,
    },
}

/// Exit status if a command line cannot be carried out.
const REFUSED: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let outcome = match &arguments.act {
        Some(Act::Profiles) => list_profiles(),
        Some(Act::Control { path, command }) => send_command(path, &command.join(" ")),
        None => run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("longhaul-link: {}", failure.message);
            ExitCode::from(failure.status)
        }
    }
}

#[derive(Debug)]
struct Failure {
    message: String,
    status: u8,
}

impl Failure {
    fn refused(message: impl Display) -> Self {
        Self { message: format!("{message}"), status: REFUSED }
    }

    fn broken(message: impl Display) -> Self {
        Self { message: format!("{message}"), status: 1 }
    }
}

impl From<EndError> for Failure {
    fn from(error: EndError) -> Self {
        Self::refused(error)
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    let name = arguments.profile.as_deref().unwrap_or_default();
    let profile = profile::load(name, &arguments.overrides).map_err(Failure::refused)?;
    let seed = arguments.seed.map_or_else(Seed::fresh, Seed);
    if arguments.exit_with_parent {
        set_pdeathsig(Signal::SIGTERM).map_err(Failure::broken)?;
    }
    let signals = block_signals().map_err(Failure::broken)?;
    let end = |namespace: &Option<String>, device: &str, addresses: &[Subnet]| {
        End::open(&EndSettings {
            namespace: namespace.clone(),
            device: device.to_owned(),
            addresses: addresses.to_vec(),
            mtu_bytes: profile.mtu_bytes,
        })
    };
    let a = end(&arguments.a_netns, &arguments.a_dev, &arguments.a_addr)?;
    let b = end(&arguments.b_netns, &arguments.b_dev, &arguments.b_addr)?;
    let control =
        match &arguments.control {
            Some(path) => Some(ControlSocket::listen(path).map_err(|error| {
                Failure::refused(format!("cannot listen for commands on {}: {error}", path.display()))
            })?),
            None => None,
        };
    let settings = Settings {
        profile_name: name.to_owned(),
        profile,
        seed,
        control,
        capture_files: (arguments.a_pcap.clone(), arguments.b_pcap.clone()),
        timeline_slice: arguments.timeline_ms.map(Duration::from_millis),
    };
    let mut engine = Engine::new(settings, (a, b), &signals)
        .map_err(|error| Failure::refused(format!("cannot set up the link: {error}")))?;
    let scheduling = match engine.scheduling() {
        Scheduling::RealTime => "real_time",
        Scheduling::Ordinary => "ordinary",
    };
    let (a, b, seed) = (&arguments.a_dev, &arguments.b_dev, seed.0);
    say(&format!("ready profile={name} seed={seed} a={a} b={b} scheduling={scheduling}"))?;
    let woken = carry(&mut engine, arguments.stats.as_deref())?;
    let missing = engine.finish().map_err(|error| Failure::broken(format!("a capture is not complete: {error}")))?;
    if missing > 0 {
        eprintln!("longhaul-link: the disk was too slow: {missing} packets are missing from the captures");
    }
    woken.map_err(|error| Failure::broken(format!("the link broke: {error} (was a device deleted or taken down?)")))
}

/// Carries packets until the link stops or fails, and writes the statistics on every request.
fn carry(engine: &mut Engine, statistics_file: Option<&Path>) -> Result<io::Result<()>, Failure> {
    loop {
        let woken = engine.run();
        write_statistics(&engine.statistics(), statistics_file)?;
        match woken {
            Ok(Woken::Report) => {}
            Ok(Woken::Stop) => return Ok(Ok(())),
            Err(error) => return Ok(Err(error)),
        }
    }
}

fn write_statistics(statistics: &Statistics, path: Option<&Path>) -> Result<(), Failure> {
    let text = serde_json::to_string(statistics).map_err(Failure::broken)?;
    match path {
        None => say(&text),
        Some(path) => std::fs::write(path, text + "\n")
            .map_err(|error| Failure::broken(format!("cannot write the statistics to {}: {error}", path.display()))),
    }
}

/// Prints a line and flushes it, so that the reading process sees it at once.
fn say(line: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(Failure::broken)
}

fn list_profiles() -> Result<(), Failure> {
    for (name, text) in BUILT_IN {
        let profile = profile::parse(name, text, &[]).map_err(Failure::broken)?;
        say(&format!("{name:16} {}", profile.title))?;
    }
    Ok(())
}

fn send_command(path: &Path, command: &str) -> Result<(), Failure> {
    let answer = control::send(path, command)
        .map_err(|error| Failure::refused(format!("no emulator listens on {}: {error}", path.display())))?;
    say(answer.trim_end())
}
