//! The laws of the map, for any references that pages hold. The `url` crate stands for the browser.

#![allow(clippy::unwrap_used, clippy::panic)] // clippy.toml does not recognise test helpers

mod common;

use common::{mapper, request, true_url, without_fragment};
use proptest::prelude::*;
use url::Url;
use url_mapping::{Base, Level, Mapper, Outcome, Reason, Reverse, Scheme, Use};

/// Generates parts of URLs, and characters that people and attackers put between them.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::sample::select(vec![
            "http:", "https:", "HTTP:", "//", "/", "\\", "?", "#", ":", "@", ".", "..", "%2e", "%2E.", "./", "../", "//",
            "i.cnn.net", "I.Cnn.NET", "www.foo.example", "bank.example", "pep1.example.net", "b\u{fc}cher.example",
            "xn--bcher-kva.example", "xn--a.example", "192.0.2.7", "0xc0.0.2.7", "3221225991", "10.0.0.1", "[2001:db8::1]",
            "[::1]", "localhost", "a..b", "user", ":80", ":443", ":8080", ":081", ":99999", ":", "\t", "\n", "\r", " ",
            "\u{0}", "\u{1f}", "\u{a0}", "\u{e9}", "%", "%zz", "%00", "%2f", "<", ">", "\"", "'", "`", "{", "}", "|", "^", "[", "]",
            "a", "img", "plane.jpg", "q=1&r=../2", "data:", "javascript:", "mailto:", "blob:", "ftp:", "file:", ";x", ",", "=", "~", "!", "*",
        ])
        .prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
        1 => "[ -~]{0,6}",
    ]
}

/// Generates mostly texts that look like URLs, and sometimes any text.
fn reference() -> impl Strategy<Value = String> {
    let host = prop::sample::select(vec![
        "i.cnn.net",
        "I.Cnn.NET",
        "cdn.example",
        "9.example",
        "a-b_c.example",
        "b\u{fc}cher.example",
        "192.0.2.7",
        "[2001:DB8::1]",
        "www.foo.example",
        "a%2eexample.org",
        "static.bank.example",
        "pep1.example.net",
    ]);
    let scheme = prop::sample::select(vec!["http://", "https://", "//", "HTTPS://", "http:\\\\", "https:/", "http:"]);
    let port = prop::sample::select(vec!["", "", "", ":80", ":443", ":8080", ":", ":00081", ":22"]);
    prop_oneof![
        4 => (scheme, host, port, prop::collection::vec(piece(), 0..6))
            .prop_map(|(scheme, host, port, rest)| format!("{scheme}{host}{port}/{}", rest.concat())),
        2 => prop::collection::vec(piece(), 0..10).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
    ]
}

fn page() -> impl Strategy<Value = Base> {
    let scheme = prop::sample::select(vec![Scheme::Http, Scheme::Https]);
    let authority = prop::sample::select(vec!["www.foo.example", "www.foo.example:8080", "192.0.2.9", "cdn.example"]);
    let path = prop::sample::select(vec!["/", "/a/b.html", "/a/b/?x=1", "/a//b;c?d/e"]);
    let href = prop::sample::select(vec!["", "", "", "//cdn.example/v1/x", "sub/", "http://192.0.2.7/"]);
    (scheme, authority, path, href).prop_map(|(scheme, authority, path, href)| {
        let base = Base::new(scheme, authority, path).unwrap();
        if href.is_empty() { base } else { base.with_href(href) }
    })
}

fn usage() -> impl Strategy<Value = Use> {
    prop::sample::select(Use::ALL.to_vec())
}

fn level() -> impl Strategy<Value = Level> {
    prop::sample::select(vec![Level::Safe, Level::Full])
}

fn resolved(base: &Base, reference: &str) -> Option<Url> {
    join(&Url::parse(base.as_str()).unwrap(), reference)
}

/// Joins as browsers do. They skip all slashes before a host (URL, "special authority ignore slashes state"), but the
/// crate does so only after a scheme.
fn join(base: &Url, reference: &str) -> Option<Url> {
    let plain = reference.trim_matches(|character| character <= ' ').replace(['\t', '\n', '\r'], "");
    match plain.strip_prefix("//") {
        Some(rest) if rest.starts_with(['/', '\\']) => {
            base.join(&format!("//{}", rest.trim_start_matches(['/', '\\']))).ok()
        }
        _ => base.join(reference).ok(),
    }
}

