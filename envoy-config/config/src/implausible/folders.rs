//! The folder of the cache: one that belongs to the system, or that does not last.

use std::path::Path;

use crate::contradictions::Places;
use crate::diagnostic::Problem;
use crate::settings::{Cache, Draft, Role};

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

pub(super) fn check(places: &Places<'_>, draft: &Draft, file: &Path) -> Option<Problem> {
    let Some(Cache::Disk { dir, .. }) = &draft.cache else { return None };
    if !places.written("cache", "dir") {
        return None;
    }
    // A ground keeps its objects in a folder of its own below the one in the file.
    let dir = if matches!(draft.role, Some(Role::Ground(_))) { dir.parent()? } else { dir };
    let (fault, label) = fault(dir, file)?;
    let problem = Problem::warning(format!("`cache.dir` names {fault}"), places.value(&["cache", "dir"]), label);
    Some(problem.help("write a folder of its own, such as `/var/cache/longhaul`"))
}

/// Returns the fault of the folder, and why. A file that lies in a temporary folder itself is a trial, where its cache may be, too.
fn fault(dir: &Path, file: &Path) -> Option<(&'static str, &'static str)> {
    let is_lost = |folder: &str| dir.starts_with(folder) && !file.starts_with(folder);
    let lost = THAT_DO_NOT_LAST.iter().find(|(folder, _)| is_lost(folder));
    let system = OF_THE_SYSTEM.iter().any(|folder| dir == Path::new(folder));
    match (lost, system) {
        (Some((_, why)), _) => Some(("a folder that does not last", why)),
        (None, true) => Some(("a folder of the system", "the cache would lie among its files, and count them")),
        (None, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_folder_is_a_fault_unless_the_file_is_a_trial_in_it() {
        let fault = |dir, file| super::fault(Path::new(dir), Path::new(file)).map(|(fault, _)| fault);
        let service = "/etc/longhaul/longhaul.yaml";
        for (dir, file, expected) in [
            ("/tmp/cache", service, Some("a folder that does not last")),
            ("/var/tmp", service, Some("a folder that does not last")),
            ("/tmp/trial/cache", "/tmp/trial/longhaul.yaml", None),
            ("/tmpfiles", service, None),
            ("/", service, Some("a folder of the system")),
            ("/var/cache/longhaul", service, None),
        ] {
            assert_eq!(fault(dir, file), expected, "{dir} of {file}");
        }
    }
}
