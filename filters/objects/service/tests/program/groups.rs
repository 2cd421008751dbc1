//! Hosts that serve the same objects.

use serde_json::{Value, json};

use crate::bed::{Bed, Sizes};
use crate::origin::{Answer, field};
use crate::slices::{FRESH, LARGE, MIB, is_part, outcome, range, ranges_of};

/// Two hosts of a service, whose URLs are signed.
fn groups(by_validator: bool) -> Value {
    json!([{
        "name": "*.cdn.test",
        "hosts": [["cdn.test", "below"], ["dl.test", "exact"]],
        "ignored": ["key"],
        "by_validator": by_validator,
    }])
}

const HOUR: &str = "cache-control: max-age=3600\netag: \"1\"";
const ONE: &str = "host: a.cdn.test";
const OTHER: &str = "host: dl.test";

#[test]
fn the_hosts_of_a_group_share_what_one_of_them_sent() {
    let bed = Bed::with_groups(Sizes::default(), &groups(false));
    bed.origin.plays("/a?key=1", [Answer::whole(HOUR, b"shared")]);
    bed.origin.plays("/a?key=2", [Answer::whole(HOUR, b"other")]);
    bed.origin.plays("/a?part=2&key=2", [Answer::whole(HOUR, b"part")]);
    assert_eq!(bed.get("/a?key=1", ONE).text(), "shared");
    bed.keeps(1);
    let second = bed.get("/a?key=2", OTHER);
    assert_eq!((second.text(), outcome(&second)), ("shared", "hit"));
    assert_eq!(bed.get("/a?part=2&key=2", OTHER).text(), "part");
    assert_eq!(bed.get("/a?key=2", "host: cdn.test").text(), "other", "it is not below itself");
}

#[test]
fn the_operator_may_let_validators_decide() {
    let bed = Bed::with_groups(Sizes::default(), &groups(true));
    let never = "cache-control: no-store, private\nexpires: 0\netag: \"1\"";
    let valid = Answer::status("304 Not Modified", "cache-control: no-store\nexpires: 0", b"");
    bed.origin.plays("/a?key=1", [Answer::whole(never, b"shared")]);
    bed.origin.plays("/a?key=2", [valid, Answer::whole("etag: \"2\"\ncache-control: no-store", b"new")]);
    bed.origin.plays("/b", [Answer::whole("cache-control: no-store", b"own"), Answer::whole(never, b"never again")]);
    assert_eq!(bed.get("/a?key=1", ONE).text(), "shared");
    bed.keeps(1);
    let second = bed.get("/a?key=2", OTHER);
    assert_eq!((second.text(), outcome(&second)), ("shared", "revalidated"));
    let asked = bed.origin.asked("/a?key=2");
    assert_eq!((field(&asked[0], "host"), field(&asked[0], "if-none-match")), (Some("dl.test"), Some("\"1\"")));
    assert_eq!(bed.get("/a?key=2", OTHER).text(), "new", "the validator is another one");
    assert_eq!(bed.get("/b", ONE).text(), "own");
    assert_eq!(bed.get("/b", "host: www.test").text(), "never again", "it is in no group");
    assert_eq!(bed.files().len(), 1, "without a validator, or in no group, a response is not stored");
}

#[test]
fn ranges_of_signed_urls_share_blocks() {
    let (bed, ranged, body) = crate::slices::bed_with(
        Bed::with_groups(LARGE, &groups(true)),
        &["/?key=1", "/?key=2"],
        &FRESH.replace("max-age=60", "no-store"),
        4 * MIB,
    );
    for (path, host) in [("/?key=1", ONE), ("/?key=2", OTHER), ("/?key=2", ONE)] {
        let reply = bed.get(path, &format!("{host}\n{}", range(0, 2 * MIB)));
        is_part(&reply, &body, 0, 2 * MIB);
    }
    assert_eq!(ranges_of(&bed, "/?key=1"), ["0-2097151"]);
    assert!(ranged.sent() < 3 * MIB, "{} bytes left the origin", ranged.sent());
}

#[test]
fn missing_blocks_of_a_signed_url_come_by_several_requests() {
    const BLOCKS: usize = 40;
    let (bed, ranged, body) = crate::slices::bed_with(
        Bed::with_groups(LARGE, &groups(true)),
        &["/?key=1", "/?key=2"],
        &FRESH.replace("max-age=60", "no-store"),
        BLOCKS * MIB,
    );
    // The block in the middle is there, so the rest comes in runs.
    let reply = bed.get("/?key=1", &format!("{ONE}\n{}", range(20 * MIB, 21 * MIB)));
    is_part(&reply, &body, 20 * MIB, 21 * MIB);
    let reply = bed.get("/?key=2", &format!("{OTHER}\n{}", range(0, BLOCKS * MIB)));
    is_part(&reply, &body, 0, BLOCKS * MIB);
    assert!(ranged.sent() < (BLOCKS + 1) * MIB, "{} bytes left the origin", ranged.sent());
}
