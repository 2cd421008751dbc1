//! URLs in style sheets, and texts that look like one: by a table, against cssparser's own tokens, and cut anywhere.

use cssparser::{Parser, Token};
use encoding_rs::{Encoding, SHIFT_JIS, WINDOWS_1252};
use proptest::prelude::*;
use url_mapping::Reason;

use super::scanner::{Scanner, value};
use super::{Fetch, SheetUrl, Stream, escape};
use crate::charset::Charset;

/// Generous enough for every style sheet here that is not about it.
const TOKEN_BYTES: usize = 1000;

fn scan_bytes(sheet: &[u8], piece: usize, encoding: Option<&'static Encoding>, token_bytes: usize) -> Vec<SheetUrl> {
    let mut stream = Stream::new(Charset::from_header(encoding), token_bytes);
    let mut found = Vec::new();
    let mut given = 0;
    for bytes in sheet.chunks(piece) {
        stream.push(bytes, &mut |url: SheetUrl| {
            assert!(url.range.end <= sheet.len());
            found.push(url);
        });
        given += bytes.len();
        assert!(stream.held() <= token_bytes.max(256) * 2 + piece.min(sheet.len()), "{} held", stream.held());
        assert!(found.iter().all(|url| url.range.end <= given));
    }
    stream.finish(&mut |url| found.push(url));
    found
}

/// The URLs of a style sheet, checked to be the same for every way to cut it.
fn scan(sheet: &str) -> Vec<(Fetch, String)> {
    let whole = scan_bytes(sheet.as_bytes(), usize::MAX, None, TOKEN_BYTES);
    for piece in 1..sheet.len().min(40) {
        assert_eq!(whole, scan_bytes(sheet.as_bytes(), piece, None, TOKEN_BYTES), "{sheet} in pieces of {piece}");
    }
    let told = |url: SheetUrl| match url.value {
        Ok(value) => {
            assert_eq!(sheet[url.range.clone()].contains('\\'), value.url != sheet[url.range], "{sheet}");
            (url.fetch, value.url)
        }
        Err(reason) => (url.fetch, reason.to_string()),
    };
    whole.into_iter().map(told).collect()
}

