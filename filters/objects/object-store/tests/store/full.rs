//! A disk that is full.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use object_store::{Body, Head, Options};

use crate::common::{MIB, body, count_new, folder, get, head, key, open, put};

/// A small disk in memory, for as long as the value lives.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root mounts a small disk");
            return None;
        }
        let made = Command::new("mount").args(["-t", "tmpfs", "-o", "size=512k,mode=0700", "tmpfs"]).arg(at).status();
        if made.is_ok_and(|status| status.success()) {
            return Some(Self(at.to_owned()));
        }
        println!("skipped: no disk can be mounted here");
        None
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_refuses_the_response_and_leaves_nothing_behind() {
    let parent = folder();
    let Some(disk) = SmallDisk::mount(parent.path()) else { return };
    let options = Options { folder: disk.0.join("objects"), max_bytes: 64 * MIB, hot_bytes: 0 };
    let store = open(&options);
    put(&store, 1, &body(100_000, 1)).unwrap();
    let mut fill = store.begin(key(2), head(2)).unwrap();
    let error = (0..100).find_map(|_| fill.append(&body(10_000, 2)).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert_eq!(error.raw_os_error(), Some(28));
    assert!(fill.append(b"").is_err());
    assert!(fill.commit().is_err());
    assert_eq!(count_new(&options), 0);
    assert_eq!(store.counts().unlinked_bytes, 0);
    assert_eq!(store.counts().errors, 1);
    assert_eq!(store.begin(key(3), head(3)).unwrap_err().kind(), ErrorKind::ResourceBusy);
    assert!(get(&store, 1).is_some() && get(&store, 2).is_none());
    drop(store);
    // Another run has no memory of the failure.
    put(&open(&options), 2, &body(100_000, 2)).unwrap();
}

#[test]
fn a_full_disk_keeps_the_blocks_that_came() {
    let parent = folder();
    let Some(disk) = SmallDisk::mount(parent.path()) else { return };
    let options = Options { folder: disk.0.join("objects"), max_bytes: 64 * MIB, hot_bytes: 0 };
    let store = open(&options);
    let object = store.begin_slices(key(1), Head { length: MIB + 100_000, ..head(1) }).unwrap();
    let Body::Slices(slices) = &object.body else { panic!("no blocks") };
    let mut last = store.write_slices(key(1), slices, MIB).unwrap();
    last.append(&body(100_000, 1)).unwrap();
    let mut first = store.write_slices(key(1), slices, 0).unwrap();
    let error = (0..100).find_map(|_| first.append(&body(10_000, 2)).err()).unwrap();
    assert_eq!(error.raw_os_error(), Some(28));
    drop((first, last));
    assert_eq!((slices.check(0).unwrap(), slices.check(1).unwrap(), store.counts().errors), (false, true, 1));
    assert_eq!(store.write_slices(key(1), slices, 0).unwrap_err().kind(), ErrorKind::ResourceBusy);
    drop(store);
    let Some(again) = get(&open(&options), 1) else { panic!("it is there") };
    assert!(matches!(&again.body, Body::Slices(slices) if slices.check(1).unwrap() && !slices.check(0).unwrap()));
}

#[test]
fn a_disk_that_takes_no_writes_costs_new_responses_only() {
    let parent = folder();
    let Some(disk) = SmallDisk::mount(parent.path()) else { return };
    let options = Options { folder: disk.0.join("objects"), max_bytes: 64 * MIB, hot_bytes: 0 };
    let store = open(&options);
    let object = put(&store, 1, b"body").unwrap();
    let made = Command::new("mount").args(["-o", "remount,ro"]).arg(&disk.0).status();
    assert!(made.is_ok_and(|status| status.success()));
    assert_eq!(put(&store, 2, b"body").unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
    assert!(get(&store, 1).is_some());
    assert!(store.remove(key(1)).is_err());
    assert_eq!(store.refresh(&object, vec![], object.head.life).unwrap_err().kind(), ErrorKind::ResourceBusy);
    assert_eq!(store.counts().errors, 1);
    assert!(get(&store, 1).is_some());
}
