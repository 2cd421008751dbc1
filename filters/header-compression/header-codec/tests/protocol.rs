//! Behaviour of the two ends in normal operation. The other end may also be old, new, absent, restarted or forgetful.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // clippy.toml does not recognise test helpers

mod pair;

use header_codec::{Count, FIELD, GroundEnd, RETRY, RemoteEnd, hello};
use pair::{Crossing, Pair, dictionary, fields, get, ok, value};
use std::time::Duration;

#[track_caller]
fn assert_delivered(crossing: &Crossing, request: &header_codec::FieldList, response: &header_codec::FieldList) {
    assert_eq!(crossing.at_origin, std::slice::from_ref(request), "the origin gets the request once, as it was sent");
    assert_eq!(&crossing.at_client, response, "the client gets the response as it was sent");
}

#[test]
fn headers_arrive_as_they_were_and_only_one_field_of_them_crosses_the_pipe() {
    let mut pair = Pair::new();
    let request = fields(&[
        (":authority", "www.example.org"),
        (":path", "/a?b=c&d=%20"),
        (":method", "GET"),
        (":scheme", "http"),
        ("X-Mixed-Case", "kept"),
        ("cookie", "a=1; b=2;c=3; ; d="),
        ("x-twice", "1"),
        ("cookie", "e=5"),
        ("x-twice", "1"),
        ("x-empty", ""),
    ]);
    let mut response = ok();
    response.push((b"x-bytes".to_vec(), b"\x80\xff \t caf\xe9".to_vec()));
    response.push((b"set-cookie".to_vec(), b"a=1; path=/".to_vec()));
    response.push((b"set-cookie".to_vec(), b"b=2; expires=Sun, 06 Nov 2044 08:49:37 GMT".to_vec()));
    for round in 0..5 {
        let crossing = pair.exchange(&request, &response);
        assert_delivered(&crossing, &request, &response);
        let [sent] = crossing.requests.as_slice() else { panic!("sent once") };
        let names: Vec<_> = sent.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
        assert_eq!(names, [":method", ":scheme", ":authority", ":path", FIELD]);
        assert_eq!(value(sent, ":authority"), Some(&b"-"[..]));
        let [answer] = crossing.responses.as_slice() else { panic!("answered once") };
        let names: Vec<_> = answer.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
        assert_eq!(names, [":status", "date", FIELD]);
        if round > 0 {
            let bytes = crossing.packed_request().unwrap().len() + crossing.packed_response().unwrap().len();
            assert!(bytes < 20, "what repeats costs a few bytes, not {bytes}");
        }
    }
}

#[test]
fn fields_of_one_hop_do_not_cross() {
    let mut pair = Pair::new();
    let mut request = get("www.example.org", "/");
    request.push((b"connection".to_vec(), b"keep-alive".to_vec()));
    let mut response = ok();
    response.push((b"transfer-encoding".to_vec(), b"chunked".to_vec()));
    let crossing = pair.exchange(&request, &response);
    assert_delivered(&crossing, &get("www.example.org", "/"), &ok());
}

#[test]
fn upgrades_and_tunnels_are_left_alone() {
    let mut pair = Pair::new();
    let mut websocket = get("www.example.org", "/chat");
    websocket.push((b"upgrade".to_vec(), b"websocket".to_vec()));
    let tunnel = fields(&[(":method", "CONNECT"), (":authority", "www.example.org:443")]);
    for request in [websocket, tunnel] {
        let crossing = pair.exchange(&request, &ok());
        assert_delivered(&crossing, &request, &ok());
        assert_eq!(crossing.requests, [request]);
        assert_eq!(crossing.responses, [ok()]);
    }
    assert_eq!(pair.counted(Count::PlainUpgrade), (2, 0));
}

#[test]
fn a_ground_that_does_not_speak_it_gets_plain_headers_after_one_try_and_an_offer_a_minute() {
    let mut pair = Pair::new();
    pair.ground = None;
    let request = get("www.example.org", "/");
    let first = pair.exchange(&request, &ok());
    assert_delivered(&first, &request, &ok());
    assert_eq!(first.requests.len(), 2, "compressed, then plain");
    for _ in 0..3 {
        let later = pair.exchange(&request, &ok());
        assert_delivered(&later, &request, &ok());
        assert_eq!(later.requests, std::slice::from_ref(&request));
    }
    pair.now += Duration::from_secs(61);
    let offer = pair.exchange(&request, &ok());
    assert_eq!(value(&offer.requests[0], FIELD), Some(&*hello()));
    assert_eq!(offer.at_client, ok());
    // The ground has gained support in the meantime.
    pair.now += Duration::from_secs(61);
    pair.ground = Some(GroundEnd::new(dictionary(), 16));
    let taken_up = pair.exchange(&request, &ok());
    assert_delivered(&taken_up, &request, &ok());
    let packed = pair.exchange(&request, &ok());
    assert_delivered(&packed, &request, &ok());
    assert!(packed.packed_request().is_some());
}