#[test]
fn urls_are_found_with_what_they_are_fetched_for() {
    use Fetch::{CorsImage, Font, Image, Import, SameOrigin};
    for (sheet, wanted) in [
        ("a{background:url(a.png)}", vec![(Image, "a.png")]),
        ("a{background:url( 'a b.png' ) , URL(\"c\")}", vec![(Image, "a b.png"), (Image, "c")]),
        ("a{background:url(\t a.png \n)}", vec![(Image, "a.png")]),
        ("a{b:url(a\\)b\\26 c.png)}", vec![(Image, "a)b&c.png")]),
        ("a{b:u\\72l(x)} c{d:\\75 rl('y')}", vec![(Image, "x"), (Image, "y")]),
        ("a{b:url()} c{d:url('')}", vec![(Image, ""), (Image, "")]),
        (
            "@import 'a.css';@import url(b.css) layer(x) supports(y:z) print;",
            vec![(Import, "a.css"), (Import, "b.css")],
        ),
        (
            "@import/**/\"a\" 'b';@IMPORT url('c') 'd';@im\\70ort 'e';",
            vec![(Import, "a"), (Import, "c"), (Import, "e")],
        ),
        ("@import x 'a';@import layer('b') 'c';@import;a{b:'d'}", vec![]),
        ("@charset 'a';@namespace url(b);@namespace c 'd';", vec![]),
        ("@document url(a){b{c:url(d)}}@supports (a:url(b)){c{d:url(e)}}", vec![(Image, "d"), (Image, "e")]),
        ("@font-face{src:url(a) format('woff'),local('b')}c{d:url(e)}", vec![(Font, "a"), (Image, "e")]),
        ("@media x{@font-face{src:url(a)}b{c:url(d)}}", vec![(Font, "a"), (Image, "d")]),
        ("a{b:image-set('c' 1x, 'd' type('image/png') 2x, url(e) 3x)}", vec![(Image, "c"), (Image, "d"), (Image, "e")]),
        ("a{b:-webkit-image-set(url('c') 1x)}a{b:src('d')}", vec![(Image, "c"), (Image, "d")]),
        ("a{b:url('c' 'd')}a{b:src(e 'f')}a{content:'g'}a[href='h']{}", vec![(Image, "c")]),
        ("a{mask:url(b);-webkit-mask-image:url(c)}", vec![(CorsImage, "b"), (CorsImage, "c")]),
        (
            "a{filter:url(b);FILL : url(#c);clip-path/**/:url(d)}",
            vec![(SameOrigin, "b"), (SameOrigin, "#c"), (Image, "d")],
        ),
        ("a{offset-path:url(b#c);offset-image:url(d)}", vec![(SameOrigin, "b#c"), (Image, "d")]),
        ("a{/*x:*/filter:url(b);f\\69lter:url(c)}", vec![(SameOrigin, "b"), (SameOrigin, "c")]),
        ("a{--x:url(b);--filter:url(c)}mask:hover{d:url(e)}", vec![(Image, "b"), (Image, "c"), (Image, "e")]),
        ("a{b:url(c", vec![(Image, "c")]),
        ("a{b:url('c", vec![(Image, "c")]),
        ("a{b:url(c\\", vec![(Image, "c\u{FFFD}")]),
        ("/* url(a) */a{b:url(c)}/*/url(d)*/<!--url(e)-->url(f)/*", vec![(Image, "c"), (Image, "e"), (Image, "f")]),
        ("a{b:'url(c)';d:\"\\\"url(e)\"}", vec![]),
        ("a{b:1url(c);d:#url(e);f:xurl(g);h:-url(i);j:5%url(k)}@url(l){}", vec![(Image, "k")]),
        ("a{b:url(c'd);e:url(f)}g{h:url(i j);k:url(l)}", vec![(Image, "f"), (Image, "l")]),
        ("a{b:'c\nd:url(e)}", vec![(Image, "e")]),
        ("a{b:'c\\\nurl(d)';e:url(f)}", vec![(Image, "f")]),
    ] {
        let found = scan(sheet);
        let found: Vec<_> = found.iter().map(|(fetch, url)| (*fetch, url.as_str())).collect();
        assert_eq!(found, wanted, "{sheet}");
    }
}

#[test]
fn tokens_that_are_too_long_are_skipped_wherever_the_sheet_is_cut() {
    let long = format!("{}\\29\n\\\"\\)", "x".repeat(300));
    let sheet =
        format!("a{{b:url({long});c:url('{long}');d:'{long}';e:url(data:{long}) url(f)}}@import \"{long}\" 'g';");
    let whole = scan_bytes(sheet.as_bytes(), usize::MAX, None, 50);
    let told: Vec<_> =
        whole.iter().map(|url| url.value.as_ref().map(|value| value.url.as_str()).map_err(|&why| why)).collect();
    assert_eq!(told, [Err(Reason::TooLong), Err(Reason::TooLong), Err(Reason::Scheme), Ok("f"), Err(Reason::TooLong)]);
    for piece in 1..100 {
        assert_eq!(whole, scan_bytes(sheet.as_bytes(), piece, None, 50), "pieces of {piece}");
    }
}

#[test]
fn a_sheet_is_read_in_its_encoding_and_one_of_unknown_encoding_byte_by_byte() {
    let url_of = |sheet: &[u8], encoding| {
        let mut found = scan_bytes(sheet, 1, encoding, TOKEN_BYTES);
        assert_eq!(found.len(), 1);
        found.remove(0).value.map(|value| (value.url, value.opaque.is_some()))
    };
    // The second byte of U+8868 looks like a backslash.
    assert_eq!(url_of(b"a{b:url(\x95\\.png)}", Some(SHIFT_JIS)), Ok(("\u{8868}.png".to_owned(), false)));
    assert_eq!(url_of(b"a{b:url('\xE9.png')}", Some(WINDOWS_1252)), Ok(("é.png".to_owned(), false)));
    assert_eq!(url_of(b"a{b:url('\xE9.png')}", None), Ok(("é.png".to_owned(), true)));
}

