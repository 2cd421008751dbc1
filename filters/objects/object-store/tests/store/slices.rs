//! Bodies in blocks.

use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;

use object_rules::slices::BLOCK;
use object_store::{Body, Found, Head, Object, Onlooker, Options, Seen, Slices, Store, Verified, decode};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::{MIB, body, count_new, folder, get, head, key, open, options, path, put, url, writable};

/// Three blocks and a short one.
const LENGTH: u64 = 3 * BLOCK + 1000;

fn whole() -> Vec<u8> {
    body(usize::try_from(LENGTH).unwrap(), 7)
}

fn sliced(number: u64, length: u64) -> Head {
    Head { vary: Vec::new(), length, ..head(number) }
}

fn begin(store: &Store, number: u64) -> Arc<Object> {
    store.begin_slices(key(number), sliced(number, LENGTH)).unwrap()
}

fn slices(object: &Object) -> &Slices {
    match &object.body {
        Body::Slices(slices) => slices,
        other => panic!("{other:?}"),
    }
}

fn found(store: &Store, number: u64) -> Arc<Object> {
    get(store, number).unwrap()
}

/// Writes the bytes of a part, in pieces that do not end where blocks do.
fn write(store: &Store, object: &Object, from: u64, to: u64) {
    let mut writer = store.write_slices(object.key(), slices(object), from).unwrap();
    let part = &whole()[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()];
    part.chunks(300_001).for_each(|piece| writer.append(piece).unwrap());
    assert_eq!(writer.at(), to);
}

/// Returns the blocks that are there, and checks their bytes.
fn there(object: &Object) -> Vec<u64> {
    let slices = slices(object);
    let good: Vec<u64> = (0..slices.blocks().count()).filter(|block| slices.check(*block).unwrap()).collect();
    for block in &good {
        let place = slices.blocks().bytes(*block);
        let mut bytes = vec![0; usize::try_from(place.end - place.start).unwrap()];
        assert_eq!(slices.reader().read_at(place.start, &mut bytes).unwrap(), bytes.len());
        assert!(
            bytes == whole()[usize::try_from(place.start).unwrap()..usize::try_from(place.end).unwrap()],
            "{block}"
        );
    }
    good
}

fn noted(object: &Object) -> Vec<bool> {
    slices(object).noted().unwrap()
}

fn disk_bytes(options: &Options, number: u64) -> u64 {
    std::fs::metadata(path(options, key(number))).unwrap().blocks() * 512
}

#[test]
fn blocks_that_are_complete_are_there_in_every_process_and_after_a_restart() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    let object = begin(&store, 1);
    assert_eq!((there(&object), object.head.length), (vec![], LENGTH));
    // From the middle of the first block to the middle of the third one.
    write(&store, &object, 1000, 2 * BLOCK + 5);
    assert_eq!(there(&object), [1]);
    write(&store, &object, 3 * BLOCK, LENGTH);
    let other = open(&options);
    for store in [&store, &other] {
        let again = found(store, 1);
        assert_eq!((there(&again), noted(&again)), (vec![1, 3], vec![false, true, false, true]));
        assert_eq!((slices(&again).stamp(), again.head.fields.clone()), (slices(&object).stamp(), head(1).fields));
    }
    drop((store, object));
    assert_eq!(there(&found(&open(&options), 1)), [1, 3]);
}

#[test]
fn a_block_that_comes_twice_or_from_two_programs_is_there() {
    let parent = folder();
    let options = options(parent.path());
    let (one, two) = (open(&options), open(&options));
    let object = begin(&one, 1);
    let other = found(&two, 1);
    let mut first = one.write_slices(key(1), slices(&object), 0).unwrap();
    let mut second = two.write_slices(key(1), slices(&other), 0).unwrap();
    for piece in whole()[..usize::try_from(2 * BLOCK).unwrap()].chunks(1 << 18) {
        first.append(piece).unwrap();
        second.append(piece).unwrap();
    }
    write(&two, &other, 3 * BLOCK, LENGTH);
    assert_eq!((there(&object), there(&other)), (vec![0, 1, 3], vec![0, 1, 3]));
    write(&one, &object, 0, LENGTH);
    assert_eq!(there(&found(&two, 1)), [0, 1, 2, 3]);
}

#[test]
fn a_block_whose_bytes_are_lost_or_at_another_place_is_missing() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    let object = begin(&store, 1);
    write(&store, &object, 0, LENGTH);
    assert_eq!(there(&object), [0, 1, 2, 3]);
    let file = writable(&path(&options, key(1)));
    let bytes = std::fs::read(path(&options, key(1))).unwrap();
    let body_at = decode(&bytes).unwrap().body_at;
    let map_at = (body_at + LENGTH).next_multiple_of(512);
    let size = bytes.len() as u64;
    assert_eq!(size, map_at + 4 * 16);
    // A crash lost a page of one block, and the other block has one wrong byte.
    file.write_all_at(&[0; 4096], body_at + BLOCK + 4096).unwrap();
    file.write_all_at(&[!bytes[usize::try_from(body_at + 2 * BLOCK + 9).unwrap()]], body_at + 2 * BLOCK + 9).unwrap();
    // The first block's checksum stands for the last block, too.
    file.write_all_at(&bytes[usize::try_from(map_at).unwrap()..][..16], map_at + 48).unwrap();
    drop(store);
    let store = open(&options);
    let again = found(&store, 1);
    assert_eq!((there(&again), noted(&again)), (vec![0], vec![true; 4]));
    write(&store, &again, BLOCK, 2 * BLOCK);
    assert_eq!(there(&again), [0, 1]);
    assert_eq!(store.verify().unwrap(), Verified { good: 1, blocks: 2, ..Verified::default() });
    assert_eq!(noted(&found(&store, 1)), [true, true, false, false]);
    assert_eq!(store.verify().unwrap(), Verified { good: 1, ..Verified::default() });
}

