//! Files that the user of the service cannot read. `longhaul check` by root reads them, and the service then does not start.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use longhaul_config::{Loaded, Settings};
use rustix::process::geteuid;

/// The user and group of `longhaul.service`.
const SERVICE: &str = "longhaul";

/// A user of this machine, with its groups.
#[derive(Debug, PartialEq, Eq)]
struct User {
    uid: u32,
    gids: Vec<u32>,
}

impl User {
    /// Returns the user `name` of these tables (passwd(5), group(5)).
    fn of(name: &str, passwd: &str, group: &str) -> Option<Self> {
        let of_user = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let (uid, gid) = of_user.into_iter().find_map(|fields| match fields.as_slice() {
            [user, _, uid, gid, ..] if *user == name => Some((uid.parse().ok()?, gid.parse().ok()?)),
            _ => None,
        })?;
        let more = group.lines().filter_map(|line| match line.split(':').collect::<Vec<_>>().as_slice() {
            [_, _, gid, members] if members.split(',').any(|member| member == name) => gid.parse().ok(),
            _ => None,
        });
        Some(Self { uid, gids: std::iter::once(gid).chain(more).collect() })
    }

    /// Returns true if the permissions `mode` of a file of `owner` and `group` give the user `wanted`, as in `0o4`.
    fn has(&self, wanted: u32, mode: u32, owner: u32, group: u32) -> bool {
        let granted = match () {
            () if self.uid == 0 => return true,
            () if self.uid == owner => mode >> 6,
            () if self.gids.contains(&group) => mode >> 3,
            () => mode,
        };
        granted & wanted == wanted
    }

    /// Returns the first of the file and the folders above it that keeps the user from reading the file.
    fn kept_out_by<'p>(&self, file: &'p Path) -> Option<&'p Path> {
        let may = |path: &Path, wanted| {
            fs::metadata(path).is_ok_and(|found| self.has(wanted, found.mode(), found.uid(), found.gid()))
        };
        let folders: Vec<&Path> = file.ancestors().skip(1).collect();
        folders.into_iter().rev().find(|folder| !may(folder, 0o1)).or_else(|| (!may(file, 0o4)).then_some(file))
    }
}

/// Returns advice for each file of the configuration that the user of the service cannot read, with the key that names the
/// file. None if this is not root, who alone sees all files, or if the machine has no such user.
pub(super) fn unreadable(loaded: &Loaded) -> Vec<(Option<&'static str>, String)> {
    let table = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let user = User::of(SERVICE, &table("/etc/passwd"), &table("/etc/group"));
    let Some(user) = user.filter(|_| geteuid().is_root()) else { return Vec::new() };
    let found = loaded.read.keys().filter_map(|file| Some((file, user.kept_out_by(file)?)));
    found
        .map(|(file, by)| {
            let cure = if by == file {
                format!("chgrp {SERVICE} {0} && chmod g+r {0}", file.display())
            } else {
                format!("chgrp {SERVICE} {0} && chmod g+x {0}", by.display())
            };
            let text = format!("the user {SERVICE} of the service cannot read {}: {cure}", file.display());
            (key_of(&loaded.settings, file), text)
        })
        .collect()
}

/// Returns the key that names the file.
fn key_of(settings: &Settings, file: &Path) -> Option<&'static str> {
    let is = |path: &Path| path == file;
    let pair = settings.role.identity();
    match () {
        () if pair.is_some_and(|own| is(&own.key)) => Some("split.key"),
        () if pair.is_some_and(|own| is(&own.cert)) => Some("split.cert"),
        () if pair.is_some_and(|own| is(&own.ca)) => Some("split.ca"),
        () if settings.terminate.iter().any(|entry| is(&entry.cert) || is(&entry.key)) => Some("tls.terminate"),
        () if settings.dns.domains.iter().any(|path| is(path)) => Some("dns.domains"),
        () if settings.dns.except_files.iter().any(|path| is(path)) => Some("dns.except"),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_user_has_the_groups_of_both_tables() {
        let passwd = "root:x:0:0::/root:/bin/sh\nlonghaul:x:999:998::/:/bin/false\n";
        let group = "ssl-cert:x:110:www-data,longhaul\nlonghaul:x:998:\nother:x:7:longhauler\n";
        assert_eq!(User::of("longhaul", passwd, group), Some(User { uid: 999, gids: vec![998, 110] }));
        assert_eq!(User::of("nobody", passwd, group), None);
    }

    #[test]
    fn the_first_class_that_fits_decides_as_in_the_kernel() {
        let user = User { uid: 999, gids: vec![998] };
        for (mode, owner, group, reads) in [
            (0o600, 999, 0, true),
            (0o077, 999, 998, false),
            (0o640, 0, 998, true),
            (0o604, 0, 998, false),
            (0o640, 0, 0, false),
            (0o644, 0, 0, true),
        ] {
            assert_eq!(user.has(0o4, mode, owner, group), reads, "{mode:o} {owner} {group}");
        }
    }

    #[test]
    fn a_folder_that_is_closed_keeps_a_readable_file_out_of_reach() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("keys");
        let file = inner.join("me.key");
        fs::create_dir(&inner).unwrap();
        fs::write(&file, "").unwrap();
        let stranger = User { uid: 4_000_000, gids: vec![4_000_000] };
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        set(folder.path(), 0o755);
        set(&inner, 0o755);
        set(&file, 0o640);
        assert_eq!(stranger.kept_out_by(&file), Some(file.as_path()));
        set(&file, 0o644);
        assert_eq!(stranger.kept_out_by(&file), None);
        set(&inner, 0o700);
        assert_eq!(stranger.kept_out_by(&file), Some(inner.as_path()));
    }
}