#[test]
fn a_remote_without_the_protocol_never_gets_a_compressed_field() {
    let mut pair = Pair::new();
    let request = get("www.example.org", "/");
    let mut response = ok();
    response.push((FIELD.as_bytes().to_vec(), b"from an origin".to_vec()));
    response.push((RETRY.as_bytes().to_vec(), b"from an origin".to_vec()));
    let (answer, at_origin) = pair.answer(&request, &response);
    assert_eq!(at_origin, Some(request));
    assert_eq!(answer, ok());
}

#[test]
fn nothing_is_tried_on_an_unknown_ground_that_could_not_be_taken_back() {
    for (method, body) in [("POST", true), ("DELETE", false), ("GET", true)] {
        let mut pair = Pair::new();
        let mut request = get("www.example.org", "/form");
        request[2].1 = method.as_bytes().to_vec();
        request.push((b"content-length".to_vec(), b"100".to_vec()));
        let offered = pair.exchange_with_body(&request, body, &ok());
        assert_delivered(&offered, &request, &ok());
        assert_eq!(value(&offered.requests[0], FIELD), Some(&*hello()), "{method} goes plain with an offer");
        let packed = pair.exchange_with_body(&request, body, &ok());
        assert_delivered(&packed, &request, &ok());
        assert_eq!(value(&packed.requests[0], ":authority"), Some(&b"-"[..]), "the offer was taken up");
    }
}

#[test]
fn a_body_that_the_proxy_might_not_keep_travels_under_plain_headers() {
    let mut pair = Pair::new();
    pair.exchange(&get("www.example.org", "/"), &ok());
    let mut post = get("www.example.org", "/upload");
    post[2].1 = b"POST".to_vec();
    post.push((b"content-length".to_vec(), b"16385".to_vec()));
    let large = pair.exchange_with_body(&post, true, &ok());
    post.pop();
    let unknown = pair.exchange_with_body(&post, true, &ok());
    assert!(large.packed_request().is_none() && unknown.packed_request().is_none());
    assert_eq!(pair.counted(Count::PlainBody), (2, 0), "large, or of unknown size");
    post.push((b"content-length".to_vec(), b"16384".to_vec()));
    assert!(pair.exchange_with_body(&post, true, &ok()).packed_request().is_some());
}

/// Seed 412 of the simulation: the ground had forgotten the client, and nobody repeated the request that it refused.
#[test]
fn a_request_that_bundling_sends_again_is_plain_and_has_no_client() {
    let mut pair = Pair::new();
    pair.exchange(&get("www.example.org", "/"), &ok());
    let mut again = get("www.example.org", "/");
    again.push((b"x-longhaul-base".to_vec(), b"none".to_vec()));
    assert!(pair.exchange(&again, &ok()).packed_request().is_none());
    let of = |request: &header_codec::FieldList| {
        let list: Vec<(&[u8], &[u8])> = request.iter().map(|(name, value)| (&**name, &**value)).collect();
        header_codec::is_of_a_client(&list)
    };
    assert!(!of(&again));
    again.last_mut().unwrap().1 = b"0011223344556677".to_vec();
    assert!(pair.exchange(&again, &ok()).packed_request().is_some() && of(&again));
}

#[test]
fn a_restarted_ground_costs_one_retry_and_no_request() {
    let mut pair = Pair::new();
    let request = get("www.example.org", "/");
    for _ in 0..3 {
        pair.exchange(&request, &ok());
    }
    pair.ground = Some(GroundEnd::new(dictionary(), 16));
    let crossing = pair.exchange(&request, &ok());
    assert_delivered(&crossing, &request, &ok());
    assert_eq!(crossing.requests.len(), 2);
    assert_eq!(pair.counted(Count::RetriedHistory), (1, 0));
    for _ in 0..3 {
        let crossing = pair.exchange(&request, &ok());
        assert_delivered(&crossing, &request, &ok());
        assert_eq!(crossing.requests.len(), 1);
    }
}

#[test]
fn a_restarted_remote_on_the_same_connection_costs_no_retry() {
    let mut pair = Pair::new();
    let request = get("www.example.org", "/");
    for _ in 0..3 {
        pair.exchange(&request, &ok());
    }
    pair.remote = RemoteEnd::new(dictionary(), 0xface_face, 16);
    for _ in 0..4 {
        let crossing = pair.exchange(&get("www.example.org", "/other"), &ok());
        assert_delivered(&crossing, &get("www.example.org", "/other"), &ok());
        assert_eq!(crossing.requests.len(), 1);
    }
}