#[test]
fn a_file_that_is_cut_is_absent_and_removed() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    write(&store, &begin(&store, 1), 0, LENGTH);
    let file = path(&options, key(1));
    let size = std::fs::metadata(&file).unwrap().len();
    for cut in [1, 16, 64, 1000, BLOCK] {
        writable(&file).set_len(size).unwrap();
        assert!(get(&store, 1).is_some());
        writable(&file).set_len(size - cut).unwrap();
        assert!(get(&store, 1).is_none(), "{cut}");
        assert!(!file.exists(), "{cut}");
        write(&store, &begin(&store, 1), 0, LENGTH);
    }
}

#[test]
fn only_bytes_on_disk_count() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    let object = begin(&store, 1);
    let empty = store.counts().disk_bytes;
    assert!((1..100_000).contains(&empty), "{empty}");
    for (from, to, blocks) in [(0, BLOCK, 1), (BLOCK, 2 * BLOCK + 5000, 2), (0, LENGTH, 4)] {
        write(&store, &object, from, to);
        let counts = store.counts();
        assert_eq!(counts.disk_bytes, disk_bytes(&options, 1));
        assert!(counts.disk_bytes <= blocks * BLOCK + BLOCK / 8, "{}", counts.disk_bytes);
    }
    assert_eq!(store.counts().unlinked_bytes, 0);
    let mut listed = Vec::new();
    store.list(|one| listed.push((one.head.length, one.stored_bytes))).unwrap();
    assert_eq!(listed, [(LENGTH, LENGTH)]);
    store.remove(key(1)).unwrap();
    let counts = store.counts();
    assert!(counts.disk_bytes == 0 && counts.unlinked_bytes > 3 * BLOCK, "{counts:?}");
    drop(object);
    assert_eq!(store.counts().unlinked_bytes, 0);
}

#[test]
fn a_list_has_the_bytes_of_the_blocks_that_are_there() {
    let parent = folder();
    let store = open(&options(parent.path()));
    let object = begin(&store, 1);
    write(&store, &object, BLOCK, 2 * BLOCK);
    write(&store, &object, 3 * BLOCK, LENGTH);
    let mut listed = Vec::new();
    store.list(|one| listed.push((one.head.length, one.stored_bytes))).unwrap();
    assert_eq!(listed, [(LENGTH, BLOCK + 1000)]);
}

#[test]
fn blocks_drive_out_other_responses_and_not_what_is_read() {
    let parent = folder();
    let options = Options { max_bytes: 8 * MIB, ..options(parent.path()) };
    let store = open(&options);
    for number in 2..5 {
        put(&store, number, &body(2_000_000, number)).unwrap();
    }
    let held = begin(&store, 1);
    write(&store, &held, 0, LENGTH);
    assert!((2..5).filter(|number| get(&store, *number).is_some()).count() < 3);
    assert!(store.counts().disk_bytes <= 8 * MIB);
    for number in 5..12 {
        put(&store, number, &body(2_000_000, number)).unwrap();
        assert!(store.counts().disk_bytes <= 8 * MIB);
        assert!(get(&store, 1).is_some(), "an open file stays");
    }
    drop(held);
    // A file that was read lately would stay.
    let times = std::fs::FileTimes::new().set_accessed(std::time::UNIX_EPOCH);
    writable(&path(&options, key(1))).set_times(times).unwrap();
    (12..20).for_each(|number| drop(put(&store, number, &body(2_000_000, number)).unwrap()));
    assert!(get(&store, 1).is_none(), "one that nobody uses goes as a whole");
}

