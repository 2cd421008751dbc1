//! The bytes on disk stay below the limit, whatever happens.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use object_store::{Body, Object, Options, Reader, Store};
use proptest::prelude::*;

use crate::common::{MIB, body, bytes, count_new, folder, get, head, key, life, open, options, put};

const MAX: u64 = MIB;
const HOT: u64 = 100_000;

#[derive(Debug, Clone)]
enum Step {
    Put {
        number: u64,
        size: usize,
    },
    /// Begins, reads and drops the response after so many bytes. Keeps the reader.
    Abandon {
        number: u64,
        size: usize,
    },
    /// Finds a response, and holds it.
    Hold {
        number: u64,
    },
    /// Lets one that is held go.
    Release {
        at: usize,
    },
    Remove {
        number: u64,
    },
    Refresh {
        number: u64,
        long: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let number = || 0..12_u64;
    let size = || prop_oneof![0..20_000_usize, 60_000..400_000_usize];
    prop_oneof![
        4 => (number(), size()).prop_map(|(number, size)| Step::Put { number, size }),
        1 => (number(), size()).prop_map(|(number, size)| Step::Abandon { number, size }),
        3 => number().prop_map(|number| Step::Hold { number }),
        2 => any::<usize>().prop_map(|at| Step::Release { at }),
        1 => number().prop_map(|number| Step::Remove { number }),
        1 => (number(), 0..3000_usize).prop_map(|(number, long)| Step::Refresh { number, long }),
    ]
}

#[derive(Default)]
struct Model {
    /// The size and the seed of the last body of each number.
    last: HashMap<u64, (usize, u64)>,
    held: Vec<(Arc<Object>, Vec<u8>)>,
    readers: Vec<Reader>,
    seed: u64,
}

impl Model {
    fn run(&mut self, store: &Store, step: &Step) {
        self.seed += 1;
        match *step {
            Step::Put { number, size } => match put(store, number, &body(size, self.seed)) {
                Ok(_) => {
                    self.last.insert(number, (size, self.seed));
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::StorageFull),
            },
            Step::Abandon { number, size } => {
                let Ok(mut fill) = store.begin(key(number), head(number)) else { return };
                let _ = fill.append(&body(size, self.seed));
                self.readers.push(fill.reader());
            }
            Step::Hold { number } => {
                if let Some(object) = get(store, number) {
                    let (size, seed) = self.last[&number];
                    self.held.push((object, body(size, seed)));
                }
            }
            Step::Release { at } if !self.held.is_empty() => {
                let at = at % self.held.len();
                self.held.swap_remove(at);
                self.readers.pop();
            }
            Step::Release { .. } => {}
            Step::Remove { number } => {
                store.remove(key(number)).unwrap();
                assert!(get(store, number).is_none());
                self.last.remove(&number);
            }
            Step::Refresh { number, long } => {
                let Some(object) = get(store, number) else { return };
                let fields = vec![(b"etag".to_vec(), vec![b'e'; long])];
                match store.refresh(&object, fields.clone(), life()) {
                    Ok(new) => assert_eq!(new.head.fields, fields),
                    Err(error) => assert!(matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::NotFound)),
                }
            }
        }
    }

    /// Returns the bytes on disk of the files that have no name any more, but are open.
    fn unlinked(&self) -> u64 {
        let objects = self.held.iter().filter_map(|(object, _)| match &object.body {
            Body::File(reader) => Some(reader),
            Body::Memory(_) | Body::Slices(_) => None,
        });
        let files = objects.chain(&self.readers).map(|reader| reader.file().metadata().unwrap());
        let unlinked = files.filter(|file| file.nlink() == 0).map(|file| (file.ino(), file.blocks() * 512));
        unlinked.collect::<HashMap<_, _>>().values().sum()
    }
}

