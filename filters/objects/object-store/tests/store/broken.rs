//! Files that somebody or a power loss has damaged.

use std::os::unix::fs::FileExt;

use object_store::{Found, Onlooker, Options, Seen, Store, Verified, decode};

use crate::common::{MIB, body, bytes, folder, get, key, open, options, path, put, url, writable};

fn without_memory(parent: &std::path::Path) -> (Options, std::sync::Arc<Store>) {
    let options = Options { hot_bytes: 0, ..options(parent) };
    let store = open(&options);
    (options, store)
}

#[test]
fn any_changed_byte_of_the_head_makes_the_response_absent() {
    let parent = folder();
    let (options, store) = without_memory(parent.path());
    put(&store, 1, b"body").unwrap();
    let file = path(&options, key(1));
    let whole = std::fs::read(&file).unwrap();
    let body_at = decode(&whole).unwrap().body_at;
    let used = (0..usize::try_from(body_at).unwrap()).rev().find(|at| whole[*at] != 0).unwrap() + 1;
    for at in 0..used {
        writable(&file).write_all_at(&[whole[at] ^ 0x41], at as u64).unwrap();
        assert!(get(&store, 1).is_none(), "{at}");
        if file.exists() {
            writable(&file).write_all_at(&[whole[at]], at as u64).unwrap();
        } else {
            std::fs::write(&file, &whole).unwrap();
        }
    }
    assert_eq!(bytes(&get(&store, 1).unwrap()), b"body");
}

#[test]
fn a_file_that_is_cut_anywhere_is_absent_and_removed() {
    let parent = folder();
    let (options, store) = without_memory(parent.path());
    let reader = Onlooker::new(options.folder.clone(), 0, MIB);
    put(&store, 1, &body(300, 1)).unwrap();
    let file = path(&options, key(1));
    let whole = std::fs::read(&file).unwrap();
    for length in 0..whole.len() {
        std::fs::write(&file, &whole[..length]).unwrap();
        assert!(matches!(reader.find(key(1), &url(1)), Seen::Found(Found::Absent)), "{length}");
        assert!(get(&store, 1).is_none(), "{length}");
        assert!(!file.exists(), "{length}");
    }
    std::fs::write(&file, &whole).unwrap();
    assert_eq!(bytes(&get(&store, 1).unwrap()), body(300, 1));
}

#[test]
fn a_damaged_file_is_replaced_by_the_next_response() {
    let parent = folder();
    let (options, store) = without_memory(parent.path());
    put(&store, 1, b"body").unwrap();
    writable(&path(&options, key(1))).write_all_at(b"LHO9", 0).unwrap();
    assert!(get(&store, 1).is_none());
    put(&store, 1, b"new").unwrap();
    assert_eq!(bytes(&get(&store, 1).unwrap()), b"new");
}

#[test]
fn verify_removes_what_is_torn_and_counts() {
    let parent = folder();
    let (options, store) = without_memory(parent.path());
    for number in 0..5 {
        put(&store, number, &body(100_000, number)).unwrap();
    }
    assert_eq!(store.verify().unwrap(), Verified { good: 5, ..Verified::default() });
    writable(&path(&options, key(1))).set_len(50_000).unwrap();
    writable(&path(&options, key(2))).write_all_at(b"?", 40).unwrap();
    writable(&path(&options, key(3))).set_len(0).unwrap();
    assert_eq!(store.verify().unwrap(), Verified { good: 2, removed: 3, ..Verified::default() });
    assert_eq!(store.counts().entries, 2);
    assert!(get(&store, 0).is_some() && get(&store, 4).is_some());
}

#[test]
fn a_folder_a_link_or_a_pipe_in_place_of_a_file_is_absent() {
    let parent = folder();
    let (options, store) = without_memory(parent.path());
    let secret = parent.path().join("secret");
    for number in 0..3 {
        put(&store, number, b"body").unwrap();
        let file = path(&options, key(number));
        if number == 0 {
            std::fs::copy(&file, &secret).unwrap();
        }
        std::fs::remove_file(&file).unwrap();
        match number {
            0 => std::os::unix::fs::symlink(&secret, &file).unwrap(),
            1 => std::fs::create_dir(&file).unwrap(),
            _ => rustix::fs::mknodat(
                rustix::fs::CWD,
                &file,
                rustix::fs::FileType::Fifo,
                rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
                0,
            )
            .unwrap(),
        }
        assert!(get(&store, number).is_none(), "{number}");
    }
    put(&store, 0, b"new").unwrap();
    assert_eq!(bytes(&get(&store, 0).unwrap()), b"new");
    assert!(std::fs::read(&secret).unwrap().ends_with(b"body"));
    assert!(matches!(store.find(key(0), &url(1)), object_store::Found::Absent));
}
