//! Stores in temporary folders.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use object_rules::Life;
use object_store::{Body, Found, Head, Key, Kind, Object, Options, Store};
use tempfile::TempDir;

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

pub(crate) fn options(parent: &Path) -> Options {
    Options { folder: parent.join("objects"), max_bytes: 64 * MIB, hot_bytes: MIB }
}

/// Opens a store, and waits until it knows all files.
pub(crate) fn open(options: &Options) -> Arc<Store> {
    let store = Store::open(options).unwrap();
    let start = Instant::now();
    while !store.counts().is_scanned {
        assert!(start.elapsed() < Duration::from_mins(1), "the scan does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
    store
}

pub(crate) fn url(number: u64) -> Vec<u8> {
    format!("https://a.example/{number}").into_bytes()
}

pub(crate) fn key(number: u64) -> Key {
    Key::of_url(b"https", b"a.example", format!("/{number}").as_bytes())
}

pub(crate) fn life() -> Life {
    Life { received_s: 1_700_000_000, lifetime_s: 60, stale_if_error_s: u64::MAX, public: true, ..Life::default() }
}

pub(crate) fn head(number: u64) -> Head {
    Head {
        kind: Kind::Object,
        url: url(number),
        status: 200,
        fields: vec![(b"content-type".to_vec(), b"text/html".to_vec()), (b"x".to_vec(), vec![0xff, b' '])],
        life: life(),
        vary: vec![b"accept".to_vec()],
        length: 0,
    }
}

pub(crate) fn body(length: usize, seed: u64) -> Vec<u8> {
    (0..length as u64).map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ seed).to_le_bytes()[0]).collect()
}

pub(crate) fn put(store: &Store, number: u64, body: &[u8]) -> std::io::Result<Arc<Object>> {
    let mut fill = store.begin(key(number), head(number))?;
    for chunk in body.chunks(10_000) {
        fill.append(chunk)?;
    }
    fill.commit()
}

pub(crate) fn get(store: &Store, number: u64) -> Option<Arc<Object>> {
    match store.find(key(number), &url(number)) {
        Found::Object(object) => Some(object),
        Found::Absent => None,
        Found::Varies(marker) => panic!("{marker:?}"),
    }
}

pub(crate) fn bytes(object: &Object) -> Vec<u8> {
    match &object.body {
        Body::Memory(body) => body.to_vec(),
        Body::Slices(slices) => panic!("{slices:?}"),
        Body::File(reader) => {
            let mut body = vec![0; usize::try_from(reader.length()).unwrap()];
            assert_eq!(reader.read_at(0, &mut body).unwrap(), body.len());
            body
        }
    }
}

pub(crate) fn path(options: &Options, key: Key) -> PathBuf {
    let name = key.to_string();
    options.folder.join(&name[..2]).join(name)
}

pub(crate) fn writable(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

pub(crate) fn count_new(options: &Options) -> usize {
    std::fs::read_dir(options.folder.join("new")).unwrap().count()
}
