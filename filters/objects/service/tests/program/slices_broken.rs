//! Objects in blocks whose origin, program or disk fails, or whose origin has another one by now.

use crate::bed::{Bed, Sizes, bytes, wait};
use crate::origin::field;
use crate::parts::Ranged;
use crate::slices::{FRESH, LARGE, MIB, bed, is_part, outcome, range, ranges};

#[test]
fn a_download_is_resumed_after_the_program_died() {
    let (mut bed, ranged, body) = bed(FRESH, 12 * MIB);
    let gate = ranged.stops_at(5 * MIB + MIB / 2);
    let mut client = bed.send("/", "");
    client.read(5 * MIB);
    bed.restart();
    gate.open();
    assert!(!client.end().is_whole);
    wait("the origin notices", || ranged.left() == 1);
    let before = ranged.sent();
    let reply = bed.get("/", "");
    assert!(reply.is_whole && reply.status() == 200 && reply.body == body);
    assert_eq!(ranges(&bed)[1], format!("{}-{}", 5 * MIB, 12 * MIB - 1));
    assert_eq!(field(&bed.origin.asked("/")[1], "if-range"), Some("\"1\""));
    assert_eq!(ranged.sent(), before + 7 * MIB);
}

#[test]
fn a_download_goes_on_after_the_origin_broke_off() {
    let (bed, ranged, body) = bed(FRESH, 12 * MIB);
    ranged.breaks_after([3 * MIB + MIB / 2, MIB]);
    let mut client = bed.send("/", "");
    client.read(1);
    let other = bed.send("/", "");
    for reply in [client.end(), other.end()] {
        assert!(reply.is_whole && reply.status() == 200 && reply.body == body);
    }
    let rest = |mib2: usize| format!("{}-{}", mib2 * MIB / 2, 12 * MIB - 1);
    assert_eq!(ranges(&bed), ["whole".to_owned(), rest(7), rest(9)]);
    wait("all is there", || outcome(&bed.get("/", "")) == "hit");
}

#[test]
fn a_download_breaks_off_visibly_if_the_origin_stays_away_and_what_came_stays() {
    let (bed, ranged, body) = bed(FRESH, 12 * MIB);
    let gate = ranged.stops_at(6 * MIB + 5);
    let mut client = bed.send("/", "");
    client.read(6 * MIB);
    bed.origin.close();
    gate.open();
    let reply = client.end();
    assert!(!reply.is_whole && reply.body == body[..reply.body.len()]);
    let reply = bed.get("/", &range(0, 6 * MIB));
    is_part(&reply, &body, 0, 6 * MIB);
    assert_eq!(outcome(&reply), "hit");
    // Envoy then repeats the request past the program.
    assert_eq!(bed.get("/", &range(6 * MIB, 7 * MIB)).head, "");
    bed.origin.open();
    let reply = bed.get("/", "");
    assert!(reply.is_whole && reply.body == body);
}

#[test]
fn bytes_of_two_validators_are_never_mixed() {
    let (bed, ranged, old) = bed(FRESH, 6 * MIB);
    is_part(&bed.get("/", &range(0, MIB)), &old, 0, MIB);
    let new: Vec<u8> = old.iter().map(|byte| !byte).collect();
    ranged.changes("\"2\"", new.clone());
    // The first block is there, so this response has begun.
    let reply = bed.get("/", "");
    assert!(!reply.is_whole && reply.body == old[..reply.body.len()] && reply.body.len() <= MIB);
    assert!(bed.files().is_empty());
    let reply = bed.get("/", &range(0, 2 * MIB));
    assert_eq!((reply.status(), reply.field("etag")), (206, Some("\"2\"")));
    assert!(reply.body == new[..2 * MIB]);
    // This response has not begun, so it is the origin's.
    ranged.changes("\"3\"", old[..5 * MIB].to_vec());
    let reply = bed.get("/", &range(2 * MIB, 3 * MIB));
    assert_eq!((reply.status(), reply.field("etag"), outcome(&reply)), (206, Some("\"3\""), "past"));
    assert!(reply.is_whole && reply.body == old[2 * MIB..3 * MIB]);
    assert_eq!(reply.field("content-range"), Some("bytes 2097152-3145727/5242880"));
    assert!(bed.files().is_empty());
}

