//! The laws that hold for every input, one function for each target. A function panics if its law is broken.
//!
//! `fuzz_targets/` passes them to cargo-fuzz, and the test replays their inputs on stable Rust. An input that has
//! broken a law is kept in `regressions/TARGET/`, under a name that describes it.

use fuzz_driver::{Fuzz, Target};
use std::rc::Rc;
use url::{Position, Url};
use url_mapping::{Base, Level, Mapper, Outcome, Reason, Reverse, Rules, Scheme, Use};
use url_rewriting::headers::{Fields, request};
use url_rewriting::response;
use url_rewriting::{Body, Kind, Plan, Policies, Preloads, Rewriter};

/// All targets.
pub const TARGETS: &[Target] = &[
    ("html", html, || owned(seeds::HTML)),
    ("css", css, || owned(seeds::CSS)),
    ("srcset", srcset, || owned(seeds::SRCSET)),
    ("mapping", mapping, || owned(seeds::URLS)),
    ("reverse", reverse, || owned(seeds::PATHS)),
    ("headers", headers, || owned(seeds::HEADERS)),
];

mod seeds;

/// The targets and their inputs.
pub const FUZZ: Fuzz = Fuzz { targets: TARGETS, tokens: seeds::TOKENS, folder: env!("CARGO_MANIFEST_DIR") };

fn owned(seeds: &[&[u8]]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.to_vec()).collect()
}

fn plan(level: &str) -> Rc<Plan> {
    let json = format!(
        r#"{{"targets": {{"https": ["pep.example.net"], "http": []}}, "own": ["pep.example.net"], "level": "{level}",
            "exclude": ["bank.example"], "ports": [80, 443],
            "limits": {{"page_memory_bytes": 16384, "url_bytes": 512, "srcset_candidates": 16, "nesting": 4,
                        "output_growth_bytes": 4096}}}}"#
    );
    Plan::from_json(json.as_bytes()).expect("the configuration is a good one")
}

fn base() -> Base {
    Base::new(Scheme::Http, "www.foo.example", "/dir/page.html").expect("a URL")
}

/// Splits off the first byte of an input. It gives the length of the pieces that the rest is cut into.
fn cut(data: &[u8]) -> (usize, &[u8]) {
    match data {
        [first, rest @ ..] => (usize::from(*first) % 61 + 1, rest),
        [] => (1, data),
    }
}

struct Rewritten {
    bytes: Vec<u8>,
    bailed_out: bool,
    moved: u64,
}

fn rewrite(plan: &Rc<Plan>, kind: Kind, base: Base, input: &[u8], piece: usize) -> Rewritten {
    let body = Body {
        kind,
        packing: url_rewriting::Packing::Plain,
        base,
        encoding: None,
        policies: Policies::default(),
        preloads: Preloads::default(),
    };
    let mut rewriter = Rewriter::new(Rc::clone(plan), body, None);
    let mut bytes = Vec::new();
    for piece in input.chunks(piece) {
        rewriter.write(piece, &mut bytes);
    }
    rewriter.finish(&mut bytes);
    Rewritten { bytes, bailed_out: rewriter.bail_out().is_some(), moved: rewriter.counts().moved }
}

/// Tests the laws of a body. A body without URLs to move passes unchanged. Any split gives the same result. A second
/// pass changes nothing. Growth is bounded.
fn body(kind: Kind, base: &Base, input: &[u8], piece: usize) {
    let off = rewrite(&plan("off"), kind, base.clone(), input, piece);
    assert!(off.bytes == input, "with nothing to move a body passes untouched");

    let full = plan("full");
    let whole = rewrite(&full, kind, base.clone(), input, input.len().max(1));
    let pieces = rewrite(&full, kind, base.clone(), input, piece);
    // The split decides if and where a limit is reached. After it, both results are whole, but they differ.
    if !whole.bailed_out && !pieces.bailed_out {
        assert!(whole.bytes == pieces.bytes, "pieces of {piece} bytes give another body than the whole");
        assert_eq!(whole.moved, pieces.moved);
    }
    assert!(whole.bytes.len() <= input.len() + full.limits().output_growth_bytes, "growth is bounded");
    // A policy in the page is translated even if nothing that it governs moves.
    let has_policy = String::from_utf8_lossy(input).to_ascii_lowercase().contains("security-policy");
    assert!(whole.moved > 0 || has_policy || whole.bytes == input, "what moves nothing changes nothing");
    let twice = rewrite(&full, kind, base.clone(), &whole.bytes, whole.bytes.len().max(1));
    if !whole.bailed_out && !twice.bailed_out {
        assert!(twice.bytes == whole.bytes, "twice is once");
    }
}

