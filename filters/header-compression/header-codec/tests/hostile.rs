//! Messages that no encoder wrote: truncated, changed or invented. The decoder refuses each with a reason, and none
//! costs more than the limits allow.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // clippy.toml does not recognise test helpers

mod pair;

use header_codec::{DecodeError, Dictionary, Ground, Refusal, Remote, limits};
use pair::{Pair, dictionary, get, ok, value};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Sends a few requests of one client. Returns the field of each, and a ground that has decompressed all but the last.
fn some_requests() -> (Vec<Vec<u8>>, Ground) {
    let mut remote = Remote::new(dictionary(), 77, 4);
    let mut ground = Ground::new(dictionary(), 4);
    let mut sent = Vec::new();
    for number in 0..6 {
        let mut request = get("www.example.org", &format!("/images/photo-{number}.jpg"));
        request.push((b"cookie".to_vec(), b"session=0123456789abcdef; theme=dark".to_vec()));
        request.push((b"x-policy".to_vec(), "default-src 'self' img-src * ".repeat(20).into_bytes()));
        let block = block(&request);
        let (field, pending) = remote.pack(b"192.0.2.1", Some(b"pipe"), Rc::new(block)).unwrap();
        sent.push(field.clone());
        if number < 5 {
            let answering = ground.unpack(b"pipe", &field).unwrap();
            let answer = ground.pack(answering, block_of_ok()).unwrap();
            remote.unpack(pending, b"pipe", &answer).unwrap();
        }
    }
    (sent, ground)
}

fn block(fields: &header_codec::FieldList) -> header_codec::Block {
    header_codec::Block::from_fields(pair::borrowed(fields)).unwrap()
}

fn block_of_ok() -> header_codec::Block {
    block(&ok())
}

#[test]
fn a_message_cut_short_anywhere_is_refused() {
    let (sent, mut ground) = some_requests();
    for field in [&sent[0], &sent[5]] {
        for length in 0..field.len() {
            let outcome = ground.unpack(b"pipe", &field[..length]);
            assert!(outcome.is_err(), "{length} of {} bytes: {outcome:?}", field.len());
        }
        assert!(ground.unpack(b"pipe", field).is_ok());
    }
}

#[test]
fn a_message_with_a_byte_changed_never_unpacks_to_something_else_unnoticed() {
    let (sent, mut ground) = some_requests();
    let mut survived = 0;
    let mut tried = 0;
    for field in [&sent[0], &sent[5]] {
        let original = ground.unpack(b"pipe", field).unwrap().request().to_fields();
        for at in 0..field.len() {
            for change in [1_u8, 7, 64] {
                let mut changed = field.clone();
                changed[at] = changed[at].wrapping_add(change);
                tried += 1;
                // The check has 16 bits: one change in 65,536 may survive.
                survived +=
                    u32::from(ground.unpack(b"pipe", &changed).is_ok_and(|it| it.request().to_fields() != original));
            }
        }
    }
    assert!(survived <= 1, "{survived} of {tried}");
}

#[test]
fn bytes_of_no_message_are_named() {
    let mut ground = Ground::new(dictionary(), 4);
    for (field, error) in [
        (&b""[..], DecodeError::Empty),
        (b" ", DecodeError::Alphabet(b' ')),
        (b"\0", DecodeError::Alphabet(0)),
        (b"\x7f", DecodeError::Alphabet(0x7f)),
        (b"!", DecodeError::UnknownFormat(0)),
        (b"\xff\xff", DecodeError::UnknownFormat(27)),
        (b"+", DecodeError::UnexpectedKind(2)),
        (b".", DecodeError::UnexpectedKind(5)),
    ] {
        assert_eq!(ground.unpack(b"pipe", field).unwrap_err(), error, "{field:?}");
    }
    let (sent, _) = some_requests();
    assert_eq!(ground.unpack(b"pipe", &sent[5]).unwrap_err(), DecodeError::UnknownHistory);
    let long = [vec![b')'], vec![b'x'; limits::MESSAGE_BYTES]].concat();
    assert_eq!(ground.unpack(b"pipe", &long).unwrap_err(), DecodeError::TooLarge);
}

#[test]
fn invented_messages_are_refused_in_bounded_time() {
    let (_, mut ground) = some_requests();
    let mut state = 7_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u8::try_from(state >> 56).unwrap()
    };
    let alphabet: Vec<u8> = (0x21..=0x7e).chain(0x80..=0xff).collect();
    let mut slowest = Duration::ZERO;
    for round in 0..4000_usize {
        let kind = [b')', b'*'][round % 2];
        let length = [3, 20, 200, 2000][round % 4];
        let mut field = vec![kind];
        for _ in 0..length {
            // Repeating one digit forces the same side of every decision, which makes the longest texts.
            let digit = if round % 3 == 0 { alphabet[usize::from(random()) % 222] } else { alphabet[round % 222] };
            field.push(digit);
        }
        let start = Instant::now();
        let outcome = ground.unpack(b"pipe", &field);
        slowest = slowest.max(start.elapsed());
        if let Ok(answering) = outcome {
            assert!(answering.request().bytes() <= limits::BLOCK_BYTES);
        }
    }
    assert!(slowest < Duration::from_secs(2), "the slowest took {slowest:?}");
}

