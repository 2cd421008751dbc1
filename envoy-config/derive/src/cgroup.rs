//! The limits of the control group that this process is in, and of the groups above it.
//!
//! A container sees the processors and the memory of its whole machine. Its own limits are files of its control group
//! (cgroups(7)): `cpu.max` and `memory.max` in version 2, `cpu.cfs_quota_us` and `memory.limit_in_bytes` in version 1. The
//! smallest one of the group and of every group above it applies.

use std::fs;
use std::path::{Path, PathBuf};

use longhaul_config::Bytes;
use procfs::process::{MountInfo, MountInfos, Process};
use procfs::{ProcessCGroup, ProcessCGroups};

/// Version 1 reports no limit as a number of this size: the largest page-aligned 64-bit number.
const V1_UNLIMITED: u64 = 1 << 62;

/// The limits of a control group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// The processor time per time, in thousandths of a processor: 500 is half a processor. None: no limit.
    pub(crate) cpu_thousandths: Option<u32>,
    /// The memory of all processes in the group, with their socket buffers and page cache. None: no limit.
    pub(crate) memory: Option<Bytes>,
}

impl CgroupLimits {
    /// Reads the limits of this process. There are none if `/proc` or the groups cannot be read.
    pub(super) fn of_this_process() -> Self {
        let read = || {
            let this = Process::myself()?;
            Ok::<_, procfs::ProcError>((this.cgroups()?, this.mountinfo()?))
        };
        read().map(|(groups, mounts)| Self::of(&groups, &mounts)).unwrap_or_default()
    }

    fn of(groups: &ProcessCGroups, mounts: &MountInfos) -> Self {
        let smallest = |controller: &str, v1: &dyn Fn(&Path) -> Option<u64>, v2: &dyn Fn(&Path) -> Option<u64>| {
            groups
                .0
                .iter()
                .filter_map(|group| {
                    let version_2 = group.hierarchy == 0;
                    let holds = version_2 || group.controllers.iter().any(|held| held == controller);
                    let mount = mounts.0.iter().find(|mount| is_of(mount, version_2, controller)).filter(|_| holds)?;
                    let read: &dyn Fn(&Path) -> Option<u64> = if version_2 { v2 } else { v1 };
                    with_those_above(mount, group).iter().filter_map(|folder| read(folder)).min()
                })
                .min()
        };
        let cpu = smallest("cpu", &v1_cpu, &v2_cpu);
        Self {
            cpu_thousandths: cpu.map(|thousandths| u32::try_from(thousandths).unwrap_or(u32::MAX)),
            memory: smallest("memory", &v1_memory, &v2_memory).map(Bytes),
        }
    }
}

fn is_of(mount: &MountInfo, version_2: bool, controller: &str) -> bool {
    if version_2 {
        mount.fs_type == "cgroup2"
    } else {
        mount.fs_type == "cgroup" && mount.super_options.contains_key(controller)
    }
}

/// Returns the folder of a group and the folders of the groups above it, as far as they are mounted.
fn with_those_above(mount: &MountInfo, group: &ProcessCGroup) -> Vec<PathBuf> {
    let top = &mount.mount_point;
    // A mount may show a part of the tree alone. A group outside of it has the limits of the mount's root.
    let below = Path::new(&group.pathname).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    let folder = top.join(below);
    folder.ancestors().take_while(|folder| folder.starts_with(top)).map(Path::to_owned).collect()
}

fn v2_cpu(folder: &Path) -> Option<u64> {
    let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
    let mut words = text.split_whitespace();
    thousandths(words.next()?.parse().ok()?, words.next()?.parse().ok()?)
}

fn v1_cpu(folder: &Path) -> Option<u64> {
    // The quota is -1 if there is none.
    thousandths(number(&folder.join("cpu.cfs_quota_us"))?, number(&folder.join("cpu.cfs_period_us"))?)
}

fn thousandths(quota: u64, period: u64) -> Option<u64> {
    quota.checked_mul(1000)?.checked_div(period).map(|thousandths| thousandths.max(1))
}

fn v2_memory(folder: &Path) -> Option<u64> {
    number(&folder.join("memory.max"))
}