/// Tests pages.
pub fn html(data: &[u8]) {
    let (piece, input) = cut(data);
    body(Kind::Html, &base(), input, piece);
}

/// Tests style sheets at their own URL. A moved style sheet is another document in a second pass, so only its pieces
/// are compared.
pub fn css(data: &[u8]) {
    let (piece, input) = cut(data);
    body(Kind::Css, &base(), input, piece);
    let moved = base().on_proxy(Scheme::Https, "pep.example.net", "/www.foo.example/dir/page.html").expect("a URL");
    let full = plan("full");
    let whole = rewrite(&full, Kind::Css, moved.clone(), input, input.len().max(1));
    let pieces = rewrite(&full, Kind::Css, moved, input, piece);
    assert!(whole.bailed_out || pieces.bailed_out || whole.bytes == pieces.bytes);
}

/// Tests lists of candidates, in an attribute that the input cannot leave.
pub fn srcset(data: &[u8]) {
    let (piece, input) = cut(data);
    let inside: Vec<u8> = input.iter().copied().filter(|&byte| byte != b'"').collect();
    body(Kind::Html, &base(), &[b"<img srcset=\"", &inside[..], b"\">"].concat(), piece);
}

fn mapper(level: Level) -> Mapper {
    let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
    Mapper::new(&Rules {
        https_targets: list(&["pep.example.net", "pep2.example.net"]),
        http_targets: vec![],
        own: list(&["pep.example.net", "pep2.example.net"]),
        level,
        exclude: list(&["bank.example"]),
        ports: vec![80, 443, 8080],
        url_bytes: 4096,
    })
    .expect("the rules are good ones")
}

/// Returns the origin's URL for a request at the proxy's own authority.
fn true_url(mapper: &Mapper, url: &Url) -> Option<String> {
    let authority = &url[Position::BeforeHost..Position::AfterPort];
    let path = &url[Position::BeforePath..Position::AfterQuery];
    match mapper.reverse(authority.as_bytes(), path.as_bytes()) {
        Reverse::Origin(origin) => {
            Some(format!("{}://{}{}", origin.scheme, origin.authority, String::from_utf8_lossy(origin.path)))
        }
        Reverse::NotOurs | Reverse::Refused(_) => None,
    }
}

/// Returns `reference` with two slashes before the host. Browsers skip all further slashes (URL, "special authority
/// ignore slashes state"). The `url` crate does so only after a scheme.
fn with_two_slashes(reference: &str) -> String {
    let plain = reference.trim_matches(|character| character <= ' ').replace(['\t', '\n', '\r'], "");
    match plain.strip_prefix("//") {
        Some(rest) if rest.starts_with(['/', '\\']) => format!("//{}", rest.trim_start_matches(['/', '\\'])),
        _ => reference.to_owned(),
    }
}

/// Tests references. A moved URL leads back to the original, and moves only once. The `url` crate stands for the
/// browser.
pub fn mapping(data: &[u8]) {
    let (which, input) = cut(data);
    let reference = String::from_utf8_lossy(input);
    let level = if which % 2 == 0 { Level::Safe } else { Level::Full };
    let mapper = mapper(level);
    let page = if which % 3 == 0 { base().with_href("//cdn.example/v1/") } else { base() };
    let usage = Use::ALL[which % Use::ALL.len()];
    let outcome = mapper.forward(&page, &reference, usage);
    let truth = Url::parse(page.as_str()).expect("a base is a URL").join(&with_two_slashes(&reference));
    match (&outcome, &truth) {
        (Outcome::Moved(moved), Ok(truth)) => {
            let asked = Url::parse(moved).expect("a moved URL is one");
            assert_eq!(true_url(&mapper, &asked).as_deref(), Some(&truth[..Position::AfterQuery]), "{moved}");
            assert_eq!(asked.fragment(), truth.fragment());
            let again = mapper.forward(&page, moved, usage);
            assert!(matches!(again, Outcome::Left(Reason::AlreadyMoved | Reason::TooLong)), "{again:?}");
        }
        (Outcome::Moved(_) | Outcome::Pinned(..), _) => panic!("{outcome:?} of {truth:?}"),
        (Outcome::Left(reason), truth) => assert!(*reason != Reason::Malformed || truth.is_err(), "{truth:?}"),
    }
}

