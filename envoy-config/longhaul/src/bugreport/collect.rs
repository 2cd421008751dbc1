//! Collects the texts of a report.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use longhaul_config::{Host, Role, Settings};
use longhaul_observe::Endpoint;
use longhaul_observe::report::RunReport;
use longhaul_observe::status::Status;

use crate::pair;

/// The most of one text, in bytes.
const MOST_BYTES: u64 = 512 << 10;
/// The lines of the journal.
const JOURNAL_LINES: &str = "500";
/// Files deeper than this are not rendered by Longhaul.
const DEEPEST: usize = 4;
/// The kernel settings on which the speed of a link depends.
const SYSCTLS: &[&str] = &[
    "net.core.default_qdisc",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_wmem",
    "net.ipv6.conf.all.forwarding",
    "net.netfilter.nf_conntrack_count",
    "net.netfilter.nf_conntrack_max",
];

/// The input from the command line.
pub(crate) struct Given<'a> {
    /// The configuration file.
    pub file: &'a Path,
    /// Its settings. None if it is refused.
    pub settings: Option<&'a Settings>,
    /// The live run of the file.
    pub run: Option<RunReport>,
    /// The output of `longhaul --version`.
    pub version: &'a str,
    /// The output of `longhaul check --all`, or the refusal.
    pub check: String,
}

/// A text of the report, before it is masked.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) text: String,
}

fn part(name: impl Into<String>, text: impl Into<String>) -> Part {
    Part { name: name.into(), text: text.into() }
}

/// Returns all texts. One that is not to be had says why.
pub(super) fn parts(given: &Given<'_>) -> Vec<Part> {
    let mut parts = vec![
        part("version.txt", format!("{}\n\n{}", given.version, system())),
        part("longhaul.yaml", text_of(given.file)),
        part("check.txt", given.check.clone()),
        part("sysctl.txt", sysctls()),
        part("rules.txt", output("nft", &["list", "table", "inet", "longhaul"])),
        part("journal.txt", journal()),
    ];
    let Some(run) = &given.run else {
        parts.push(part("status.json", "no run of this file was found\n"));
        return parts;
    };
    let status = serde_json::to_string_pretty(&Status::gather(run.clone()));
    parts.push(part("status.json", status.unwrap_or_else(|error| error.to_string())));
    parts.push(part("metrics-envoy.txt", page(&run.listen.admin, "/stats/prometheus")));
    if let Some(metrics) = &run.listen.dns_metrics {
        parts.push(part("metrics-coredns.txt", page(metrics, "/metrics")));
    }
    if let Some(rendered) = rendered(run) {
        collect(&rendered, &rendered, 0, &mut parts);
    }
    parts
}

/// Returns the names that are words alone, such as a host name: nothing in a text shows that they are names.
pub(super) fn known_names(given: &Given<'_>) -> Vec<String> {
    let mut names: Vec<String> = fs::read_to_string("/proc/sys/kernel/hostname").into_iter().collect();
    if let Some(settings) = given.settings {
        names.extend(settings.id.clone());
        names.extend(settings.role.grounds().iter().filter_map(|ground| match &ground.host {
            Host::Name(name) => Some(name.to_string()),
            Host::Address(_) => None,
        }));
        if let Role::Ground(ground) = &settings.role {
            names.extend(ground.remotes.iter().map(ToString::to_string));
        }
        names.extend(settings.role.identity().map(pair::names).into_iter().flatten());
    }
    names.into_iter().map(|name| name.trim().to_owned()).collect()
}

/// Returns the text whose addresses are the operator's. All others are clients' or origins'.
pub(super) fn configured(given: &Given<'_>) -> String {
    text_of(given.file)
}

/// The machine: its system, its kernel, its size.
fn system() -> String {
    let release = text_of(Path::new("/etc/os-release"));
    let name = release.lines().find(|line| line.starts_with("PRETTY_NAME=")).unwrap_or_default();
    let kernel = text_of(Path::new("/proc/sys/kernel/osrelease"));
    let processors = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let memory = text_of(Path::new("/proc/meminfo"));
    let memory = memory.lines().next().unwrap_or_default();
    format!("{name}\nkernel {}\nprocessors {processors}\n{memory}\n", kernel.trim())
}

fn sysctls() -> String {
    let line = |name: &&str| {
        let value = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/")));
        let value = value
            .map_or_else(|error| error.to_string(), |value| value.split_whitespace().collect::<Vec<_>>().join(" "));
        format!("{name} = {value}\n")
    };
    SYSCTLS.iter().map(line).collect()
}

fn journal() -> String {
    let units = ["-u", "longhaul", "-u", "longhaul-host@*"];
    output("journalctl", &[&["--no-pager", "-o", "short-iso", "-n", JOURNAL_LINES], units.as_slice()].concat())
}

/// Returns the output of a program, or the reason why there is none.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").stdin(Stdio::null()).output();
    match output {
        Err(error) => format!("{program}: {error}\n"),
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => format!("{program}: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

fn page(endpoint: &Endpoint, path: &str) -> String {
    endpoint.page(path).unwrap_or_else(|error| format!("not to be had: {error:?}\n"))
}

/// Returns the folder of the rendered files. It stands beside the folder of Envoy's admin socket.
fn rendered(run: &RunReport) -> Option<PathBuf> {
    let Endpoint::Unix(admin) = &run.listen.admin else { return None };
    Some(admin.parent()?.parent()?.join("rendered"))
}

/// Adds the text files of a folder. Links are not followed: they lead to keys and caches.
fn collect(folder: &Path, root: &Path, depth: usize, parts: &mut Vec<Part>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        let Ok(kind) = fs::symlink_metadata(&path) else { continue };
        if kind.is_dir() && depth < DEEPEST {
            collect(&path, root, depth + 1, parts);
        } else if kind.is_file() && is_text(&path) {
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            parts.push(part(format!("rendered/{name}"), text_of(&path)));
        }
    }
}

/// Returns true for the files that Longhaul renders. Lists of names are not among them.
fn is_text(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    path.file_name().is_some_and(|name| name == "Corefile") || matches!(extension, Some("yaml" | "json" | "conf"))
}

/// Returns the beginning of a file, or the reason why it cannot be read.
fn text_of(path: &Path) -> String {
    let read = fs::File::open(path).and_then(|file| {
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes).map(|_| bytes)
    });
    read.map_or_else(
        |error| format!("{}: {error}\n", path.display()),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}