/// Returns true if the parsed URL must move at level full, by the shortest statement of the rules.
fn must_move(base: &Base, url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    let name_fits = match url.host() {
        Some(url::Host::Domain(name)) => {
            name.contains('.')
                && name.split('.').all(|label| {
                    (1..64).contains(&label.len())
                        && !(label.starts_with('-') || label.ends_with('-'))
                        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
                })
                && name.len() <= 253
        }
        Some(url::Host::Ipv4(address)) => address.octets()[0] == 192 && address.octets()[1] == 0,
        Some(url::Host::Ipv6(address)) => address.segments()[0] == 0x2001,
        None => false,
    };
    let sayable = matches!((url.scheme(), port), ("http", 80 | 81 | 8080) | ("https", 443));
    name_fits
        && sayable
        && url.username().is_empty()
        && url.password().is_none()
        && !["pep1.example.net", "pep2.example.net", "198.51.100.12"].contains(&host)
        && !(host == "bank.example" || host.ends_with(".bank.example"))
        && !(base.page_scheme() == Scheme::Https && url.scheme() == "http")
}

fn assert_moved_is_true(mapper: &Mapper, truth: &Url, moved: &str) -> Result<(), TestCaseError> {
    let browser = Url::parse(moved).unwrap();
    prop_assert_eq!(true_url(mapper, &browser), Some(without_fragment(truth)), "{}", moved);
    prop_assert_eq!(browser.fragment(), truth.fragment());
    prop_assert!(truth.scheme() != "https" || browser.scheme() == "https", "moved down: {}", moved);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_moved_url_leads_back_to_what_the_browser_would_have_asked_for(
        base in page(), reference in reference(), usage in usage(), level in level(),
    ) {
        let mapper = mapper(level);
        let outcome = mapper.forward(&base, &reference, usage);
        let truth = resolved(&base, &reference);
        match (&outcome, &truth) {
            (Outcome::Moved(moved), Some(truth)) => assert_moved_is_true(&mapper, truth, moved)?,
            (Outcome::Moved(_) | Outcome::Pinned(..), _) => prop_assert!(false, "{outcome:?} of {truth:?}"),
            (Outcome::Left(Reason::Malformed), Some(truth)) => prop_assert!(false, "{truth} is a URL"),
            (Outcome::Left(_), _) => {}
        }
    }

    #[test]
    fn at_level_full_everything_that_can_be_said_moves(base in page(), reference in reference()) {
        let outcome = mapper(Level::Full).forward(&base, &reference, Use::Image);
        let trimmed = reference.trim_matches(|character| character <= ' ').replace(['\t', '\n', '\r'], "");
        let in_document = trimmed.is_empty() || trimmed.starts_with('#');
        let must = !in_document && resolved(&base, &reference).is_some_and(|url| must_move(&base, &url));
        prop_assert_eq!(matches!(outcome, Outcome::Moved(_)), must, "{:?} -> {:?}", reference, outcome);
    }

    #[test]
    fn at_level_safe_the_pages_own_host_stays_however_it_is_written(base in page(), reference in reference()) {
        let outcome = mapper(Level::Safe).forward(&base, &reference, Use::Image);
        let own = resolved(&base, &reference).is_some_and(|url| url.host_str() == Some(base.page_host()));
        prop_assert!(!own || matches!(outcome, Outcome::Left(_)), "{:?}", outcome);
    }

    #[test]
    fn twice_is_once(base in page(), reference in reference(), usage in usage(), level in level()) {
        let mapper = mapper(level);
        if let Outcome::Moved(once) = mapper.forward(&base, &reference, usage) {
            prop_assert_eq!(mapper.forward(&base, &once, usage), Outcome::Left(Reason::AlreadyMoved));
        }
    }

    #[test]
    fn in_a_moved_sheet_every_reference_still_means_what_it_meant(
        reference in reference(), usage in usage(), level in level(), scheme in prop::sample::select(vec!["http", "https"]),
        path in prop::sample::select(vec!["/", "/css/a.css", "/a/b/c.css?v=1"]),
    ) {
        let mapper = mapper(level);
        let sheet = Url::parse(&format!("{scheme}://cdn.example{path}")).unwrap();
        let page = Base::new(Scheme::Http, "www.foo.example", "/").unwrap();
        let Outcome::Moved(seen) = mapper.forward(&page, sheet.as_str(), Use::Stylesheet) else { panic!("the sheet moves") };
        let seen = Url::parse(&seen).unwrap();
        let (authority, seen_path) = request(&seen);
        let base = Base::new(Scheme::from_name(scheme.as_bytes()).unwrap(), "cdn.example", path)
            .and_then(|base| base.on_proxy(Scheme::Https, &authority, &seen_path))
            .unwrap();
        let outcome = mapper.forward(&base, &reference, usage);
        let Some(truth) = join(&sheet, &reference) else { return Ok(()) };
        // The URL that the browser requests in the end, and the true URL of that request.
        let Some(asked) = join(&seen, outcome.replacement().unwrap_or(&reference)) else {
            prop_assert!(false, "{outcome:?} is no URL any more");
            return Ok(());
        };
        let meant = true_url(&mapper, &asked).unwrap_or_else(|| without_fragment(&asked));
        let excepted = [Reason::Empty, Reason::Fragment, Reason::Scheme, Reason::AlreadyMoved];
        let is_excepted = matches!(
            outcome,
            Outcome::Left(reason) | Outcome::Pinned(_, reason) if excepted.contains(&reason)
        );
        if !is_excepted {
            prop_assert_eq!(meant, without_fragment(&truth), "{:?} -> {:?}", reference, outcome);
        }
        if let Outcome::Moved(moved) = outcome {
            assert_moved_is_true(&mapper, &truth, &moved)?;
        }
    }

    #[test]
    fn reverse_accepts_only_urls_that_forward_writes(
        host in prop_oneof![
            prop::sample::select(vec!["i.cnn.net", "192.0.2.7", "[2001:db8::1]", "xn--bcher-kva.example", "localhost", "pep1.example.net"])
                .prop_map(str::to_owned),
            "[a-zA-Z0-9.:_%@-]{1,12}",
        ],
        port in prop::sample::select(vec!["", ":443", ":8080", ":080", ":22", ":"]),
        path in "(/[!-~]{0,8}){0,3}",
    ) {
        let mapper = mapper(Level::Full);
        let asked = format!("/{host}{port}{path}");
        let Reverse::Origin(origin) = mapper.reverse(b"pep1.example.net", asked.as_bytes()) else { return Ok(()) };
        let url = format!("{}://{}{}", origin.scheme, origin.authority, std::str::from_utf8(origin.path).unwrap());
        let parsed = Url::parse(&url).unwrap();
        prop_assert_eq!(parsed.host_str(), Some(origin.host));
        let page = Base::new(Scheme::Http, "www.foo.example", "/").unwrap();
        match mapper.forward(&page, &url, Use::Image) {
            Outcome::Moved(moved) => {
                // The browser writes both in the same way.
                let authority = request(&Url::parse(&moved).unwrap()).0;
                let asked = Url::parse(&format!("https://{authority}{asked}")).unwrap();
                let moved = Url::parse(&moved).unwrap();
                // A browser would have resolved dot segments, so only another client sends them.
                if !asked.path().contains("/..") && without_fragment(&parsed) == url {
                    prop_assert_eq!(without_fragment(&moved), without_fragment(&asked));
                }
            }
            Outcome::Left(reason) => {
                prop_assert!(matches!(reason, Reason::PrivateAddress | Reason::Excluded | Reason::SameHost), "{url} {reason}");
            }
            Outcome::Pinned(..) => prop_assert!(false),
        }
    }

    #[test]
    fn reverse_never_guesses_and_never_panics(authority in any::<Vec<u8>>(), path in any::<Vec<u8>>()) {
        let mapper = mapper(Level::Safe);
        prop_assert_eq!(mapper.reverse(&authority, &path), Reverse::NotOurs);
        if let Reverse::Origin(origin) = mapper.reverse(b"pep1.example.net", &path) {
            prop_assert!(origin.path.starts_with(b"/") && path.ends_with(origin.path));
        }
    }
}
