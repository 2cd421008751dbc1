//! The folder of the cache: one that belongs to the system, or that does not last.

use std::path::Path;

use crate::contradictions::Places;
use crate::diagnostic::Problem;
use crate::read::Draft;
use crate::settings::{Cache, Role};

/// Folders of the system, in which the cache would lie among foreign files.
const OF_THE_SYSTEM: &[&str] = &[
    "/",
    "/bin",
    "/boot",
    "/etc",
    "/home",
    "/lib",
    "/opt",
    "/root",
    "/sbin",
    "/srv",
    "/usr",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
];

/// Folders that do not keep files, and why.
const THAT_DO_NOT_LAST: &[(&str, &str)] = &[
    ("/tmp", "a service has a temporary folder of its own (PrivateTmp) and loses it when it stops"),
    ("/var/tmp", "a service has a temporary folder of its own (PrivateTmp) and loses it when it stops"),
    ("/run", "it is in memory and empty after a reboot"),
    ("/dev", "it is in memory and empty after a reboot"),
    ("/proc", "the kernel keeps no files there"),
    ("/sys", "the kernel keeps no files there"),
];

pub(super) fn check(places: &Places<'_>, draft: &Draft) -> Option<Problem> {
    let Some(Cache::Disk { dir, .. }) = &draft.cache else { return None };
    // A folder beside the configuration file is where that file is, and a trial may be in a temporary folder.
    places.text(&["cache", "dir"]).filter(|written| written.starts_with('/'))?;
    // A ground keeps its objects in a folder of its own below the one in the file.
    let dir = if matches!(draft.role, Some(Role::Ground(_))) { dir.parent()? } else { dir };
    let (fault, label) = fault(dir)?;
    let problem = Problem::warning(format!("`cache.dir` names {fault}"), places.value(&["cache", "dir"]), label);
    Some(problem.help("write a folder of its own, such as `/var/cache/longhaul`"))
}

fn fault(dir: &Path) -> Option<(&'static str, &'static str)> {
    let lost = THAT_DO_NOT_LAST.iter().find(|(folder, _)| dir.starts_with(folder));
    let system = OF_THE_SYSTEM.iter().any(|folder| dir == Path::new(folder));
    match (lost, system) {
        (Some((_, why)), _) => Some(("a folder that does not last", why)),
        (None, true) => Some(("a folder of the system", "the cache would lie among its files, and count them")),
        (None, false) => None,
    }
}
