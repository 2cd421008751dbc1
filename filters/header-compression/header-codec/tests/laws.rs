//! Laws of the codec, tested on random headers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // clippy.toml does not recognise test helpers

mod pair;

use header_codec::{FieldList, GroundEnd, RemoteEnd};
use pair::{Pair, dictionary, value};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// Names with a policy of their own, and one without.
const NAMES: [&str; 22] = [
    "accept",
    "age",
    "authorization",
    "cache-control",
    "content-length",
    "content-security-policy",
    "cookie",
    "date",
    "etag",
    "expires",
    "if-modified-since",
    "if-none-match",
    "last-modified",
    "location",
    "referer",
    "server",
    "set-cookie",
    "user-agent",
    "vary",
    "via",
    "X-Unheard-Of",
    "x-forwarded-proto",
];

/// Generates values of each form that the codec knows, and others.
fn any_value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => select(vec![
            "", "1", "0", "007", "99999999999999999999", "gzip, deflate", "a=b; c=d", "a=b;c=d; ", "; ", "; ; ",
            "Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT",
            "max-age=0", "max-age=31536000, public", "max-age=99999999999999999999", "\"abc\"", "W/\"abc\"",
            "http://www.example.org/a/b?c=d", "https://www.example.net/", "sid=0123456789abcdef; path=/; HttpOnly",
            "sid=; path=/", "=", "==", "name=value=more",
        ]).prop_map(|text| text.as_bytes().to_vec()),
        3 => "[a-z0-9/?&=.;, -]{0,40}".prop_map(String::into_bytes),
        2 => vec(prop_oneof![0x20..=0x7e_u8, 0x80..=0xff_u8, Just(b'\t')], 0..60),
        1 => (1..40_usize).prop_map(|times| "default-src 'self' a.example; ".repeat(times).into_bytes()),
    ]
}

fn any_fields(pseudo: Vec<(&'static str, Vec<&'static str>)>) -> impl Strategy<Value = FieldList> {
    let values: Vec<_> = pseudo.iter().map(|(_, values)| select(values.clone())).collect();
    let names: Vec<_> = pseudo.into_iter().map(|(name, _)| name).collect();
    let fields = vec((select(NAMES.to_vec()), any_value()), 0..12);
    (values, fields).prop_map(move |(values, fields)| {
        let pseudo =
            names.iter().zip(values).map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        pseudo.chain(fields.into_iter().map(|(name, value)| (name.as_bytes().to_vec(), value))).collect()
    })
}

fn any_request() -> impl Strategy<Value = FieldList> {
    any_fields(vec![
        (":authority", vec!["www.example.org", "img.example.org:8080", "bank.example", "192.0.2.7", ""]),
        (":path", vec!["/", "/a", "/a/b?c=d", "*", "/a/b?c=e&f=g", "/\u{e9}"]),
        (":method", vec!["GET", "POST", "HEAD", "PATCH"]),
        (":scheme", vec!["http", "https"]),
    ])
}

fn any_response() -> impl Strategy<Value = FieldList> {
    any_fields(vec![(":status", vec!["200", "304", "404", "999"])])
}