#[test]
fn a_new_connection_begins_anew_and_the_old_one_is_still_good() {
    let mut pair = Pair::new();
    let request = get("www.example.org", "/");
    for pipe in ["127.0.0.1:40001", "127.0.0.1:40002", "127.0.0.1:40001", "127.0.0.1:40002"] {
        pair.pipe = Some(pipe);
        for _ in 0..3 {
            let crossing = pair.exchange(&request, &ok());
            assert_delivered(&crossing, &request, &ok());
            assert_eq!(crossing.requests.len(), 1);
        }
    }
    assert_eq!(pair.counted(Count::Referring), (10, 0), "only the first on each connection refers to nothing");
}

#[test]
fn a_connection_whose_port_is_used_again_by_another_worker_costs_one_retry() {
    let mut pair = Pair::new();
    let request = get("www.example.org", "/");
    for _ in 0..3 {
        pair.exchange(&request, &ok());
    }
    // The ground identifies connections by its own numbers, so this one is new to it.
    let other_worker = GroundEnd::new(dictionary(), 16);
    pair.ground = Some(other_worker);
    let crossing = pair.exchange(&request, &ok());
    assert_delivered(&crossing, &request, &ok());
    assert_eq!(crossing.requests.len(), 2);
}

#[test]
fn more_clients_than_the_ends_remember_lose_savings_and_nothing_else() {
    const CLIENTS: [&str; 24] = [
        "192.0.2.1",
        "192.0.2.2",
        "192.0.2.3",
        "192.0.2.4",
        "192.0.2.5",
        "192.0.2.6",
        "192.0.2.7",
        "192.0.2.8",
        "192.0.2.9",
        "192.0.2.10",
        "192.0.2.11",
        "192.0.2.12",
        "192.0.2.13",
        "192.0.2.14",
        "192.0.2.15",
        "192.0.2.16",
        "192.0.2.17",
        "192.0.2.18",
        "192.0.2.19",
        "192.0.2.20",
        "192.0.2.21",
        "192.0.2.22",
        "192.0.2.23",
        "192.0.2.24",
    ];
    for (at_remote, at_ground) in [(3, 16), (16, 3), (1, 1), (4, 4)] {
        let mut pair = Pair::new();
        pair.remote = RemoteEnd::new(dictionary(), 7, at_remote);
        pair.ground = Some(GroundEnd::new(dictionary(), at_ground));
        for round in 0..600_usize {
            pair.client = CLIENTS[(round * 7 + round / 5) % CLIENTS.len()];
            let request = get(&format!("www.{}.example.org", pair.client), &format!("/{round}"));
            let crossing = pair.exchange(&request, &ok());
            assert_delivered(&crossing, &request, &ok());
        }
        assert_eq!(pair.counted(Count::Undecodable).0, 0);
    }
}

#[test]
fn a_ground_of_another_version_gets_plain_headers() {
    let mut pair = Pair::new();
    let request = get("www.example.org", "/");
    let mut headers = request.clone();
    let stream = pair.send(&mut headers, false);
    // The first digit holds eight times the format. A ground of another format sends this refusal.
    let refusal = fields(&[(":status", "421"), (FIELD, "\"!")]);
    let mut refusal = refusal;
    refusal[1].1 = header_codec::Refusal::Format.field();
    let retried = pair.receive(stream, refusal);
    assert!(value(&retried, RETRY).is_some());
    pair.send(&mut headers, false);
    assert_eq!(headers, request);
}

#[test]
fn a_message_of_another_version_is_refused_as_such() {
    let mut pair = Pair::new();
    let mut headers = get("www.example.org", "/");
    pair.send(&mut headers, false);
    let packed = headers.last_mut().unwrap();
    packed.1[0] += 8;
    let (answer, at_origin) = pair.answer(&headers, &ok());
    assert_eq!(at_origin, None);
    assert_eq!(value(&answer, ":status"), Some(&b"421"[..]));
    assert_eq!(header_codec::Refusal::read(value(&answer, FIELD).unwrap()), Some(header_codec::Refusal::Format));
    assert_eq!(pair.counted(Count::RefusedFormat), (0, 1));
}

#[test]
fn a_proxy_that_answers_in_the_place_of_a_known_ground_is_asked_again_plainly_for_what_is_safe() {
    for (method, again) in [("GET", true), ("POST", false)] {
        let mut pair = Pair::new();
        pair.exchange(&get("www.example.org", "/"), &ok());
        let mut request = get("www.example.org", "/");
        request[2].1 = method.as_bytes().to_vec();
        let mut headers = request.clone();
        let stream = pair.send(&mut headers, false);
        let overloaded = fields(&[(":status", "503"), ("content-length", "0")]);
        let received = pair.receive(stream, overloaded.clone());
        assert_eq!(value(&received, RETRY).is_some(), again, "an origin may have seen a {method}");
        if again {
            pair.send(&mut headers, false);
            assert_eq!(headers, request);
        } else {
            assert_eq!(received, overloaded);
        }
    }
}

