//! The format of heads.

use object_rules::Life;
use object_store::{Head, HeadError, Kind, MAX_FIELDS, MAX_HEAD, Placed, decode, encode};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::head;

fn piece() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

fn life() -> impl Strategy<Value = Life> {
    (any::<[u64; 5]>(), any::<[bool; 3]>()).prop_map(|(times, flags)| Life {
        received_s: times[0],
        initial_age_s: times[1],
        lifetime_s: times[2],
        stale_while_revalidate_s: times[3],
        stale_if_error_s: times[4],
        always_validate: flags[0],
        never_stale: flags[1],
        public: flags[2],
    })
}

fn placed() -> impl Strategy<Value = Placed> {
    let fields = vec((piece(), piece()), 0..20);
    let numbers = (any::<u16>(), 0..1_u64 << 40, 0..100_u64, any::<u64>());
    let is_sliced = any::<bool>();
    (piece(), fields, life(), vec(piece(), 0..5), (numbers, is_sliced)).prop_map(
        |(url, fields, life, vary, numbers)| {
            let ((status, length, pads, stamp), is_sliced) = numbers;
            let (kind, status) = if is_sliced { (Kind::Slices, 200) } else { (Kind::Object, status) };
            let length = length + u64::from(is_sliced);
            let head = Head { kind, url, status, fields, life, vary, length };
            Placed { head, body_at: pads * 512, stamp }
        },
    )
}

proptest! {
    #[test]
    fn a_head_is_read_as_it_was_written(placed in placed(), more in piece()) {
        let mut bytes = encode(&placed).unwrap();
        bytes.extend(more);
        prop_assert_eq!(decode(&bytes), Ok(placed));
    }

    #[test]
    fn a_changed_head_is_refused(placed in placed(), at: prop::sample::Index, flip in 1..=u8::MAX) {
        let mut bytes = encode(&placed).unwrap();
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn a_cut_head_is_short(placed in placed(), at: prop::sample::Index) {
        let bytes = encode(&placed).unwrap();
        prop_assert_eq!(decode(&bytes[..at.index(bytes.len())]), Err(HeadError::Short));
    }

    #[test]
    fn foreign_bytes_are_refused(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(decode(&bytes).is_err());
    }

    /// The checksum is right here, so the contents are parsed.
    #[test]
    fn contents_that_are_no_head_are_refused_or_written_back(text in vec(any::<u8>(), 0..200), kind in 0..4_u8) {
        use sha2::{Digest, Sha256};
        let text: Vec<u8> = [kind].into_iter().chain(text).collect();
        let mut bytes = b"LHO1".to_vec();
        bytes.extend((u32::try_from(text.len()).unwrap()).to_le_bytes());
        bytes.extend(&Sha256::digest(&text)[..16]);
        bytes.extend(&text);
        if let Ok(placed) = decode(&bytes) {
            prop_assert_eq!(encode(&placed).unwrap(), bytes);
        }
    }
}

fn place(head: Head) -> Placed {
    Placed { head, body_at: 512, stamp: 1 }
}

#[test]
fn a_head_beyond_the_limits_is_not_written() {
    let mut large = head(1);
    large.fields = vec![(b"a".to_vec(), vec![b'b'; MAX_HEAD])];
    assert_eq!(encode(&place(large)), Err(HeadError::TooLarge));
    let mut many = head(1);
    many.fields = vec![(b"a".to_vec(), b"b".to_vec()); MAX_FIELDS];
    assert!(encode(&place(many.clone())).is_ok());
    many.fields.push((b"a".to_vec(), b"b".to_vec()));
    assert_eq!(encode(&place(many)), Err(HeadError::TooLarge));
}

#[test]
fn the_largest_head_is_read_back() {
    let mut large = head(1);
    let mut size = MAX_HEAD;
    let bytes = loop {
        large.fields = vec![(b"a".to_vec(), vec![b'b'; size])];
        match encode(&place(large.clone())) {
            Ok(bytes) => break bytes,
            Err(_) => size -= 1,
        }
    };
    assert_eq!(bytes.len(), MAX_HEAD);
    assert_eq!(decode(&bytes).unwrap().head, large);
}

#[test]
fn a_length_that_no_file_has_is_refused() {
    let mut long = head(1);
    long.length = u64::MAX - 100;
    assert_eq!(encode(&place(long)), Err(HeadError::Malformed));
}

#[test]
fn blocks_belong_to_a_body_with_a_length_and_the_status_200() {
    let sliced = Head { kind: Kind::Slices, length: 1 << 20, ..head(1) };
    assert!(encode(&place(sliced.clone())).is_ok());
    for wrong in [
        Head { length: 0, ..sliced.clone() },
        Head { length: (1 << 40) + 1, ..sliced.clone() },
        Head { status: 206, ..sliced },
    ] {
        assert_eq!(encode(&place(wrong)), Err(HeadError::Malformed));
    }
}

#[test]
fn a_body_begins_at_a_multiple_of_512() {
    assert_eq!(encode(&Placed { head: head(1), body_at: 513, stamp: 1 }), Err(HeadError::Malformed));
}