fn v1_memory(folder: &Path) -> Option<u64> {
    number(&folder.join("memory.limit_in_bytes")).filter(|limit| *limit < V1_UNLIMITED)
}

fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use procfs::FromBufRead;

    use super::*;

    /// Returns the limits of a process whose `/proc` files have these lines. Files of groups are below `top`, which
    /// stands for `TOP` in the lines.
    fn limits(top: &Path, cgroup: &str, mountinfo: &str, files: &[(&str, &str)]) -> CgroupLimits {
        for (file, text) in files {
            let path = top.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mounts = mountinfo.replace("TOP", top.to_str().unwrap());
        CgroupLimits::of(
            &ProcessCGroups::from_buf_read(cgroup.as_bytes()).unwrap(),
            &MountInfos::from_buf_read(mounts.as_bytes()).unwrap(),
        )
    }

    const V2: &str = "29 23 0:26 / TOP rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "30 25 0:27 / TOP/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
                      31 25 0:28 / TOP/memory rw,relatime - cgroup cgroup rw,memory\n\
                      32 25 0:29 / TOP/unified rw,relatime - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_smallest_limit_of_a_group_and_of_those_above_it_applies() {
        let top = tempfile::tempdir().unwrap();
        let files = [
            ("pod/box/cpu.max", "150000 100000\n"),
            ("pod/box/memory.max", "max\n"),
            ("pod/cpu.max", "max 100000\n"),
            ("pod/memory.max", "1073741824\n"),
            ("memory.max", "2147483648\n"),
            ("other/cpu.max", "10000 100000\n"),
        ];
        let found = limits(top.path(), "0::/pod/box\n", V2, &files);
        assert_eq!(found, CgroupLimits { cpu_thousandths: Some(1500), memory: Some(Bytes(1 << 30)) });
    }

    #[test]
    fn no_limit_is_none_in_both_versions() {
        let top = tempfile::tempdir().unwrap();
        let files = [
            ("box/cpu.max", "max 100000\n"),
            ("box/memory.max", "max\n"),
            ("cpu/cpu.cfs_quota_us", "-1\n"),
            ("cpu/cpu.cfs_period_us", "100000\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        assert_eq!(limits(top.path(), "0::/box\n", V2, &files), CgroupLimits::default());
        let v1 = "4:memory:/\n1:cpu,cpuacct:/\n0::/\n";
        assert_eq!(limits(top.path(), v1, V1, &files), CgroupLimits::default());
        assert_eq!(limits(top.path(), "0::/gone\n", V2, &files), CgroupLimits::default());
    }

    #[test]
    fn version_1_has_a_hierarchy_for_each_controller() {
        let top = tempfile::tempdir().unwrap();
        let files = [
            ("cpu/a/b/cpu.cfs_quota_us", "10000\n"),
            ("cpu/a/b/cpu.cfs_period_us", "100000\n"),
            ("memory/m/memory.limit_in_bytes", "536870912\n"),
            // The group of the cpu hierarchy is no group of the memory hierarchy.
            ("memory/a/b/memory.limit_in_bytes", "4096\n"),
        ];
        let found = limits(top.path(), "4:memory:/m\n1:cpu,cpuacct:/a/b\n0::/\n", V1, &files);
        assert_eq!(found, CgroupLimits { cpu_thousandths: Some(100), memory: Some(Bytes(512 << 20)) });
    }

    #[test]
    fn a_container_that_sees_its_own_part_of_the_tree_finds_its_group_at_the_mount() {
        let top = tempfile::tempdir().unwrap();
        let mount = "29 23 0:26 /kubepods/pod7 TOP ro,nosuid - cgroup2 cgroup2 rw\n";
        let files = [("cpu.max", "200000 100000\n"), ("memory.max", "268435456\n")];
        let expected = CgroupLimits { cpu_thousandths: Some(2000), memory: Some(Bytes(256 << 20)) };
        for path in ["/kubepods/pod7", "/../other"] {
            assert_eq!(limits(top.path(), &format!("0::{path}\n"), mount, &files), expected, "{path}");
        }
    }
}
