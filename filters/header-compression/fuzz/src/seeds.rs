//! Initial inputs of the targets.

use std::rc::Rc;

use header_codec::{Dictionary, FieldList, Ground};

use crate::history::{History, block, dictionary, request};

/// Returns conversations as text: a line is a field, `!` ends a request and `?` a response.
pub(crate) fn conversations() -> Vec<Vec<u8>> {
    [
        &b":authority: www.example.org\n:path: /a?b=c\n:method: GET\n:scheme: http\ncookie: a=1; b=2;c=3\n!\n:status: 200\nset-cookie: a=1; path=/\netag: \"1\"\ndate: Sat, 14 Nov 2026 09:12:41 GMT\n?\n:authority: www.example.org\n:path: /a?b=d\n:method: GET\n:scheme: http\ncookie: a=1\nif-none-match: \"1\"\n!\n:status: 304\n?"[..],
        b":authority: 192.0.2.7:8080\n:path: *\nx-never-heard: \x80\xff\nX-Mixed: \t\nreferer: http://192.0.2.7:8080/x\n!\n:status: 999\nexpires: Sun, 06 Nov 1994 08:49:37 GMT\ncache-control: max-age=60\nage: 007\n?\nif-modified-since: 0\ncookie: ; ; \ncookie: =\n!\n?",
        b":path: /0123456789abcdef0123456789abcdef0123456789abcdef\ncontent-security-policy: default-src 'self' a.example b.example a.example b.example a.example b.example\n!\n:status: 200\nlocation: /0123456789abcdef0123456789abcdef\n?",
    ]
    .map(<[u8]>::to_vec)
    .to_vec()
}

/// Returns compressed requests, some of which refer to exchanges of [`History`].
pub(crate) fn compressed_requests() -> Vec<Vec<u8>> {
    let mut history = History::new();
    let mut all: Vec<Vec<u8>> = ["/", "/a/b?c=d", "/0123456789abcdef/next"].map(|path| history.pack(path).0).into();
    let (opening, _) = header_codec::Remote::new(dictionary(), 1, 1)
        .pack(b"192.0.2.9", None, Rc::new(block(&request("/"))))
        .expect("a plain request can be compressed");
    all.push(opening);
    all
}

/// Returns compressed responses to the pending request of [`History`].
pub(crate) fn compressed_responses() -> Vec<Vec<u8>> {
    let status = |status: &str| -> FieldList { vec![(b":status".to_vec(), status.as_bytes().to_vec())] };
    let mut large = status("200");
    large.push((b"content-security-policy".to_vec(), b"default-src 'self' img-src * ".repeat(40)));
    [status("200"), status("404"), large]
        .iter()
        .map(|response| {
            let mut history = History::new();
            let (packed, _) = history.pack("/next");
            let ground: &mut Ground = &mut history.ground;
            let answering = ground.unpack(b"pipe", &packed).expect("the ground has the history");
            ground.pack(answering, block(response)).expect("a plain response can be compressed")
        })
        .collect()
}

/// Returns a small dictionary file with two slots, one name, one value and one block.
pub(crate) fn dictionaries() -> Vec<Vec<u8>> {
    let file = [
        &b"LHHD\x07\x01\x03\x00\x00\x40\x00\x80\x00\xc0"[..],
        b"\x01\x00\x06accept\x01\x03\x00*/*",
        b"\x01\x01\x00\x03\x00*/*\x00",
        &[0; 4],
    ]
    .concat();
    assert!(Dictionary::from_bytes(&file).is_some(), "the seed is a dictionary");
    vec![file]
}

/// Returns configurations, valid and invalid.
pub(crate) fn configurations() -> Vec<Vec<u8>> {
    [&br#"{"role": "remote", "clients": 512, "client": "address"}"#[..], br#"{"role": "ground"}"#, b"{}"]
        .map(<[u8]>::to_vec)
        .to_vec()
}

/// Byte sequences that random mutation would rarely produce and that matter to a target.
pub(crate) const TOKENS: &[&[u8]] = &[
    b"\n",
    b"\n:authority: ",
    b"\n:path: /",
    b"\n:status: 200",
    b"\ncookie: ",
    b"\nset-cookie: ",
    b"\ndate: ",
    b"\ncontent-length: ",
    b"\nreferer: http://www.example.org/",
    b"\n!",
    b"\n?",
    b"; ",
    b"; ; ",
    b"=",
    b"/",
    b"&",
    b"Sun, 06 Nov 1994 08:49:37 GMT",
    b"max-age=",
    b"99999999999999999999",
    b"example.org",
    b"bank.example",
    b"\x80\xff",
    b"\t",
    b"!!!!!!!!",
    b"~~~~~~~~",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
];