/// Here the origin sends a part of the new object to a request that continues the old one.
#[test]
fn a_part_with_another_validator_or_length_is_never_mixed_in() {
    for (tag, length) in [("\"2\"", 6 * MIB), ("W/\"1\"", 6 * MIB), ("\"1\"", 5 * MIB)] {
        let (bed, ranged, old) = bed(FRESH, 6 * MIB);
        ranged.ignores_if_range();
        is_part(&bed.get("/", &range(0, MIB)), &old, 0, MIB);
        let new: Vec<u8> = old[..length].iter().map(|byte| !byte).collect();
        ranged.changes(tag, new.clone());
        let reply = bed.get("/", "");
        assert!(!reply.is_whole && reply.body == old[..reply.body.len()] && reply.body.len() <= MIB, "{tag} {length}");
        assert!(bed.files().is_empty(), "{tag} {length}");
        let reply = bed.get("/", "");
        assert!(reply.is_whole && reply.body == new, "{tag} {length}");
    }
}

#[test]
fn a_validator_that_changes_within_a_run_breaks_the_response_off() {
    let (bed, ranged, old) = bed(FRESH, 12 * MIB);
    ranged.breaks_after([3 * MIB + MIB / 2]);
    let gate = ranged.stops_at(2 * MIB);
    let mut client = bed.send("/", "");
    client.read(MIB);
    ranged.changes("\"2\"", vec![7; 12 * MIB]);
    gate.open();
    let reply = client.end();
    assert!(!reply.is_whole && reply.body == old[..reply.body.len()] && reply.body.len() >= 3 * MIB);
    let reply = bed.get("/", "");
    assert!(reply.is_whole && reply.body == vec![7; 12 * MIB]);
}

#[test]
fn an_origin_that_ignores_ranges_sends_its_own_response() {
    let (bed, ranged, body) = bed(FRESH, 3 * MIB);
    ranged.ignores_ranges(true);
    for _ in 0..2 {
        let reply = bed.get("/", &range(MIB, 2 * MIB));
        assert_eq!((reply.status(), reply.is_whole, outcome(&reply)), (200, true, "past"));
        assert!(reply.body == body);
    }
    assert!(bed.files().is_empty());
    // An origin that ignores them later has the same bytes, but sends too many.
    let (bed, ranged, body) = crate::slices::bed(FRESH, 3 * MIB);
    is_part(&bed.get("/", &range(0, MIB)), &body, 0, MIB);
    ranged.ignores_ranges(true);
    let reply = bed.get("/", &range(MIB, 2 * MIB));
    assert_eq!((reply.status(), reply.is_whole, outcome(&reply)), (200, true, "past"));
    assert!(reply.body == body && bed.files().is_empty());
}

#[test]
fn a_run_that_is_for_one_client_alone_is_not_shared() {
    for fields in ["cache-control: private", "cache-control: max-age=60\nset-cookie: id=1"] {
        let (bed, ranged, body) = bed(FRESH, 3 * MIB);
        is_part(&bed.get("/", &range(0, MIB)), &body, 0, MIB);
        ranged.says(fields);
        let reply = bed.get("/", &range(MIB, 2 * MIB));
        assert!(reply.status() == 206 && reply.body == body[MIB..2 * MIB]);
        assert_eq!(outcome(&reply), "past", "{fields}");
        assert!(bed.files().is_empty(), "{fields}");
    }
}

#[test]
fn an_origin_that_fails_leaves_the_blocks() {
    let (bed, _, body) = bed(FRESH, 3 * MIB);
    is_part(&bed.get("/", &range(0, MIB)), &body, 0, MIB);
    bed.origin.close();
    assert_eq!(bed.get("/", &range(MIB, 2 * MIB)).head, "");
    is_part(&bed.get("/", &range(0, MIB)), &body, 0, MIB);
    bed.origin.open();
    is_part(&bed.get("/", &range(0, 2 * MIB)), &body, 0, 2 * MIB);
}