fn bytes_of(fields: &FieldList) -> usize {
    fields.iter().map(|(name, value)| name.len() + value.len()).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_header_list_arrives_as_it_was_sent_whatever_went_before(
        exchanges in vec((any_request(), any_response(), 0..3_usize), 1..12)
    ) {
        const CLIENTS: [&str; 3] = ["192.0.2.1", "192.0.2.2", "2001:db8::1"];
        let mut pair = Pair::new();
        for (request, response, client) in &exchanges {
            pair.client = CLIENTS[*client];
            let crossing = pair.exchange(request, response);
            prop_assert_eq!(&crossing.at_origin, std::slice::from_ref(request));
            prop_assert_eq!(&crossing.at_client, response);
            prop_assert_eq!(crossing.requests.len(), 1, "and never has to be sent again");
        }
    }

    #[test]
    fn packed_headers_are_never_larger_than_plain_ones_and_hold_only_bytes_that_pass(
        exchanges in vec((any_request(), any_response()), 1..6)
    ) {
        let mut pair = Pair::new();
        for (request, response) in &exchanges {
            let crossing = pair.exchange(request, response);
            let sent = [(crossing.packed_request(), request), (crossing.packed_response(), response)];
            for (field, headers) in sent.into_iter().filter_map(|(field, headers)| Some((field?, headers))) {
                // Plain headers take two more bytes for each field, and the compressed field is a single one.
                prop_assert!(field.len() <= bytes_of(headers) + 2 * headers.len());
                prop_assert!(field.iter().all(|byte| matches!(byte, 0x21..=0x7e | 0x80..=0xff)));
            }
        }
    }

    #[test]
    fn the_same_headers_pack_to_the_same_bytes(exchanges in vec((any_request(), any_response()), 1..6)) {
        let run = || {
            let mut pair = Pair::new();
            let crossings = exchanges.iter().map(|(request, response)| pair.exchange(request, response));
            crossings.map(|crossing| (crossing.requests, crossing.responses)).collect::<Vec<_>>()
        };
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn requests_under_way_together_and_answered_in_any_order_arrive(
        requests in vec((any_request(), any_response(), any::<u16>()), 2..14),
        restart in any::<Option<u8>>(),
    ) {
        let mut pair = Pair::new();
        pair.exchange(&pair::get("www.example.org", "/"), &pair::ok());
        let mut under_way = Vec::new();
        for (number, (request, response, order)) in requests.iter().enumerate() {
            if restart.is_some_and(|at| usize::from(at) == number) {
                pair.ground = Some(GroundEnd::new(dictionary(), 4));
            }
            let mut headers = request.clone();
            let stream = pair.send(&mut headers, false);
            let (answer, _) = pair.answer(&headers, response);
            under_way.push((*order, request, response, headers, stream, answer));
        }
        under_way.sort_by_key(|(order, ..)| *order);
        for (_, request, response, mut headers, stream, answer) in under_way {
            let mut at_client = pair.receive(stream, answer);
            for _ in 0..2 {
                if value(&at_client, header_codec::RETRY).is_none() {
                    break;
                }
                let stream = pair.send(&mut headers, false);
                let (answer, at_origin) = pair.answer(&headers, response);
                if let Some(at_origin) = at_origin {
                    prop_assert_eq!(&at_origin, request);
                }
                at_client = pair.receive(stream, answer);
            }
            prop_assert_eq!(&at_client, response);
        }
        // Later exchanges work.
        for (request, response, _) in &requests {
            let crossing = pair.exchange(request, response);
            prop_assert_eq!(&crossing.at_client, response);
        }
    }

    #[test]
    fn a_remote_that_restarts_never_gets_another_ones_headers(
        exchanges in vec((any_request(), any_response(), any::<bool>()), 2..12)
    ) {
        let mut pair = Pair::new();
        for (number, (request, response, restart)) in exchanges.iter().enumerate() {
            if *restart {
                pair.remote = RemoteEnd::new(dictionary(), u32::try_from(number).unwrap(), 2);
            }
            let crossing = pair.exchange(request, response);
            prop_assert_eq!(&crossing.at_origin, std::slice::from_ref(request));
            prop_assert_eq!(&crossing.at_client, response);
        }
    }
}

const PIPES: [&str; 3] = ["127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"];
const CLIENTS: [&str; 5] = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"];

#[test]
fn nothing_about_a_ground_that_forgets_at_random_loses_a_request() {
    // A fixed generator, so that a failure can be repeated.
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut pair = Pair::new();
    pair.remote = RemoteEnd::new(dictionary(), 1, 4);
    pair.ground = Some(GroundEnd::new(dictionary(), 6));
    let mut attempts = 0;
    for round in 0..3000 {
        pair.client = CLIENTS[random(CLIENTS.len())];
        pair.pipe = if random(20) == 0 { None } else { Some(PIPES[random(PIPES.len())]) };
        match random(200) {
            0 => pair.ground = Some(GroundEnd::new(dictionary(), 6)),
            1 => pair.remote = RemoteEnd::new(dictionary(), round, 4),
            // A client disconnects before its response arrives.
            2..12 => {
                let mut headers = pair::get("www.example.org", "/gone");
                let _ = pair.send(&mut headers, false);
                if random(2) == 0 {
                    pair.answer(&headers, &pair::ok());
                }
            }
            _ => {}
        }
        let request = pair::get(["a.example.org", "b.example.net"][random(2)], &format!("/{}", random(50)));
        let mut response = pair::ok();
        response.push((b"etag".to_vec(), format!("\"{}\"", random(9)).into_bytes()));
        let crossing = pair.exchange(&request, &response);
        assert_eq!(crossing.at_origin, [request], "round {round}");
        assert_eq!(crossing.at_client, response, "round {round}");
        attempts += crossing.requests.len();
    }
    assert!(attempts < 3300, "{attempts} attempts for 3000 requests");
}
