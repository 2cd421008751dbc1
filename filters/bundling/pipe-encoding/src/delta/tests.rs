//! Both ends of a pair together.

use std::io::Write as _;

use http_semantics::{Edit, FieldList, Fields, Reply, edited};
use proptest::prelude::*;
use shared_board::{Board, Memory};

use super::bases::{self, Place};
use super::{Outgoing, limits};
use crate::{Body, Event, Exchange, Response, Windows};

type Field = (&'static str, &'static str);

const GET: [Field; 4] =
    [(":method", "GET"), (":authority", "www.news.test"), (":path", "/"), ("accept", "text/html,*/*;q=0.8")];
const OK: [Field; 3] = [(":status", "200"), ("content-type", "text/html"), ("etag", "\"x\"")];

fn list(fields: &[Field]) -> FieldList {
    fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect()
}

fn changed(list: &FieldList, edits: &[Edit]) -> FieldList {
    edited(view(list), edits).to_list()
}

fn view(list: &FieldList) -> Fields<'_> {
    list.iter().map(|(name, value)| (&**name, &**value)).collect()
}

/// The boards of both ends, and the sizes of the pieces in which bodies pass.
#[derive(Default)]
struct Pair {
    remote: Memory,
    ground: Memory,
    windows: Windows,
    /// True if the remote's bases go when the response is on its way.
    loses_bases: bool,
    /// True if the last byte of the body changes on the pipe.
    damages: bool,
    /// True if the ground compresses pages with gzip on their way out.
    packs: bool,
}

/// A page as the client got it.
#[derive(Debug, PartialEq)]
struct Loaded {
    response: FieldList,
    /// None for a response that was broken off.
    page: Option<Vec<u8>>,
    on_pipe: usize,
    request_on_pipe: FieldList,
    at_remote: Vec<(Event, u64)>,
    at_ground: Vec<(Event, u64)>,
}

impl Loaded {
    fn was_delta(&self) -> bool {
        self.at_ground.contains(&(Event::Deltas, 1))
    }

    fn counted(&self, event: Event) -> bool {
        self.at_remote.contains(&(event, 1)) || self.at_ground.contains(&(event, 1))
    }
}

impl Pair {
    fn load(&self, request: &[Field], response: &[Field], page: &[u8], piece: usize, split: usize) -> Loaded {
        let from_client = list(request);
        let mut exchange = Exchange::of(&view(&from_client), &self.windows).unwrap();
        exchange.allow_delta(&self.remote, &view(&from_client), false);
        let on_pipe = changed(&from_client, &exchange.request_edits());
        let mut outgoing = Outgoing::of(&view(&on_pipe), &self.windows);
        let from_origin = list(response);
        let mut packed = Vec::new();
        let mut edits = Vec::new();
        if let Some(outgoing) = &mut outgoing {
            edits = outgoing.response(&self.ground, &view(&from_origin), !page.is_empty());
            let mut pieces = page.chunks(piece).peekable();
            while let Some(piece) = pieces.next() {
                match outgoing.body(&self.ground, piece, pieces.peek().is_none()) {
                    Body::Pass => packed.extend_from_slice(piece),
                    Body::Replace(bytes) => packed.extend_from_slice(&bytes),
                    Body::BreakOff => panic!("the ground breaks off"),
                }
            }
        } else {
            packed.extend_from_slice(page);
        }
        let mut from_ground = changed(&from_origin, &edits);
        if self.packs {
            packed = gzip(&packed);
            from_ground.extend(list(&[("content-encoding", "gzip")]));
        }
        if self.damages {
            let at = packed.len() - 1;
            packed[at] ^= 1;
        }
        if self.loses_bases {
            self.remote.retain(|_| false);
        }
        let mut loaded = Loaded {
            response: from_ground.clone(),
            page: Some(Vec::new()),
            on_pipe: packed.len(),
            request_on_pipe: on_pipe,
            at_remote: Vec::new(),
            at_ground: outgoing.as_mut().map(Outgoing::take_events).unwrap_or_default(),
        };
        match exchange.response(&self.remote, &view(&from_ground)) {
            Response::Edit(edits) => {
                loaded.response = changed(&from_ground, &edits);
                let mut got = Vec::new();
                let mut pieces = packed.chunks(split).peekable();
                while let Some(piece) = pieces.next() {
                    match exchange.body(&self.remote, piece, pieces.peek().is_none()) {
                        Body::Pass => got.extend_from_slice(piece),
                        Body::Replace(bytes) => got.extend_from_slice(&bytes),
                        Body::BreakOff => {
                            loaded.page = None;
                            break;
                        }
                    }
                }
                loaded.page = loaded.page.map(|_| got);
            }
            Response::AskAgain(request) => {
                let request: FieldList =
                    request.into_iter().map(|(name, value)| (name.into_bytes(), value.into_bytes())).collect();
                assert!(Outgoing::of(&view(&request), &self.windows).is_none(), "no second delta");
                assert_eq!(view(&request).get(super::fields::BASE_FIELD), Some(&b"none"[..]));
                loaded.request_on_pipe = request;
                let plain = list(response);
                let Reply { fields, body, status } = exchange.asked_again(Some((&view(&plain), page)));
                assert_eq!(status, 200);
                loaded.response = fields;
                loaded.page = Some(body);
            }
        }
        loaded.at_remote = exchange.take_events();
        loaded
    }

