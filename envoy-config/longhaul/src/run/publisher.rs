//! Writes the report of this run into its state folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use longhaul_observe::report::RunReport;

use crate::replaced_file;

/// The last report of a run, for the threads that show it.
pub(super) type LastReport = Arc<Mutex<Option<RunReport>>>;

/// Keeps the report up to date.
#[derive(Debug)]
pub(super) struct Publisher {
    path: PathBuf,
    last: LastReport,
}

impl Publisher {
    pub(super) fn new(folder: &Path) -> Self {
        Self { path: folder.join(RunReport::FILE), last: LastReport::default() }
    }

    /// Returns the last report, as it will be at any later time.
    pub(super) fn last(&self) -> LastReport {
        Arc::clone(&self.last)
    }

    /// Writes `report` if it differs from the last one. The run continues if the file cannot be written, as on a full
    /// disk, and the next change tries again.
    pub(super) fn publish(&mut self, report: RunReport) {
        if self.last.lock().unwrap_or_else(PoisonError::into_inner).as_ref() == Some(&report) {
            return;
        }
        if let Err(error) = self.write(&report) {
            super::say(
                super::Level::Warning,
                &format!("cannot write {}: {error}; `longhaul status` shows an old state", self.path.display()),
            );
        }
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    fn write(&self, report: &RunReport) -> std::io::Result<()> {
        replaced_file::replace(&self.path, &serde_json::to_vec_pretty(report)?, 0o644)
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns the time, in seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use longhaul_config::AccessLog;
    use longhaul_observe::Endpoint;
    use longhaul_observe::measure::Noticed;
    use longhaul_observe::report::{ChildReport, DnsReport, PairReport, SetUp, Sockets, process_start};

    use longhaul_observe::why::CostReport;

    use super::*;

    fn report(pid: u32, process_start: u64) -> RunReport {
        let socket: SocketAddr = "127.0.0.1:1".parse().unwrap();
        RunReport {
            version: String::new(),
            role: String::new(),
            pid,
            draining: false,
            process_start,
            started: 0,
            file: PathBuf::from("longhaul.yaml"),
            config_sha256: String::new(),
            in_force_since: 0,
            changes: 0,
            refused: None,
            set_up: SetUp::default(),
            dns: DnsReport::default(),
            link: Noticed::default(),
            costs: CostReport::default(),
            ground: None,
            other_end: PairReport::default(),
            problems: Vec::new(),
            state_fault: None,
            cache_fault: None,
            compared: None,
            groups: Vec::new(),
            who: None,
            pages: Vec::new(),
            access_log: AccessLog::Off,
            access_log_fault: None,
            listen: Sockets {
                http: Some(socket.into()),
                split: None,
                tls: None,
                dns: None,
                admin: Endpoint::Unix("admin.sock".into()),
                dns_metrics: None,
                objects_metrics: None,
                metrics: None,
                status: None,
            },
            envoy: ChildReport::default(),
            coredns: ChildReport::default(),
            images: None,
            objects: None,
        }
    }

    #[test]
    fn a_report_is_found_as_long_as_its_process_lives_and_no_other_has_its_number() {
        let folder = tempfile::tempdir().unwrap();
        let me = std::process::id();
        let start = process_start(me).unwrap();
        let mut publisher = Publisher::new(folder.path());
        let read = || RunReport::find(None, Some(folder.path())).ok();
        assert!(read().is_none(), "nothing was written yet");
        publisher.publish(report(me, start));
        assert_eq!(read(), Some(report(me, start)));
        publisher.publish(report(me, start + 1));
        assert_eq!(read(), None, "another process with its number");
        drop(publisher);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "an orderly end leaves nothing");
    }
}