/// The system refuses to make a file of this size.
#[test]
fn a_disk_that_takes_no_large_file_costs_the_cache_only() {
    let limit = ["sh", "-c", "trap '' 25; ulimit -f 24576; exec \"$@\"", "sh"];
    let bed = Bed::with(LARGE, &limit);
    let body = bytes(20 * MIB);
    bed.origin.serves("/", &Ranged::new(FRESH, "\"1\"", body.clone()));
    for fields in [String::new(), range(MIB, 15 * MIB)] {
        let reply = bed.get("/", &fields);
        assert!(reply.is_whole);
        assert!(reply.body == if fields.is_empty() { &body[..] } else { &body[MIB..15 * MIB] });
    }
}

#[test]
fn a_file_that_is_gone_within_a_download_costs_the_cache_only() {
    let (bed, ranged, body) = bed(FRESH, 30 * MIB);
    is_part(&bed.get("/", &range(0, MIB)), &body, 0, MIB);
    let gate = ranged.stops_at(3 * MIB + 9);
    let mut client = bed.send("/", "");
    let mut other = bed.send("/", &range(MIB, 30 * MIB));
    client.read(3 * MIB);
    other.read(2 * MIB);
    // The next run finds no place for its bytes.
    bed.files().into_iter().for_each(|file| std::fs::remove_file(file).unwrap());
    gate.open();
    let reply = client.end();
    assert!(reply.is_whole && reply.body == body);
    is_part(&other.end(), &body, MIB, 30 * MIB);
    let rest = format!("{}-{}", 17 * MIB, 30 * MIB - 1);
    assert!(ranges(&bed).contains(&rest), "{:?}", ranges(&bed));
    assert!(bed.files().is_empty());
}

#[test]
fn a_reader_of_blocks_for_which_there_is_no_room_gets_them_from_the_origin() {
    let bed = Bed::with(Sizes { disk: 8 << 20, hot: 0, object: 1 << 19 }, &[]);
    let body = bytes(4 * MIB);
    let held = Ranged::new(FRESH, "\"1\"", body.clone());
    bed.origin.serves("/held", &held);
    let gate = held.stops_at(4 * MIB - 1);
    let mut client = bed.send("/held", "");
    client.read(3 * MIB);
    bed.origin.serves("/", &Ranged::new(FRESH, "\"1\"", body.clone()));
    let reply = bed.get("/", "");
    assert!(reply.is_whole && reply.body == body);
    let asked = ranges(&bed);
    let from: usize = asked[1].strip_suffix("-4194303").unwrap().parse().unwrap();
    assert!(asked.len() == 2 && (2 * MIB..=3 * MIB).contains(&from), "{asked:?}");
    let part = bed.get("/", &range(0, 3 * MIB));
    assert_eq!(outcome(&part), "hit");
    gate.open();
    let reply = client.end();
    assert!(reply.is_whole && reply.body == body);
}

#[test]
fn two_programs_fill_one_file() {
    let (bed, ranged, body) = bed(FRESH, 6 * MIB);
    is_part(&bed.get("/", &range(0, MIB)), &body, 0, MIB);
    let other = bed.another("other");
    is_part(&other.get("/", &range(2 * MIB, 4 * MIB)), &body, 2 * MIB, 4 * MIB);
    is_part(&bed.get("/", &range(0, 5 * MIB)), &body, 0, 5 * MIB);
    let reply = other.get("/", "");
    assert!(reply.is_whole && reply.body == body);
    assert_eq!((ranged.sent(), bed.files().len()), (6 * MIB, 1));
    assert_eq!(outcome(&bed.get("/", "")), "hit");
}

#[test]
fn a_block_that_a_crash_has_torn_is_fetched_again() {
    use std::os::unix::fs::FileExt;
    let (mut bed, ranged, body) = bed(FRESH, 4 * MIB);
    bed.get("/", &range(0, 3 * MIB));
    let file = std::fs::OpenOptions::new().write(true).open(&bed.files()[0]).unwrap();
    file.write_all_at(&[0; 9999], MIB as u64 + MIB as u64 / 2).unwrap();
    bed.restart();
    is_part(&bed.get("/", &range(0, 3 * MIB)), &body, 0, 3 * MIB);
    assert_eq!((ranges(&bed).len(), ranged.sent()), (2, 4 * MIB));
    assert_eq!(ranges(&bed)[1], "1048576-2097151");
}
