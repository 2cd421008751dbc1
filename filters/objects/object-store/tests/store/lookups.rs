//! Lookups, here, in a second store and after a restart.

use std::sync::Arc;

use object_store::{Body, Found, Key, MAX_MEMORY_BODY, Onlooker, Options};

use crate::common::{body, bytes, count_new, folder, get, head, key, life, open, options, path, put, url};

const SIZES: [usize; 6] = [0, 1, 4096, 20_000, 65_536, 200_000];

#[test]
fn a_response_is_found_as_it_was_stored() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    for (number, size) in (0..).zip(SIZES) {
        let stored = put(&store, number, &body(size, number)).unwrap();
        for object in [stored, get(&store, number).unwrap()] {
            assert_eq!(bytes(&object), body(size, number), "{size}");
            assert_eq!(object.head, object_store::Head { length: size as u64, ..head(number) });
            assert_eq!(object.key(), key(number));
            assert_eq!(matches!(object.body, Body::Memory(_)), size as u64 <= MAX_MEMORY_BODY);
        }
    }
    assert_eq!(count_new(&options), 0);
    assert_eq!(store.counts().unlinked_bytes, 0);
    assert!(store.counts().hot_bytes > 0);
}

#[test]
fn a_restart_finds_everything() {
    let parent = folder();
    let options = options(parent.path());
    let first = open(&options);
    for (number, size) in (0..).zip(SIZES) {
        put(&first, number, &body(size, number)).unwrap();
    }
    let before = first.counts();
    drop(first);
    let store = open(&options);
    for (number, size) in (0..).zip(SIZES) {
        assert_eq!(bytes(&get(&store, number).unwrap()), body(size, number));
    }
    let counts = store.counts();
    assert_eq!((counts.entries, counts.disk_bytes), (before.entries, before.disk_bytes));
}

#[test]
fn a_commit_is_visible_at_once_to_other_stores() {
    let parent = folder();
    let options = options(parent.path());
    let (one, two) = (open(&options), open(&options));
    for (number, size) in (0..).zip(SIZES) {
        assert!(get(&two, number).is_none());
        put(&one, number, &body(size, number)).unwrap();
        assert_eq!(bytes(&get(&two, number).unwrap()), body(size, number));
    }
}

#[test]
fn what_another_store_changed_or_removed_is_not_given_from_memory() {
    let parent = folder();
    let options = options(parent.path());
    let (one, two) = (open(&options), open(&options));
    put(&one, 1, b"first").unwrap();
    assert_eq!(bytes(&get(&two, 1).unwrap()), b"first");
    put(&one, 1, b"other").unwrap();
    assert_eq!(bytes(&get(&two, 1).unwrap()), b"other");
    assert!(one.remove(key(1)).unwrap());
    assert!(get(&two, 1).is_none());
    assert_eq!(two.counts().entries, 0);
    assert!(!two.remove(key(1)).unwrap());
}

#[test]
fn a_url_with_the_hash_of_another_is_absent() {
    let parent = folder();
    let store = open(&options(parent.path()));
    put(&store, 1, b"one").unwrap();
    assert!(matches!(store.find(key(1), &url(2)), Found::Absent));
    let without_memory = open(&Options { hot_bytes: 0, ..options(parent.path()) });
    assert!(matches!(without_memory.find(key(1), &url(2)), Found::Absent));
    assert!(get(&without_memory, 1).is_some());
    assert_eq!(without_memory.counts().hot_bytes, 0);
}

#[test]
fn a_marker_names_the_fields_of_its_url() {
    let parent = folder();
    let store = open(&options(parent.path()));
    let names = vec![b"accept-encoding".to_vec(), b"accept".to_vec()];
    let stamp = store.mark(key(1), &url(1), &names).unwrap();
    assert_eq!(store.mark(key(1), &url(1), &names).unwrap(), stamp, "it stays the same marker");
    assert!(
        matches!(store.find(key(1), &url(1)), Found::Varies(found) if found.names == names && found.stamp == stamp)
    );
    store.remove(key(1)).unwrap();
    assert_ne!(store.mark(key(1), &url(1), &names).unwrap(), stamp, "another marker has another stamp");
    let variant = Key::of_variant(key(1), 1, b"x");
    assert!(matches!(store.find(variant, &url(1)), Found::Absent));
    store.begin(variant, head(1)).unwrap().commit().unwrap();
    assert!(matches!(store.find(variant, &url(1)), Found::Object(_)));
}

