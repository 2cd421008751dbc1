//! The report of `longhaul host --watch` on the packet rules, for `longhaul status`.
//!
//! A run has no right to read packet rules (`CAP_NET_ADMIN`). So a small service of its own reads them, and writes a report
//! that everybody may read.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The folder with a folder for each interface to clients. Only root makes folders in /run.
const HOST_REPORTS: &str = "/run/longhaul-host-watch";
/// The name of a report.
const REPORT: &str = "report.json";
/// The age in seconds beyond which a report says nothing.
const FRESH_S: u64 = 20;
/// The longest report that is read, in bytes.
const MAX_BYTES: u64 = 1 << 16;

/// The state of the packet rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostReport {
    /// The time of the report, in seconds since 1970.
    pub at: u64,
    /// The configuration file of the rules.
    pub file: PathBuf,
    /// The interface to the clients.
    pub clients: String,
    /// Their faults.
    pub faults: Vec<HostFault>,
    /// Several links, the preferred one first. Empty with one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<LinkState>,
}

/// The state of one of several links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkState {
    /// Its name.
    pub name: String,
    /// Its interface.
    pub device: String,
    /// Its use: `preferred`, `always`, `bulk` or `backup`.
    pub used: String,
    /// True if it works.
    pub alive: bool,
    /// The time of the last change, or of the beginning of the watch, in seconds since 1970.
    pub changed_at: u64,
    /// The number of its deaths since the beginning of the watch.
    pub deaths: u32,
    /// The round trip of the last probe, in milliseconds.
    pub rtt_ms: Option<u64>,
    /// Its address. None: the interface has none.
    pub address: Option<String>,
    /// The bytes that came in and went out at the interface.
    pub down_bytes: u64,
    /// See `down_bytes`.
    pub up_bytes: u64,
    /// True if each byte costs.
    #[serde(default)]
    pub metered: bool,
    /// The time for which a standby was used because no other link worked, in seconds, since the beginning of the watch.
    #[serde(default)]
    pub stood_in_s: u64,
    /// The bytes that came in and went out at the interface in this time.
    #[serde(default)]
    pub stood_in_down_bytes: u64,
    /// See `stood_in_down_bytes`.
    #[serde(default)]
    pub stood_in_up_bytes: u64,
    /// The connections with the ground over it that are of Multipath TCP.
    #[serde(default)]
    pub multipath: u32,
    /// Those of plain TCP, which end with the link.
    #[serde(default)]
    pub plain: u32,
    /// The reason why connections do not outlive a link, in words. None: they do, or the file does not want it.
    #[serde(default)]
    pub hindered: Option<String>,
}

/// A fault of the packet rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostFault {
    /// The rules are not loaded any more.
    Gone {
        /// The command that loads them.
        cure: String,
    },
    /// Packets were led to listeners, and none arrived.
    Dropped {
        /// The packets since the last one that arrived.
        packets: u64,
        /// The ports of the listeners, with the protocol: `53 (UDP)`.
        ports: String,
        /// The chain that drops them, if it is known.
        by: Option<String>,
        /// The commands that let them in.
        cure: String,
    },
    /// The machine does not forward what has no listener.
    NotForwarding {
        /// The command that switches it on.
        cure: String,
    },
    /// Clients have IPv6, and `listen` does not.
    Ipv6Passes {
        /// The change of the file.
        cure: String,
    },
    /// The device of the link has no queue of Longhaul.
    Unshaped {
        /// The device, and the reason.
        why: String,
        /// The command that makes one.
        cure: String,
    },
    /// A foreign chain takes the packets before the rules see them.
    Redirected {
        /// The ports.
        ports: String,
        /// The chain.
        by: String,
        /// The command that removes its rule.
        cure: String,
    },
}

impl HostFault {
    /// Returns false for a fault with which clients are served as before.
    pub(crate) fn hinders_clients(&self) -> bool {
        !matches!(self, Self::Ipv6Passes { .. } | Self::Unshaped { .. })
    }
}

impl HostReport {
    /// Returns the default path of the report on the rules for the interface `clients`.
    pub fn path(clients: &str) -> PathBuf {
        Path::new(HOST_REPORTS).join(clients).join(REPORT)
    }

    /// Returns the present faults of all rules for the configuration `file`, with the interface to the clients.
    pub(crate) fn faults(file: &Path, now: u64) -> Vec<(String, HostFault)> {
        faults_below(Path::new(HOST_REPORTS), file, now)
    }

    /// Returns the present state of the links of the configuration `file`. Empty with one link, or without a watch.
    pub fn links(file: &Path, now: u64) -> Vec<LinkState> {
        let reports = reports_below(Path::new(HOST_REPORTS), file, now);
        reports.into_iter().find(|report| !report.links.is_empty()).map(|report| report.links).unwrap_or_default()
    }
}

fn faults_below(folder: &Path, file: &Path, now: u64) -> Vec<(String, HostFault)> {
    let reports = reports_below(folder, file, now).into_iter();
    reports.flat_map(|one| one.faults.into_iter().map(move |fault| (one.clients.clone(), fault))).collect()
}

/// Returns the fresh reports on the rules of this file, by the interfaces to the clients.
fn reports_below(folder: &Path, file: &Path, now: u64) -> Vec<HostReport> {
    let same = |other: &Path| other == file || fs::canonicalize(other).is_ok_and(|path| Some(path) == real(file));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let reports = entries.filter_map(|entry| {
        let path = entry.path().join(REPORT);
        let is_small =
            fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_BYTES);
        let text = is_small.then(|| fs::read_to_string(&path).ok())??;
        serde_json::from_str::<HostReport>(&text).ok()
    });
    let mut fresh: Vec<HostReport> =
        reports.filter(|report| now.saturating_sub(report.at) <= FRESH_S && same(&report.file)).collect();
    fresh.sort_by(|one, other| one.clients.cmp(&other.clients));
    fresh
}

fn real(file: &Path) -> Option<PathBuf> {
    fs::canonicalize(file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fresh_report_of_the_same_file_counts() {
        let folder = tempfile::tempdir().unwrap();
        let gone = || HostFault::Gone { cure: "again".to_owned() };
        let report = |clients: &str, at, file: &str| {
            let report = HostReport {
                at,
                file: file.into(),
                clients: clients.to_owned(),
                faults: vec![gone()],
                links: Vec::new(),
            };
            fs::create_dir_all(folder.path().join(clients)).unwrap();
            fs::write(folder.path().join(clients).join(REPORT), serde_json::to_string(&report).unwrap()).unwrap();
        };
        report("lan0", 100, "/etc/longhaul/longhaul.yaml");
        report("lan1", 100, "/etc/other.yaml");
        fs::create_dir(folder.path().join("broken")).unwrap();
        fs::write(folder.path().join("broken").join(REPORT), "{").unwrap();
        let at = |now| faults_below(folder.path(), Path::new("/etc/longhaul/longhaul.yaml"), now);
        assert_eq!(at(110), [("lan0".to_owned(), gone())]);
        assert_eq!(at(130), []);
        assert_eq!(faults_below(Path::new("/nonexistent"), Path::new("/etc/other.yaml"), 100), []);
    }
}