/// Tests requests at the proxy's own authority. An accepted request names its origin in the spelling of a browser.
pub fn reverse(data: &[u8]) {
    let mapper = mapper(Level::Full);
    assert_eq!(mapper.reverse(b"www.foo.example", data), Reverse::NotOurs);
    let path = [b"/", data].concat();
    if let Reverse::Origin(origin) = mapper.reverse(b"pep.example.net", &path) {
        assert!(origin.path.starts_with(b"/") && path.ends_with(origin.path));
        let url =
            Url::parse(&format!("{}://{}/", origin.scheme, origin.authority)).expect("an accepted authority is one");
        assert_eq!(url.host_str(), Some(origin.host));
        assert_eq!(&url[Position::BeforeHost..Position::AfterPort], origin.authority);
        assert!(mapper.is_port_allowed(url.port_or_known_default().expect("http has a default")));
        assert!(!mapper.is_own_authority(origin.authority.as_bytes()), "a loop");
    }
}

/// Tests header fields. Each line of the input is `name:value`. The first lines are a request's, the others its
/// response's.
pub fn headers(data: &[u8]) {
    let (requests, input) = cut(data);
    let plan = plan("full");
    let lines: Vec<(&[u8], &[u8])> = input
        .split(|&byte| byte == b'\n')
        .filter_map(|line| {
            let colon = line.iter().skip(1).position(|&byte| byte == b':')? + 1;
            Some((&line[..colon], &line[colon + 1..]))
        })
        .collect();
    let (asked, answered) = lines.split_at(lines.len().min(requests % 8));
    let fields: Fields<'_> = asked.iter().copied().collect();
    let request::Decision::Forward { edits, visit } = request::decide(&plan, &fields) else { return };
    if visit.moved.is_some() {
        let removed = |name: &str| edits.iter().any(|edit| edit.name() == name);
        assert!(fields.get("cookie").is_none() || removed("cookie"), "a credential goes up");
        assert!(fields.get("authorization").is_none() || removed("authorization"), "a credential goes up");
    }
    let fields: Fields<'_> = answered.iter().copied().collect();
    match response::decide(&plan, &visit, &fields) {
        response::Decision::Pass { edits } | response::Decision::Rewrite { edits, .. } => {
            for edit in &edits {
                if let url_rewriting::headers::Edit::Set("content-security-policy", policy) = edit
                    && visit.moved.is_none()
                {
                    policy_only_gained(&fields, policy);
                }
            }
            if visit.moved.is_some() {
                let sandboxed = |edit: &url_rewriting::headers::Edit| matches!(edit, url_rewriting::headers::Edit::Set("content-security-policy", value) if value == b"sandbox");
                assert!(edits.iter().any(sandboxed), "a page in the proxy's own origin");
            }
        }
        response::Decision::Reply(..) => {}
    }
}

/// Asserts that a translated policy is the original with additional sources, each at the proxy's name.
fn policy_only_gained(fields: &Fields<'_>, policy: &[u8]) {
    let original = fields.all("content-security-policy").collect::<Vec<_>>().join(&b", "[..]);
    // Policies are split at ASCII whitespace (CSP3, 2.2.1), which the vertical tab is not.
    let tokens = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text).replace(';', " ; ").replace(',', " , ");
        text.split_ascii_whitespace().map(str::to_owned).collect()
    };
    let original = tokens(&original);
    let mut expected = original.iter().peekable();
    for token in tokens(policy) {
        if expected.peek() == Some(&&token) {
            expected.next();
        } else {
            assert!(token.starts_with("https://pep.example.net/"), "{token} was added");
        }
    }
    assert_eq!(expected.next(), None, "something was taken away");
}

#[cfg(test)]
mod tests {
    use super::FUZZ;

    #[test]
    fn no_seed_and_no_regression_breaks_a_law() {
        FUZZ.replay();
    }
}