#[test]
fn a_body_is_read_while_it_grows() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    let mut fill = store.begin(key(1), head(1)).unwrap();
    let reader = fill.reader();
    let mut buffer = [0; 10];
    assert_eq!(reader.read_at(0, &mut buffer).unwrap(), 0);
    fill.append(b"abc").unwrap();
    assert_eq!(reader.length(), 3);
    assert_eq!(reader.read_at(1, &mut buffer).unwrap(), 2);
    assert_eq!(&buffer[..2], b"bc");
    assert_eq!(reader.read_now(3, &mut buffer).unwrap(), Some(0));
    assert!(get(&store, 1).is_none());
    fill.append(b"def").unwrap();
    fill.commit().unwrap();
    assert_eq!(reader.read_at(0, &mut buffer).unwrap(), 6);
}

#[test]
fn a_dropped_fill_leaves_nothing_behind() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    put(&store, 1, b"old").unwrap();
    let mut fill = store.begin(key(1), head(1)).unwrap();
    fill.append(&body(100_000, 1)).unwrap();
    assert_eq!(count_new(&options), 1);
    let reader = fill.reader();
    drop(fill);
    assert_eq!(count_new(&options), 0);
    assert!(store.counts().unlinked_bytes >= 100_000);
    assert_eq!(reader.read_at(99_999, &mut [0; 10]).unwrap(), 1);
    drop(reader);
    assert_eq!(store.counts().unlinked_bytes, 0);
    assert_eq!(bytes(&get(&store, 1).unwrap()), b"old");
}

#[test]
fn a_refresh_is_written_over_the_head_or_copies_the_file() {
    let parent = folder();
    let options = options(parent.path());
    let (store, other) = (open(&options), open(&options));
    for (number, size) in (0..).zip(SIZES) {
        let object = put(&store, number, &body(size, number)).unwrap();
        let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path(&options, key(number))).unwrap());
        let before = inode();
        for long in [10, 5000] {
            let fields = vec![(b"etag".to_vec(), vec![b'e'; long])];
            let life = object_rules::Life { received_s: long as u64, ..life() };
            let new =
                store.refresh(&object, fields.clone(), life).unwrap_or_else(|error| panic!("{size} {long} {error}"));
            for object in [new, get(&store, number).unwrap(), get(&other, number).unwrap()] {
                assert_eq!((&object.head.fields, object.head.life), (&fields, life));
                assert_eq!((object.head.status, object.head.length), (200, size as u64));
                assert_eq!(bytes(&object), body(size, number));
            }
            assert_eq!(inode() == before, long == 10);
        }
    }
}

#[test]
fn a_refresh_with_fields_of_any_length_leaves_the_body_alone() {
    let parent = folder();
    let store = open(&Options { hot_bytes: 0, ..options(parent.path()) });
    for long in 0..1200 {
        let object = put(&store, 1, b"body").unwrap();
        store.refresh(&object, vec![(b"etag".to_vec(), vec![b'e'; long])], life()).unwrap();
        assert_eq!(bytes(&get(&store, 1).unwrap()), b"body", "{long}");
    }
}

#[test]
fn a_response_that_was_replaced_is_not_refreshed() {
    let parent = folder();
    let store = open(&options(parent.path()));
    let old = put(&store, 1, b"a long old body").unwrap();
    put(&store, 1, b"new").unwrap();
    let error = store.refresh(&old, vec![], life()).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert_eq!(bytes(&get(&store, 1).unwrap()), b"new");
    store.remove(key(1)).unwrap();
    assert_eq!(store.refresh(&old, vec![], life()).unwrap_err().kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn lookups_during_refreshes_give_the_right_body_or_nothing() {
    let parent = folder();
    let options = Options { hot_bytes: 0, ..options(parent.path()) };
    let store = open(&options);
    let mut object = put(&store, 1, &body(3000, 1)).unwrap();
    let reader = Arc::clone(&store);
    let reading = std::thread::spawn(move || {
        let found = (0..2000).filter_map(|_| get(&reader, 1));
        found.inspect(|object| assert_eq!(bytes(object), body(3000, 1))).count()
    });
    while !reading.is_finished() {
        let long = usize::from(object.head.fields.len() == 1) * 60;
        let fields = vec![(b"etag".to_vec(), vec![b'e'; long]); 1 + usize::from(long == 0)];
        object = store.refresh(&object, fields, life()).unwrap();
    }
    assert!(reading.join().unwrap() > 0);
}

#[test]
fn threads_may_share_a_store_and_its_results() {
    fn is_shared<T: Send + Sync + 'static>() {}
    is_shared::<object_store::Store>();
    is_shared::<object_store::Object>();
    is_shared::<object_store::Fill>();
    is_shared::<object_store::Reader>();
    is_shared::<Onlooker>();
}