    fn first(&self) -> Loaded {
        let loaded = self.load(&GET, &OK, &page(1), 4096, 4096);
        assert!(!loaded.was_delta() && loaded.counted(Event::LeftNoBase));
        loaded
    }

    fn has_base(&self) -> bool {
        let has = |board: &dyn Board| !bases::names(board, Place::of(b"www.news.test")).is_empty();
        assert_eq!(has(&self.remote), has(&self.ground));
        has(&self.remote)
    }
}

/// An article of one site.
fn page(number: u32) -> Vec<u8> {
    let line = |one: u32| format!("<li class=story><a href=/{}>{one}</a>", one.wrapping_mul(2_654_435_761));
    let common: String = (0..700).map(line).collect();
    format!("<!doctype html><title>{number}</title>{common}<p>{}", line(number).repeat(9)).into_bytes()
}

#[test]
fn the_second_page_of_a_site_is_a_delta_and_reaches_the_client_byte_for_byte() {
    let pair = Pair::default();
    let first = pair.first();
    assert_eq!((first.page, first.response.len()), (Some(page(1)), OK.len()));
    let second = pair.load(&GET, &OK, &page(2), 4096, 999);
    assert!(second.was_delta() && second.counted(Event::Bases));
    assert_eq!(second.page, Some(page(2)));
    assert_eq!(second.response, list(&OK), "no field of a delta reaches the client");
    assert!(second.on_pipe * 20 < page(2).len(), "{}", second.on_pipe);
    assert!(view(&second.request_on_pipe).has("x-longhaul-base"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_page_is_the_same_for_any_split(
        numbers in proptest::collection::vec(1_u32..9, 2..6), piece in 1_usize..30_000, split in 1_usize..3000
    ) {
        let pair = Pair::default();
        for number in numbers {
            let loaded = pair.load(&GET, &OK, &page(number), piece, split);
            prop_assert_eq!(loaded.page, Some(page(number)));
        }
    }
}

#[test]
fn a_page_that_not_every_client_may_have_is_never_a_base() {
    let with = |base: &[Field], field: Field| [base, &[field]].concat();
    for (request, response) in [
        (with(&GET, ("cookie", "a=b")), OK.to_vec()),
        (with(&GET, ("cookie", "a=b")), with(&OK, ("cache-control", "public"))),
        (with(&GET, ("authorization", "x")), with(&OK, ("cache-control", "public"))),
        (with(&GET, ("cache-control", "no-cache")), OK.to_vec()),
        (GET.to_vec(), with(&OK, ("set-cookie", "a=b"))),
        (GET.to_vec(), with(&OK, ("cache-control", "private"))),
        (GET.to_vec(), with(&OK, ("cache-control", "no-store"))),
        (GET.to_vec(), with(&OK, ("cache-control", "no-transform"))),
        (GET.to_vec(), with(&OK, ("vary", "cookie"))),
        (GET.to_vec(), with(&OK, ("content-encoding", "deflate"))),
    ] {
        let pair = Pair::default();
        assert_eq!(pair.load(&request, &response, &page(1), 999, 999).page, Some(page(1)));
        assert!(!pair.has_base(), "{request:?} {response:?}");
        assert!(!pair.load(&GET, &OK, &page(2), 999, 999).was_delta());
        assert!(pair.has_base(), "the public page is one");
    }
}

/// The length of a delta shows what a page has in common with its base, and another client may have made the base.
#[test]
fn the_length_of_a_private_page_on_the_pipe_does_not_depend_on_the_pages_of_others() {
    let with = |base: &[Field], fields: &[Field]| [base, fields].concat();
    let sibling = with(&GET[..1], &[(":authority", "mail.news.test"), GET[3]]);
    let token = b"<input type=hidden name=csrf value=0123456789abcdef0123456789abcdef>";
    let victims = [page(2), token.to_vec()].concat();
    for (request, response) in [
        (with(&GET, &[("cookie", "a=b")]), OK.to_vec()),
        (with(&GET, &[("authorization", "x")]), OK.to_vec()),
        (with(&sibling, &[("cookie", "a=b")]), OK.to_vec()),
        (sibling.clone(), with(&OK, &[("cache-control", "private")])),
        (sibling.clone(), with(&OK, &[("cache-control", "no-store")])),
        (sibling.clone(), with(&OK, &[("set-cookie", "a=b")])),
        (sibling.clone(), with(&OK, &[("vary", "Cookie")])),
    ] {
        let lengths = [0, 16, 32].map(|known| {
            let pair = Pair::default();
            let guess = [page(1), token[..token.len() - 1 - (32 - known)].to_vec()].concat();
            pair.load(&GET, &OK, &guess, 4096, 4096);
            let loaded = pair.load(&request, &response, &victims, 4096, 4096);
            assert!(loaded.counted(Event::LeftPrivate) && !loaded.counted(Event::Bases));
            assert_eq!(loaded.page.as_ref(), Some(&victims));
            loaded.on_pipe
        });
        assert_eq!(lengths, [victims.len(); 3], "{request:?} {response:?}");
    }
}

#[test]
fn a_public_page_has_bases_of_all_of_its_site() {
    let public = [&OK[..], &[("cache-control", "public, max-age=60")]].concat();
    for (credential, response) in [(None, &OK[..]), (Some(("cookie", "a=b")), &public)] {
        let pair = Pair::default();
        pair.first();
        let mut request = [&GET[..1], &[(":authority", "mail.news.test"), GET[3]]].concat();
        request.extend(credential);
        let loaded = pair.load(&request, response, &page(2), 999, 999);
        assert_eq!((loaded.was_delta(), loaded.page), (true, Some(page(2))), "{credential:?}");
    }
}

#[test]
fn a_page_that_must_not_change_is_no_delta() {
    let pair = Pair::default();
    pair.first();
    let fixed = [&OK[..], &[("cache-control", "no-transform")]].concat();
    let loaded = pair.load(&GET, &fixed, &page(2), 999, 999);
    assert!(!loaded.was_delta() && loaded.counted(Event::LeftNoTransform));
    assert_eq!((loaded.on_pipe, loaded.page), (page(2).len(), Some(page(2))));
}

#[test]
fn a_lost_base_costs_one_request_and_no_page() {
    let pair = Pair::default();
    pair.first();
    let pair = Pair { loses_bases: true, ..pair };
    let second = pair.load(&GET, &OK, &page(2), 999, 999);
    assert!(second.was_delta() && second.counted(Event::BaseLost));
    assert_eq!((&second.page, &second.response), (&Some(page(2)), &list(&OK[1..])));
    let third = pair.load(&GET, &OK, &page(3), 999, 999);
    assert!(!third.was_delta() && third.page == Some(page(3)), "the remote names no base that it has lost");
    let again = view(&second.request_on_pipe);
    assert_eq!((again.get("x-longhaul-takes"), again.get("x-longhaul-base")), (Some(&b"br"[..]), Some(&b"none"[..])));
    assert_eq!(again.get(":authority"), Some(&b"www.news.test"[..]));
}

#[test]
fn a_request_that_cannot_be_sent_again_names_no_base() {
    let pair = Pair::default();
    pair.first();
    for (request, has_body, expected) in [
        (list(&GET), false, true),
        (list(&GET), true, false),
        ([list(&GET), vec![(b"x".to_vec(), b"\xe9".to_vec())]].concat(), false, false),
    ] {
        let mut exchange = Exchange::of(&view(&request), &pair.windows).unwrap();
        exchange.allow_delta(&pair.remote, &view(&request), has_body);
        assert_eq!(
            changed(&request, &exchange.request_edits()).iter().any(|(name, _)| name == b"x-longhaul-base"),
            expected
        );
    }
}

#[test]
fn a_page_that_is_not_the_grounds_breaks_off_with_its_reason() {
    let pair = Pair::default();
    pair.first();
    let pair = Pair { damages: true, ..pair };
    let loaded = pair.load(&GET, &OK, &page(2), 4096, 999);
    assert_eq!(loaded.page, None);
    assert!(loaded.counted(Event::Mismatch) && !loaded.at_remote.contains(&(Event::Bases, 1)));
}

#[test]
fn an_end_that_knows_no_deltas_gets_none() {
    let pair = Pair::default();
    pair.first();
    let request = list(&GET);
    let exchange = Exchange::of(&view(&request), &pair.windows).unwrap();
    let on_pipe = changed(&request, &exchange.request_edits());
    assert_eq!(view(&on_pipe).get("x-longhaul-takes"), Some(&b"br"[..]));
    assert!(Outgoing::of(&view(&on_pipe), &pair.windows).is_none(), "an older remote");
    let older_ground = Pair::default();
    let request = list(&GET);
    let mut exchange = Exchange::of(&view(&request), &pair.windows).unwrap();
    exchange.allow_delta(&older_ground.remote, &view(&request), false);
    assert_eq!(exchange.response(&older_ground.remote, &view(&list(&OK))), Response::Edit(Vec::new()));
    assert_eq!(exchange.body(&older_ground.remote, &page(1), true), Body::Pass);
    assert!(!older_ground.has_base(), "a page that the ground does not keep is no base");
}

#[test]
fn a_client_that_accepts_br_gets_pages_plain_so_that_they_become_bases() {
    let pair = Pair::default();
    let request = [&GET[..], &[("accept-encoding", "br")]].concat();
    assert_eq!(pair.load(&request, &OK, &page(1), 999, 999).page, Some(page(1)));
    assert!(pair.load(&request, &OK, &page(2), 999, 999).was_delta());
}

fn gzip(page: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(page).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_page_that_the_origin_sends_in_gzip_is_decoded_for_its_delta() {
    let pair = Pair::default();
    let packed = [&OK[..], &[("content-encoding", "gzip")]].concat();
    let first = pair.load(&GET, &packed, &gzip(&page(1)), 999, 999);
    assert_eq!((first.on_pipe, first.page), (page(1).len(), Some(page(1))), "the ground's compressor has br for it");
    assert_eq!(view(&first.response).get("etag"), Some(&b"W/\"x\""[..]));
    assert!(!view(&first.response).has("content-encoding"));
    let second = pair.load(&GET, &packed, &gzip(&page(2)), 999, 999);
    assert!(second.was_delta() && second.counted(Event::Bases));
    assert_eq!(second.page, Some(page(2)));
    let mislabelled = pair.load(&GET, &packed, &page(3), 999, 999);
    assert!(mislabelled.was_delta());
    assert_eq!(mislabelled.page, Some(page(3)));
    let private = [&packed[..], &[("cache-control", "private")]].concat();
    let elsewhere = [&GET[..1], &[(":authority", "www.other.test"), GET[3]]].concat();
    let passed = pair.load(&elsewhere, &private, &gzip(&page(4)), 999, 999);
    assert_eq!((passed.was_delta(), passed.page), (false, Some(gzip(&page(4)))));
    assert_eq!(view(&passed.response).get("content-encoding"), Some(&b"gzip"[..]));
}

#[test]
fn a_page_that_crosses_in_gzip_becomes_a_base() {
    let pair = Pair { packs: true, ..Pair::default() };
    let loaded = pair.load(&GET, &OK, &page(1), 4096, 999);
    assert_eq!(loaded.page, Some(gzip(&page(1))), "a client that accepts gzip gets it as it crosses");
    let pair = Pair { packs: false, ..pair };
    assert!(pair.load(&GET, &OK, &page(2), 4096, 999).was_delta());
}

#[test]
fn a_page_that_breaks_off_at_the_origin_breaks_off_at_the_ground() {
    let packed: FieldList = [list(&OK), list(&[("content-encoding", "gzip")])].concat();
    let request = [list(&GET), list(&[("x-longhaul-takes", "br, delta")])].concat();
    let mut outgoing = Outgoing::of(&view(&request), &Windows::default()).unwrap();
    let board = Memory::default();
    outgoing.response(&board, &view(&packed), true);
    let body = gzip(&page(1));
    assert!(matches!(outgoing.body(&board, &body[..body.len() / 2], false), Body::Replace(_)));
    assert_eq!(outgoing.trailers(&board), Body::BreakOff);
    assert!(outgoing.take_events().contains(&(Event::CutOff, 1)));
    assert!(board.sizes().is_empty());
}

#[test]
fn after_a_restart_of_either_end_pages_arrive_and_become_bases_again() {
    for ends in [(true, false), (false, true), (true, true)] {
        let pair = Pair::default();
        pair.first();
        if ends.0 {
            pair.remote.retain(|_| false);
        }
        if ends.1 {
            pair.ground.retain(|_| false);
        }
        let loaded = pair.load(&GET, &OK, &page(2), 999, 999);
        assert_eq!((loaded.was_delta(), loaded.page), (false, Some(page(2))));
        assert!(pair.load(&GET, &OK, &page(3), 999, 999).was_delta());
    }
}

#[test]
fn a_page_that_is_too_long_passes_and_is_no_base() {
    let pair = Pair::default();
    let long = page(1).repeat(limits::PAGE_BYTES / page(1).len() + 1);
    assert_eq!(pair.load(&GET, &OK, &long, 9999, 9999).page, Some(long));
    assert!(!pair.has_base());
}

#[test]
fn a_lost_retry_is_an_error_that_no_cache_keeps() {
    let mut exchange = Exchange::of(&view(&list(&GET)), &Windows::default()).unwrap();
    let whole = exchange.asked_again(None);
    assert_eq!(whole.status, 502);
    assert!(whole.fields.contains(&(b"cache-control".to_vec(), b"no-store".to_vec())));
    let list = [list(&OK), list(&[("content-encoding", "br"), ("x-longhaul-base", "keep")])].concat();
    let whole = exchange.asked_again(Some((&view(&list), b"\x8b\x01\x80text\x03")));
    assert_eq!((whole.status, whole.body), (200, b"text".to_vec()));
    assert!(!whole.fields.iter().any(|(name, _)| name == b"content-encoding" || name.starts_with(b"x-longhaul")));
}