#[test]
fn an_object_takes_half_of_the_store_at_most() {
    let parent = folder();
    let options = Options { max_bytes: 8 * MIB, ..options(parent.path()) };
    let store = open(&options);
    assert!(store.begin_slices(key(1), sliced(1, 4 * MIB)).is_ok());
    let error = store.begin_slices(key(2), sliced(2, 4 * MIB + 1)).unwrap_err();
    assert_eq!((error.kind(), count_new(&options)), (ErrorKind::StorageFull, 0));
    let error = store.begin_slices(key(2), sliced(2, 0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

#[test]
fn without_room_the_blocks_that_came_stay() {
    let parent = folder();
    let options = Options { max_bytes: 6 * MIB, ..options(parent.path()) };
    let store = open(&options);
    let object = store.begin_slices(key(1), sliced(1, 3 * MIB)).unwrap();
    let other = store.begin_slices(key(2), sliced(2, 3 * MIB)).unwrap();
    write(&store, &object, 0, 3 * MIB);
    let mut writer = store.write_slices(key(2), slices(&other), 0).unwrap();
    writer.append(&whole()[..usize::try_from(2 * MIB).unwrap()]).unwrap();
    assert_eq!(writer.append(b"more").unwrap_err().kind(), ErrorKind::StorageFull);
    assert_eq!((there(&object), there(&other)), (vec![0, 1, 2], vec![0, 1]));
    drop(object);
    writer.append(&whole()[usize::try_from(2 * MIB).unwrap()..usize::try_from(3 * MIB).unwrap()]).unwrap();
    assert_eq!(there(&other), [0, 1, 2]);
    assert!(get(&store, 1).is_none(), "it gave way");
}

#[test]
fn a_removed_or_replaced_response_takes_no_blocks_for_another_one() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    let object = begin(&store, 1);
    let mut writer = store.write_slices(key(1), slices(&object), 0).unwrap();
    store.remove_slices(key(1), slices(&object));
    assert!(matches!(store.find(key(1), &url(1)), Found::Absent));
    assert_eq!(store.write_slices(key(1), slices(&object), 0).unwrap_err().kind(), ErrorKind::NotFound);
    let new = begin(&store, 1);
    // The writer and the readers of the old one keep its file.
    writer.append(&whole()[..usize::try_from(BLOCK).unwrap()]).unwrap();
    assert_eq!((there(&object), there(&new)), (vec![0], vec![]));
    assert_eq!(store.write_slices(key(1), slices(&object), 0).unwrap_err().kind(), ErrorKind::NotFound);
    store.remove_slices(key(1), slices(&object));
    assert!(get(&store, 1).is_some(), "the new one stays");
    put(&store, 1, b"whole").unwrap();
    assert_eq!(store.write_slices(key(1), slices(&new), 0).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_304_gives_new_fields_and_keeps_the_blocks() {
    let parent = folder();
    let store = open(&options(parent.path()));
    let object = begin(&store, 1);
    write(&store, &object, 0, BLOCK);
    let fields = vec![(b"x".to_vec(), vec![b'y'; 2000])];
    let life = object_rules::Life { lifetime_s: 99, ..object.head.life };
    let new = store.refresh(&object, fields.clone(), life).unwrap();
    assert_eq!((there(&new), &new.head.fields), (vec![0], &fields));
    write(&store, &object, BLOCK, 2 * BLOCK);
    let again = found(&store, 1);
    assert_eq!((there(&again), again.head.life.lifetime_s, again.head.length), (vec![0, 1], 99, LENGTH));
    // Fields for which there is no room.
    let large = vec![(b"x".to_vec(), vec![b'y'; 20_000])];
    assert_eq!(store.refresh(&again, large, life).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(get(&store, 1).is_none());
}

#[test]
fn the_largest_head_fits() {
    let parent = folder();
    let store = open(&options(parent.path()));
    let mut large = sliced(1, LENGTH);
    large.fields = vec![(b"a".to_vec(), vec![b'b'; 65_300])];
    let object = store.begin_slices(key(1), large.clone()).unwrap();
    write(&store, &object, 0, LENGTH);
    let again = found(&store, 1);
    assert_eq!((there(&again), &again.head.fields), (vec![0, 1, 2, 3], &large.fields));
}

#[test]
fn a_process_that_only_reads_leaves_blocks_to_the_program() {
    let parent = folder();
    let options = options(parent.path());
    let store = open(&options);
    store.begin_slices(key(1), sliced(1, 1000)).unwrap();
    let reader = Onlooker::new(options.folder, MIB, 1 << 30);
    assert!(matches!(reader.find(key(1), &url(1)), Seen::Large));
}

#[test]
fn bytes_beyond_the_end_are_refused() {
    let parent = folder();
    let store = open(&options(parent.path()));
    let object = begin(&store, 1);
    let mut writer = store.write_slices(key(1), slices(&object), LENGTH - 2).unwrap();
    assert_eq!(writer.append(b"abc").unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(!slices(&object).check(u64::MAX / 2).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The file system gave zeros or old bytes in place of some pages, anywhere in the file.
    #[test]
    fn no_damage_gives_wrong_bytes(
        damage in vec((any::<prop::sample::Index>(), 1..5000_usize, any::<Option<u8>>()), 1..4),
    ) {
        let parent = folder();
        let options = options(parent.path());
        let store = open(&options);
        write(&store, &begin(&store, 1), 0, LENGTH);
        drop(store);
        let file = writable(&path(&options, key(1)));
        let size = usize::try_from(file.metadata().unwrap().len()).unwrap();
        for (at, length, byte) in damage {
            let at = at.index(size);
            let bytes = vec![byte.unwrap_or(0); length.min(size - at)];
            file.write_all_at(&bytes, at as u64).unwrap();
        }
        // A damaged head makes all of it absent, and a damaged map or body one or two blocks.
        if let Some(object) = get(&open(&options), 1) {
            there(&object);
        }
    }
}