/// The same by nothing but cssparser's tokens and the plainest context.
fn by_tokens(sheet: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut blocks, mut first, mut import, mut prelude) = (Vec::new(), false, false, None);
    let mut at = 0;
    while at < sheet.len() {
        let mut parser = Parser::new(&sheet[at..]);
        let Ok(token) = parser.next_including_whitespace_and_comments().cloned() else { break };
        at += parser.position().byte_index();
        let fetched = prelude.is_none() || import;
        let mut opens = None;
        match &token {
            Token::WhiteSpace(_) | Token::Comment(_) => continue,
            Token::UnquotedUrl(url) if fetched && !(import && prelude != Some(blocks.len())) => {
                found.push(url.to_string());
            }
            Token::QuotedString(url) if fetched => {
                let in_url = blocks.last() == Some(&"url") && first;
                if in_url || blocks.last() == Some(&"set") || (import && blocks.last() != Some(&"url")) {
                    found.push(url.to_string());
                }
            }
            Token::AtKeyword(name) => {
                prelude = Some(blocks.len());
                import = name.eq_ignore_ascii_case("import");
                first = false;
                continue;
            }
            Token::Function(name) => {
                opens = Some(match name.to_ascii_lowercase().as_str() {
                    "url" | "src" => "url",
                    "image-set" => "set",
                    _ => "other",
                });
            }
            Token::ParenthesisBlock | Token::SquareBracketBlock | Token::CurlyBracketBlock => opens = Some("other"),
            Token::CloseParenthesis | Token::CloseSquareBracket | Token::CloseCurlyBracket => {
                blocks.pop();
            }
            _ => {}
        }
        if matches!(token, Token::Semicolon | Token::CurlyBracketBlock | Token::CloseCurlyBracket)
            && prelude.is_some_and(|depth| blocks.len() <= depth)
        {
            prelude = None;
        }
        import = import && opens == Some("url") && prelude == Some(blocks.len());
        first = matches!(token, Token::Function(_));
        blocks.extend(opens);
    }
    found
}

/// Text that is mostly made of what matters.
fn sheet() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => "[ -~]",
        1 => "[\n\r\t\x0Cé\u{8868}\0]",
        6 => prop::sample::select(vec![
            "url(", "URL(", "u\\72l(", "\\75 rl(", "src(", "image-set(", "@import", "@im\\70ort", "@media", ";", ":", "{", "}",
            "(", ")", "[", "]", "'", "\"", "/*", "*/", "\\", "<!--", "-->", " ", "a", "1", "#", "-", "--", "\\26 ", "\\\n",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_scanner_finds_what_the_tokens_hold(sheet in sheet()) {
        let mut scanner = Scanner::new(TOKEN_BYTES);
        let mut found = Vec::new();
        scanner.scan(&sheet, 0, 0, true, &mut |url| found.push(value(&sheet[url.token]).unwrap()));
        prop_assert_eq!(found, by_tokens(&sheet));
    }

    #[test]
    fn a_sheet_cut_anywhere_holds_the_same(sheet in sheet(), piece in 1_usize..20, token_bytes in 5_usize..60) {
        let whole = scan_bytes(sheet.as_bytes(), usize::MAX, None, token_bytes);
        prop_assert_eq!(whole, scan_bytes(sheet.as_bytes(), piece, None, token_bytes));
    }

    #[test]
    fn a_url_is_read_as_it_was_written(url in "[ -~é\n\t\r\x0C]*") {
        let escaped = escape(&url);
        prop_assert!(!escaped.contains('<'));
        for token in [format!("url({escaped})"), format!("'{escaped}'"), format!("\"{escaped}\"")] {
            prop_assert_eq!(value(&token), Some(url.clone()));
        }
    }
}