#[test]
fn an_origin_forges_the_grounds_consent() {
    for says_so in [false, true] {
        let mut pair = Pair::new();
        (pair.ground, pair.says_so) = (None, says_so);
        let mut forged = ok();
        forged.push((FIELD.as_bytes().to_vec(), hello()));
        let request = get("www.example.org", "/");
        assert_delivered(&pair.exchange(&request, &forged), &request, &ok());
        for second in 0..300 {
            pair.now += Duration::from_secs(1);
            let crossing = pair.exchange(&request, &forged);
            assert_eq!(crossing.at_client, ok());
            assert_eq!(crossing.at_origin.len(), 1);
            let offered = value(&crossing.requests[0], FIELD) == Some(&*hello());
            // A ground that removes the fields of origins lets no forgery through even then.
            assert!(crossing.requests.len() == 1 || second > 58, "nothing is compressed before an offer");
            assert!(!offered || second > 58);
        }
    }
}

#[test]
fn a_ground_reloaded_without_packing_costs_a_remote_no_request() {
    let mut post = get("www.example.org", "/form");
    post[2].1 = b"POST".to_vec();
    post.push((b"content-length".to_vec(), b"16384".to_vec()));
    for request in [get("www.example.org", "/"), post] {
        let mut pair = Pair::new();
        for _ in 0..3 {
            pair.exchange_with_body(&get("www.example.org", "/"), false, &ok());
        }
        (pair.ground, pair.says_so) = (None, true);
        let body = value(&request, ":method") == Some(b"POST");
        let first = pair.exchange_with_body(&request, body, &ok());
        assert_delivered(&first, &request, &ok());
        assert_eq!(first.requests.len(), 2, "compressed, then plain");
        let second = pair.exchange_with_body(&request, body, &ok());
        assert_delivered(&second, &request, &ok());
        assert_eq!(second.requests, std::slice::from_ref(&request));
    }
}

#[test]
fn the_refusal_that_a_grounds_route_holds_is_the_one_that_remotes_read() {
    // `envoy-config/render/templates/rds_pipe.yaml.j2` holds it as text.
    assert_eq!(header_codec::Refusal::Format.field(), b",!");
}

#[test]
fn a_response_too_large_to_pack_travels_plain() {
    let mut pair = Pair::new();
    let request = get("www.example.org", "/");
    let mut large = ok();
    large.extend((0..600).map(|number| (format!("x-{number}").into_bytes(), b"1".to_vec())));
    for _ in 0..2 {
        let crossing = pair.exchange(&request, &large);
        assert_delivered(&crossing, &request, &large);
    }
    assert_eq!(pair.counted(Count::PlainBlock), (0, 2));
}

#[test]
fn a_request_too_large_to_pack_travels_plain() {
    let mut pair = Pair::new();
    let mut large = get("www.example.org", "/");
    large.extend((0..600).map(|number| (format!("x-{number}").into_bytes(), b"1".to_vec())));
    let crossing = pair.exchange(&large, &ok());
    assert_delivered(&crossing, &large, &ok());
    assert_eq!(pair.counted(Count::PlainBlock), (1, 0));
}

#[test]
fn internal_fields_from_clients_and_origins_are_removed() {
    let mut pair = Pair::new();
    let mut request = get("www.example.org", "/");
    let mut response = ok();
    for name in [FIELD, RETRY] {
        request.push((name.as_bytes().to_vec(), b"forged".to_vec()));
        response.push((name.as_bytes().to_vec(), b"forged".to_vec()));
    }
    for _ in 0..2 {
        let crossing = pair.exchange(&request, &response);
        assert_delivered(&crossing, &get("www.example.org", "/"), &ok());
        assert_eq!(crossing.requests.len(), 1);
    }
}

#[test]
fn a_client_learns_nothing_from_the_compressed_field_of_another() {
    let mut pair = Pair::new();
    let mut secret = get("bank.example", "/account");
    secret.push((b"cookie".to_vec(), b"session=secret".to_vec()));
    let mut on_the_pipe = secret.clone();
    let _under_way = pair.send(&mut on_the_pipe, false);
    let stolen = on_the_pipe.last().unwrap().clone();
    pair.client = "192.0.2.66";
    let mut request = get("www.example.org", "/");
    request.push(stolen);
    let crossing = pair.exchange(&request, &ok());
    assert_delivered(&crossing, &get("www.example.org", "/"), &ok());
}
