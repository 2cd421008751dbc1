//! A process that only reads: what it sees, and that its uses count.

use std::time::{Duration, Instant, SystemTime};

use object_store::{Found, Key, MAX_MEMORY_BODY, Onlooker, Options, Seen};

use crate::common::{MIB, body, bytes, folder, get, head, key, life, open, options, path, put, url, writable};

const MOST: u64 = 4 * MAX_MEMORY_BODY;

fn onlooker(options: &Options, hot_bytes: u64) -> Onlooker {
    Onlooker::new(options.folder.clone(), hot_bytes, MOST)
}

/// Returns the body that an onlooker sees. None if the store has none.
fn look(onlooker: &Onlooker, number: u64) -> Option<Vec<u8>> {
    match onlooker.find(key(number), &url(number)) {
        Seen::Found(Found::Object(object)) => Some(bytes(&object)),
        Seen::Found(Found::Absent) => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_onlooker_sees_each_change_at_once() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    for hot_bytes in [0, MIB] {
        let onlooker = onlooker(&options, hot_bytes);
        for size in [0, 1, 20_000, 200_000] {
            store.remove(key(1)).unwrap();
            assert_eq!(look(&onlooker, 1), None);
            let stored = put(&store, 1, &body(size, 1)).unwrap();
            for _ in 0..2 {
                assert_eq!(look(&onlooker, 1), Some(body(size, 1)));
            }
            store.refresh(&stored, vec![(b"x".to_vec(), b"new".to_vec())], life()).unwrap();
            let Seen::Found(Found::Object(object)) = onlooker.find(key(1), &url(1)) else { panic!("{size}") };
            assert_eq!(object.head.fields, [(b"x".to_vec(), b"new".to_vec())]);
            put(&store, 1, &body(size, 2)).unwrap();
            assert_eq!(look(&onlooker, 1), Some(body(size, 2)));
        }
        assert_eq!(onlooker.hot_bytes() > 0, hot_bytes > 0);
    }
}

#[test]
fn an_onlooker_finds_variants_and_tells_urls_apart() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    let names = vec![b"accept".to_vec()];
    let stamp = store.mark(key(1), &url(1), &names).unwrap();
    let onlooker = onlooker(&options, MIB);
    for _ in 0..2 {
        let Seen::Found(Found::Varies(marker)) = onlooker.find(key(1), &url(1)) else { panic!() };
        assert_eq!((marker.names, marker.stamp), (names.clone(), stamp));
    }
    let variant = Key::of_variant(key(1), stamp, b"x");
    assert!(matches!(onlooker.find(variant, &url(1)), Seen::Found(Found::Absent)));
    store.begin(variant, head(1)).unwrap().commit().unwrap();
    assert!(matches!(onlooker.find(variant, &url(1)), Seen::Found(Found::Object(_))));
    assert!(matches!(onlooker.find(variant, &url(2)), Seen::Found(Found::Absent)));
}

#[test]
fn a_large_body_is_left_to_the_program() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    let onlooker = onlooker(&options, MIB);
    let most = usize::try_from(MOST).unwrap();
    put(&store, 1, &body(most, 1)).unwrap();
    put(&store, 2, &body(most + 1, 1)).unwrap();
    assert_eq!(look(&onlooker, 1), Some(body(most, 1)));
    assert!(matches!(onlooker.find(key(2), &url(2)), Seen::Large));
}

#[test]
fn bytes_that_are_not_in_memory_are_not_waited_for() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    put(&store, 1, &body(200_000, 1)).unwrap();
    let file = writable(&path(&options, key(1)));
    file.sync_all().unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    match onlooker(&options, MIB).find(key(1), &url(1)) {
        // A file system in memory has nothing to wait for.
        Seen::Cold => {}
        Seen::Found(Found::Object(object)) => assert_eq!(bytes(&object), body(200_000, 1)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_folder_may_come_later() {
    let parent = folder();
    let options = options(parent.path());
    let onlooker = onlooker(&options, MIB);
    assert!(matches!(onlooker.find(key(1), &url(1)), Seen::Unreadable));
    put(&open(&options), 1, b"late").unwrap();
    let start = Instant::now();
    while matches!(onlooker.find(key(1), &url(1)), Seen::Unreadable) {
        assert!(start.elapsed() < Duration::from_secs(30), "the folder is not opened again");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(look(&onlooker, 1), Some(b"late".to_vec()));
}

/// Ten responses fill the store. The next ones take the places of those that nobody used.
#[test]
fn a_response_that_an_onlooker_uses_keeps_its_place() {
    let parent = folder();
    let options = Options { max_bytes: 10 * 104_000, hot_bytes: 0, ..options(parent.path()) };
    let store = open(&options);
    for number in 0..9 {
        put(&store, number, &body(100_000, number)).unwrap();
        let long_ago = SystemTime::now() - Duration::from_hours(1);
        let times = std::fs::FileTimes::new().set_modified(long_ago).set_accessed(long_ago);
        writable(&path(&options, key(number))).set_times(times).unwrap();
    }
    let onlooker = onlooker(&options, 0);
    assert_eq!(look(&onlooker, 3), Some(body(100_000, 3)));
    for number in 20..27 {
        put(&store, number, &body(100_000, number)).unwrap();
    }
    let left: Vec<u64> = (0..9).filter(|number| get(&store, *number).is_some()).collect();
    assert!(left.contains(&3) && left.len() < 6, "{left:?}");
}