fn on_disk(options: &Options) -> (u64, u64) {
    let mut sum = (0, 0);
    for folder in std::fs::read_dir(&options.folder).unwrap().flatten() {
        for file in std::fs::read_dir(folder.path()).unwrap().flatten() {
            sum = (sum.0 + 1, sum.1 + file.metadata().unwrap().blocks() * 512);
        }
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bytes_stay_below_the_limit_under_any_steps_with_readers(steps in prop::collection::vec(step(), 1..60)) {
        let parent = folder();
        let options = Options { max_bytes: MAX, hot_bytes: HOT, ..options(parent.path()) };
        let store = open(&options);
        let mut model = Model::default();
        for step in steps {
            model.run(&store, &step);
            let counts = store.counts();
            prop_assert!(counts.disk_bytes + counts.unlinked_bytes <= MAX, "{counts:?}");
            prop_assert!(counts.hot_bytes <= HOT);
            prop_assert_eq!((counts.entries, counts.disk_bytes), on_disk(&options));
            prop_assert!(counts.unlinked_bytes >= model.unlinked(), "{counts:?} {}", model.unlinked());
            prop_assert_eq!(counts.errors, 0);
            for (object, body) in &model.held {
                prop_assert!(bytes(object) == *body);
            }
        }
        model.held.clear();
        model.readers.clear();
        prop_assert_eq!(store.counts().unlinked_bytes, 0);
        prop_assert_eq!(count_new(&options), 0);
    }
}

#[test]
fn a_removed_file_counts_until_its_last_reader_is_gone() {
    let parent = folder();
    let store = open(&Options { max_bytes: MAX, ..options(parent.path()) });
    put(&store, 1, &body(300_000, 1)).unwrap();
    let (one, two) = (get(&store, 1).unwrap(), get(&store, 1).unwrap());
    store.remove(key(1)).unwrap();
    assert!(store.counts().unlinked_bytes >= 300_000);
    drop(one);
    assert!(store.counts().unlinked_bytes >= 300_000);
    assert_eq!(bytes(&two), body(300_000, 1));
    drop(two);
    assert_eq!(store.counts().unlinked_bytes, 0);
}

#[test]
fn a_replaced_file_counts_until_its_last_reader_is_gone() {
    let parent = folder();
    let store = open(&Options { max_bytes: MAX, ..options(parent.path()) });
    let old = put(&store, 1, &body(300_000, 1)).unwrap();
    let new = put(&store, 1, &body(200_000, 2)).unwrap();
    let counts = store.counts();
    assert!(counts.unlinked_bytes >= 300_000 && counts.disk_bytes < 300_000, "{counts:?}");
    assert_eq!((bytes(&old), bytes(&new)), (body(300_000, 1), body(200_000, 2)));
    drop(old);
    assert_eq!(store.counts().unlinked_bytes, 0);
}

#[test]
fn a_response_is_refused_while_readers_hold_all_bytes() {
    let parent = folder();
    let store = open(&Options { max_bytes: MAX, ..options(parent.path()) });
    let held: Vec<_> = (0..2).map(|number| put(&store, number, &body(500_000, number)).unwrap()).collect();
    let error = put(&store, 2, &body(200_000, 2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    assert!(get(&store, 0).is_some() && get(&store, 1).is_some());
    drop(held);
    put(&store, 2, &body(200_000, 2)).unwrap();
    assert_eq!(store.counts().errors, 0);
}

#[test]
fn a_response_of_more_than_half_the_bytes_is_refused_and_drives_nothing_out() {
    let parent = folder();
    let store = open(&Options { max_bytes: MAX, ..options(parent.path()) });
    for number in 0..10 {
        put(&store, number, &body(1000, number)).unwrap();
    }
    assert_eq!(put(&store, 10, &body(600_000, 1)).unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!(store.counts().entries, 10);
}

#[test]
fn a_lower_limit_removes_files_after_a_restart() {
    let parent = folder();
    let large = options(parent.path());
    let store = open(&large);
    for number in 0..100 {
        put(&store, number, &body(30_000, number)).unwrap();
    }
    drop(store);
    let small = Options { max_bytes: MAX, ..large };
    let store = open(&small);
    let counts = store.counts();
    assert!(counts.disk_bytes <= MAX && counts.entries > 20, "{counts:?}");
    assert_eq!((counts.entries, counts.disk_bytes), on_disk(&small));
}

#[test]
fn two_stores_on_one_folder_take_what_the_other_leaves() {
    let parent = folder();
    let options = Options { max_bytes: MAX, hot_bytes: 0, ..options(parent.path()) };
    let (one, two) = (open(&options), open(&options));
    for number in 0..200 {
        let store = if number % 2 == 0 { &one } else { &two };
        put(store, number, &body(20_000, number)).unwrap();
        for back in number.saturating_sub(5)..=number {
            for store in [&one, &two] {
                if let Some(object) = get(store, back) {
                    assert_eq!(bytes(&object), body(20_000, back));
                }
            }
        }
        for store in [&one, &two] {
            let counts = store.counts();
            assert!(counts.disk_bytes + counts.unlinked_bytes <= MAX + 20_480 * 8, "{counts:?}");
        }
    }
    assert!(get(&one, 199).is_some() && get(&two, 199).is_some());
}

#[test]
fn a_file_that_another_store_made_larger_counts_with_its_new_size() {
    let parent = folder();
    let options = options(parent.path());
    let (one, two) = (open(&options), open(&options));
    put(&one, 1, b"small").unwrap();
    put(&two, 1, &body(300_000, 1)).unwrap();
    assert!(one.counts().disk_bytes < 300_000);
    assert_eq!(bytes(&get(&one, 1).unwrap()), body(300_000, 1));
    assert_eq!((one.counts().entries, one.counts().disk_bytes), on_disk(&options));
}

#[test]
fn threads_that_write_remove_and_find_at_once_leave_right_figures() {
    let parent = folder();
    let options = Options { max_bytes: MAX, hot_bytes: HOT, ..options(parent.path()) };
    let store = open(&options);
    let work = |thread: u64| {
        for round in 0..200 {
            let number = (round * 7 + thread * 3) % 11;
            let length = if number.is_multiple_of(3) { 90_000 } else { 3000 };
            match round % 5 {
                0 => drop(store.remove(key(number)).unwrap()),
                1 | 2 => drop(put(&store, number, &body(length, number))),
                _ => {
                    if let Some(object) = get(&store, number) {
                        assert_eq!(bytes(&object), body(length, number));
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || work(thread));
        }
    });
    let counts = store.counts();
    assert_eq!((counts.entries, counts.disk_bytes), on_disk(&options));
    assert_eq!((counts.unlinked_bytes, count_new(&options)), (0, 0));
}
