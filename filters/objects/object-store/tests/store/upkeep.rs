//! Walks over all files.

use crate::common::{folder, get, key, life, open, options, put, url};

#[test]
fn a_list_shows_every_response_and_marker() {
    let parent = folder();
    let store = open(&options(parent.path()));
    for number in 0..20 {
        put(&store, number, b"body").unwrap();
    }
    store.mark(key(20), &url(20), &[b"accept".to_vec()]).unwrap();
    let mut listed = Vec::new();
    store
        .list(|entry| {
            assert!(entry.disk_bytes >= 512);
            assert!(entry.head.status == 0 || (entry.head.life == life() && entry.head.length == 4));
            listed.push((entry.key, entry.head.url.clone()));
        })
        .unwrap();
    listed.sort();
    let mut expected: Vec<_> = (0..21).map(|number| (key(number), url(number))).collect();
    expected.sort();
    assert_eq!(listed, expected);
}

#[test]
fn a_purge_removes_the_meant_urls_only() {
    let parent = folder();
    let store = open(&options(parent.path()));
    for number in 0..20 {
        put(&store, number, b"body").unwrap();
    }
    assert_eq!(store.purge(|url| url.ends_with(b"7")).unwrap(), 2);
    for number in 0..20 {
        assert_eq!(get(&store, number).is_none(), number % 10 == 7, "{number}");
    }
    assert_eq!(store.counts().entries, 18);
    assert_eq!(store.purge(|_| true).unwrap(), 18);
    let counts = store.counts();
    assert_eq!((counts.entries, counts.disk_bytes, counts.hot_bytes, counts.unlinked_bytes), (0, 0, 0, 0));
}
