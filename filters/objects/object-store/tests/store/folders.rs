//! The folder: who may enter it, and what happens when somebody else changes it.

use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use object_store::{Onlooker, Options, Seen, Store};

use crate::common::{body, bytes, count_new, folder, get, head, key, open, options, path, put, writable};

#[test]
fn the_folder_and_its_files_are_for_their_owner_only() {
    let parent = folder();
    let options = options(parent.path());
    put(&open(&options), 1, b"body").unwrap();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let file = path(&options, key(1));
    assert_eq!(mode(&options.folder), 0o700);
    assert_eq!(mode(&options.folder.join("new")), 0o700);
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn a_folder_that_others_may_enter_is_refused_with_the_reason() {
    let parent = folder();
    let options = options(parent.path());
    std::fs::create_dir(&options.folder).unwrap();
    std::fs::set_permissions(&options.folder, PermissionsExt::from_mode(0o750)).unwrap();
    let error = Store::open(&options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("mode 0750"), "{error}");
}

#[test]
fn a_folder_of_another_user_is_refused_with_the_reason() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root gives folders away");
        return;
    }
    let parent = folder();
    let options = options(parent.path());
    open(&options);
    std::os::unix::fs::chown(&options.folder, Some(12_345), None).unwrap();
    let error = Store::open(&options).unwrap_err();
    assert!(error.to_string().contains("belongs to user 12345"), "{error}");
}

#[test]
fn a_missing_parent_a_file_and_a_link_are_refused_with_the_reason() {
    let parent = folder();
    let missing = Options { folder: parent.path().join("a/b"), ..options(parent.path()) };
    assert_eq!(Store::open(&missing).unwrap_err().kind(), ErrorKind::NotFound);
    let real = options(parent.path());
    open(&real);
    let link = Options { folder: parent.path().join("link"), ..real.clone() };
    symlink(&real.folder, &link.folder).unwrap();
    let error = Store::open(&link).unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    assert!(matches!(Onlooker::new(link.folder, 0, 0).find(key(1), b""), Seen::Unreadable));
    let file = Options { folder: parent.path().join("file"), ..real };
    std::fs::write(&file.folder, b"").unwrap();
    assert!(Store::open(&file).is_err());
}

#[test]
fn a_swapped_folder_is_not_followed() {
    let parent = folder();
    let options = Options { hot_bytes: 0, ..options(parent.path()) };
    let store = open(&options);
    put(&store, 1, b"body").unwrap();
    let sub = path(&options, key(1)).parent().unwrap().to_owned();
    let elsewhere = parent.path().join("elsewhere");
    std::fs::rename(&sub, &elsewhere).unwrap();
    symlink(&elsewhere, &sub).unwrap();
    assert!(get(&store, 1).is_none());
    assert!(put(&store, 1, b"new").is_err());
    assert_eq!(count_new(&options), 0);
    let left = std::fs::read(elsewhere.join(key(1).to_string())).unwrap();
    assert!(left.ends_with(b"body"));
    assert!(!store.remove(key(1)).unwrap());
    assert!(elsewhere.join(key(1).to_string()).exists());
    assert_eq!(store.counts().entries, 0);
}

#[test]
fn a_root_that_is_swapped_leads_nowhere_else() {
    let parent = folder();
    let options = Options { hot_bytes: 0, ..options(parent.path()) };
    let store = open(&options);
    let old = parent.path().join("old");
    std::fs::rename(&options.folder, &old).unwrap();
    std::fs::create_dir(&options.folder).unwrap();
    put(&store, 1, b"body").unwrap();
    assert!(get(&store, 1).is_some());
    assert_eq!(std::fs::read_dir(&options.folder).unwrap().count(), 0);
}

#[test]
fn an_emptied_folder_is_filled_again() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    put(&store, 1, b"body").unwrap();
    for entry in std::fs::read_dir(&options.folder).unwrap() {
        std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
    assert!(get(&store, 1).is_none());
    assert_eq!(store.counts().entries, 0);
    put(&store, 1, b"new").unwrap();
    assert_eq!(bytes(&get(&store, 1).unwrap()), b"new");
}

#[test]
fn a_removed_root_costs_the_cache_only() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    put(&store, 1, b"body").unwrap();
    std::fs::remove_dir_all(&options.folder).unwrap();
    assert!(get(&store, 1).is_none());
    assert_eq!(put(&store, 2, b"body").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(put(&store, 2, b"body").unwrap_err().kind(), ErrorKind::ResourceBusy);
    assert_eq!(store.counts().errors, 1);
}

#[test]
fn only_old_leftovers_that_nobody_has_open_are_removed() {
    let parent = folder();
    let options = options(parent.path());
    let one = open(&options);
    let mut live = one.begin(key(1), head(1)).unwrap();
    live.append(&body(1000, 1)).unwrap();
    let new = options.folder.join("new");
    let hours = |count: u64| SystemTime::now() - Duration::from_hours(count);
    let name = std::fs::read_dir(&new).unwrap().next().unwrap().unwrap().path();
    writable(&name).set_modified(hours(2)).unwrap();
    std::fs::write(new.join("1-old"), b"x").unwrap();
    writable(&new.join("1-old")).set_modified(hours(2)).unwrap();
    std::fs::write(new.join("1-young"), b"x").unwrap();
    let two = open(&options);
    assert!(!new.join("1-old").exists());
    assert!(new.join("1-young").exists());
    live.append(b"more").unwrap();
    live.commit().unwrap();
    assert_eq!(get(&two, 1).unwrap().head.length, 1004);
}

#[test]
fn a_clock_that_steps_back_changes_nothing() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    put(&store, 1, b"body").unwrap();
    for future in [true, false] {
        let day = Duration::from_hours(24);
        let time = if future { SystemTime::now() + day } else { SystemTime::UNIX_EPOCH };
        writable(&path(&options, key(1))).set_modified(time).unwrap();
        assert_eq!(bytes(&get(&store, 1).unwrap()), b"body");
        assert_eq!(bytes(&get(&open(&options), 1).unwrap()), b"body");
    }
}