#[test]
fn a_message_that_would_explode_is_refused_at_the_limit() {
    // Every exchange refers to the one before it and adds a long value, until a block would exceed the limits.
    let mut pair = Pair::new();
    let mut request = get("www.example.org", "/");
    for number in 0..40 {
        request.push((format!("x-{number}").into_bytes(), vec![b'a'; 4000]));
        let crossing = pair.exchange(&request, &ok());
        assert_eq!(crossing.at_origin, [request.clone()], "with {number} long values");
        if let Some(field) = crossing.packed_request() {
            assert!(
                pair::borrowed(&request).iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
                    <= limits::BLOCK_BYTES
            );
            assert!(field.len() < 4000);
        }
    }
}

#[test]
fn a_brotli_stream_that_lies_about_its_length_is_refused() {
    let mut remote = Remote::new(dictionary(), 77, 4);
    let mut request = get("www.example.org", "/");
    request.push((b"x-policy".to_vec(), "default-src 'self' img-src * ".repeat(40).into_bytes()));
    let (field, _) = remote.pack(b"192.0.2.1", None, Rc::new(block(&request))).unwrap();
    let mut ground = Ground::new(dictionary(), 4);
    let original = ground.unpack(b"pipe", &field).unwrap().request().to_fields();
    let mut survived = 0;
    // Every single change in the second half, which holds the lengths and the stream.
    for at in field.len() / 2..field.len() {
        for byte in (0x21..=0x7e).chain(0x80..=0xff) {
            let mut changed = field.clone();
            changed[at] = byte;
            let outcome = ground.unpack(b"pipe", &changed);
            survived += u32::from(outcome.is_ok_and(|it| it.request().to_fields() != original));
        }
    }
    assert!(survived <= 2, "the check of 16 bits let {survived} changes pass");
}

#[test]
fn a_response_to_another_request_is_refused() {
    let mut remote = Remote::new(dictionary(), 77, 4);
    let mut ground = Ground::new(dictionary(), 4);
    let mut pack =
        |client: &[u8], path: &str| remote.pack(client, None, Rc::new(block(&get("www.example.org", path)))).unwrap();
    let (one, pending_one) = pack(b"192.0.2.1", "/1");
    let (other, pending_other) = pack(b"192.0.2.2", "/2");
    let answering = ground.unpack(b"pipe", &one).unwrap();
    let answer = ground.pack(answering, block_of_ok()).unwrap();
    ground.unpack(b"pipe", &other).unwrap();
    assert_eq!(remote.unpack(pending_other, b"pipe", &answer).unwrap_err(), DecodeError::CheckFailed);
    assert!(remote.unpack(pending_one, b"pipe", &answer).is_ok());
}

#[test]
fn a_ground_that_answers_nonsense_costs_that_response_only() {
    let mut pair = Pair::new();
    pair.exchange(&get("www.example.org", "/"), &ok());
    let mut headers = get("www.example.org", "/2");
    let stream = pair.send(&mut headers, false);
    let nonsense = pair::fields(&[(":status", "200"), (header_codec::FIELD, "+nonsense")]);
    let at_client = pair.receive(stream, nonsense);
    assert_eq!(value(&at_client, ":status"), Some(&b"502"[..]));
    let crossing = pair.exchange(&get("www.example.org", "/3"), &ok());
    assert_eq!(crossing.at_client, ok());
}

#[test]
fn headers_that_would_break_the_connection_do_not_leave_a_ground() {
    for (name, bad) in [("x", "a\r\nb"), ("x", "\0"), ("x y", "1"), ("", "1"), (":path", "/\n"), ("x", "\x7f")] {
        let mut remote = Remote::new(dictionary(), 77, 4);
        let mut request = get("www.example.org", "/");
        request.push((name.as_bytes().to_vec(), bad.as_bytes().to_vec()));
        let (field, _) = remote.pack(b"192.0.2.1", None, Rc::new(block(&request))).unwrap();
        let mut pair = Pair::new();
        let packed = vec![(header_codec::FIELD.as_bytes().to_vec(), field)];
        let (answer, at_origin) = pair.answer(&packed, &ok());
        assert_eq!(at_origin, None, "{name:?}: {bad:?}");
        assert!(Refusal::read(value(&answer, header_codec::FIELD).unwrap()).is_some());
    }
    // Headers that are not a request.
    let mut remote = Remote::new(dictionary(), 77, 4);
    let headless = pair::fields(&[("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")]);
    let (field, _) = remote.pack(b"192.0.2.1", None, Rc::new(block(&headless))).unwrap();
    let mut pair = Pair::new();
    let (_, at_origin) = pair.answer(&vec![(header_codec::FIELD.as_bytes().to_vec(), field)], &ok());
    assert_eq!(at_origin, None);
}

#[test]
fn a_dictionary_file_cut_short_is_no_dictionary() {
    let file = include_bytes!("../dictionaries/v1.bin");
    assert!(Dictionary::from_bytes(file).is_some());
    for length in (0..file.len()).step_by(997).chain([file.len() - 1]) {
        assert!(Dictionary::from_bytes(&file[..length]).is_none(), "{length} bytes of it");
    }
    let longer = [&file[..], &[0, 0]].concat();
    assert!(Dictionary::from_bytes(&longer).is_none());
}
