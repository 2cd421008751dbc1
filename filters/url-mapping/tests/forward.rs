//! The URLs that move, their targets, and the reasons of those that stay.

#![allow(clippy::unwrap_used, clippy::panic)] // clippy.toml does not recognise test helpers
use url_mapping::{Base, Cookies, Level, Mapper, Outcome, Reason, Rules, Scheme, Use};

fn rules(level: Level) -> Rules {
    let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
    Rules {
        https_targets: list(&["pep.example.net"]),
        http_targets: vec![],
        own: list(&["pep.example.net", "198.51.100.12:8080"]),
        level,
        exclude: list(&["bank.example"]),
        ports: vec![80, 443, 8080],
        url_bytes: 300,
    }
}

fn safe() -> Mapper {
    Mapper::new(&rules(Level::Safe)).unwrap()
}

fn page() -> Base {
    Base::new(Scheme::Http, "www.foo.example", "/news/today.html?x=1").unwrap()
}

#[track_caller]
fn expect_moved(mapper: &Mapper, base: &Base, reference: &str, expected: &str) {
    assert_eq!(mapper.forward(base, reference, Use::Image), Outcome::Moved(expected.to_owned()), "{reference:?}");
}

#[track_caller]
fn expect_left(mapper: &Mapper, base: &Base, reference: &str, reason: Reason) {
    assert_eq!(mapper.forward(base, reference, Use::Image), Outcome::Left(reason), "{reference:?}");
}

#[test]
fn objects_of_other_hosts_move() {
    let (mapper, base) = (safe(), page());
    for (reference, expected) in [
        ("http://i.cnn.net/plane.jpg", "https://pep.example.net/i.cnn.net/plane.jpg"),
        ("https://i.cnn.net/plane.jpg", "https://pep.example.net/i.cnn.net:443/plane.jpg"),
        ("//i.cnn.net/plane.jpg", "https://pep.example.net/i.cnn.net/plane.jpg"),
        ("http://i.cnn.net:8080/a?b#c", "https://pep.example.net/i.cnn.net:8080/a?b#c"),
        ("http://i.cnn.net:80/", "https://pep.example.net/i.cnn.net/"),
        ("https://i.cnn.net:443", "https://pep.example.net/i.cnn.net:443/"),
        ("http://i.cnn.net:/a", "https://pep.example.net/i.cnn.net/a"),
        ("http://i.cnn.net?q", "https://pep.example.net/i.cnn.net/?q"),
        ("http://I.CNN.net/A%7e", "https://pep.example.net/i.cnn.net/A%7e"),
        ("  http://i.cnn.net//a b  ", "https://pep.example.net/i.cnn.net//a b"),
        ("http://i.cnn.net/a/../b?c/../d", "https://pep.example.net/i.cnn.net/b?c/../d"),
        ("http://i.cnn.net/../../b", "https://pep.example.net/i.cnn.net/b"),
        ("http:\\\\i.cnn.net\\a", "https://pep.example.net/i.cnn.net/a"),
        ("ht\ntp://i.cnn.net/a\tb?c\nd", "https://pep.example.net/i.cnn.net/ab?cd"),
        ("http://b\u{fc}cher.example/\u{e9}?\u{e9}", "https://pep.example.net/xn--bcher-kva.example/%C3%A9?\u{e9}"),
        ("http://192.0.2.7/x", "https://pep.example.net/192.0.2.7/x"),
        ("http://0xc0.0.2.7/x", "https://pep.example.net/192.0.2.7/x"),
        ("http://[2001:DB8::1]:8080/x", "https://pep.example.net/[2001:db8::1]:8080/x"),
    ] {
        expect_moved(&mapper, &base, reference, expected);
    }
}

#[test]
fn every_url_that_stays_has_a_reason() {
    let (mapper, base) = (safe(), page());
    let long = format!("http://i.cnn.net/{}", "a".repeat(300));
    for (reference, reason) in [
        ("", Reason::Empty),
        (" \n", Reason::Empty),
        ("#top", Reason::Fragment),
        ("\n#top", Reason::Fragment),
        ("data:image/gif;base64,R0lGODlhAQABAAAAACw=", Reason::Scheme),
        ("javascript:alert('http://i.cnn.net/')", Reason::Scheme),
        ("da\nta:x", Reason::Scheme),
        ("http://[nonsense/", Reason::Malformed),
        ("http://a b.example/", Reason::Malformed),
        ("http://i.cnn.net:99999/", Reason::Malformed),
        ("plane.jpg", Reason::SameHost),
        ("/plane.jpg", Reason::SameHost),
        ("?page=2", Reason::SameHost),
        ("../plane.jpg", Reason::SameHost),
        ("http:plane.jpg", Reason::SameHost),
        ("http://www.foo.example/plane.jpg", Reason::SameHost),
        ("//WWW.foo.example:8080/plane.jpg", Reason::SameHost),
        ("https://www.foo.example/plane.jpg", Reason::SameHost),
        ("https://pep.example.net/i.cnn.net/plane.jpg", Reason::AlreadyMoved),
        ("http://198.51.100.12:8080/i.cnn.net/plane.jpg", Reason::AlreadyMoved),
        ("//pep.example.net/", Reason::AlreadyMoved),
        ("http://static.bank.example/x", Reason::Excluded),
        ("http://user@i.cnn.net/x", Reason::UserInfo),
        ("http://user:secret@i.cnn.net/x", Reason::UserInfo),
        ("http://localhost/x", Reason::HostForm),
        ("http://i.cnn.net./x", Reason::HostForm),
        ("http://a,b.example/x", Reason::HostForm),
        ("http://10.0.0.1/x", Reason::PrivateAddress),
        ("http://[::1]/x", Reason::PrivateAddress),
        ("http://2130706433/x", Reason::PrivateAddress),
        ("http://i.cnn.net:8081/x", Reason::Port),
        ("http://i.cnn.net:443/x", Reason::Unsayable),
        ("https://i.cnn.net:80/x", Reason::Unsayable),
        ("https://i.cnn.net:8080/x", Reason::Unsayable),
        (long.as_str(), Reason::TooLong),
    ] {
        expect_left(&mapper, &base, reference, reason);
    }
}

#[test]
fn media_and_fonts_and_the_pages_own_host_move_at_level_full_only() {
    let full = Mapper::new(&rules(Level::Full)).unwrap();
    let base = page();
    for usage in Use::ALL {
        let moved = |mapper: &Mapper| mapper.forward(&base, "http://i.cnn.net/x", usage).replacement().is_some();
        assert!(moved(&full), "{usage:?}");
        assert_eq!(moved(&safe()), usage.moves_at() == Level::Safe, "{usage:?}");
    }
    expect_moved(&full, &base, "plane.jpg", "https://pep.example.net/www.foo.example/news/plane.jpg");
    expect_moved(&full, &base, "?page=2", "https://pep.example.net/www.foo.example/news/today.html?page=2");
    expect_moved(&full, &base, "/a/../../plane.jpg", "https://pep.example.net/www.foo.example/plane.jpg");
    let off = Mapper::new(&rules(Level::Off)).unwrap();
    expect_left(&off, &base, "http://i.cnn.net/x", Reason::Off);
    assert!(off.moves_nothing());
}

#[test]
fn a_base_of_another_host_moves_relative_references() {
    let base = page().with_href("http://cdn.example/v1/");
    expect_moved(&safe(), &base, "a/b.png?c#d", "https://pep.example.net/cdn.example/v1/a/b.png?c#d");
    expect_moved(&safe(), &base, "../../b.png", "https://pep.example.net/cdn.example/b.png");
    expect_left(&safe(), &base, "http://www.foo.example/x", Reason::SameHost);
    expect_left(&safe(), &page().with_href("data:,x"), "x", Reason::SameHost);
}

#[test]
fn https_objects_never_move_down() {
    let mut rules = rules(Level::Safe);
    rules.http_targets = vec!["198.51.100.12:8080".to_owned()];
    let both = Mapper::new(&rules).unwrap();
    expect_moved(&both, &page(), "http://i.cnn.net/x", "https://pep.example.net/i.cnn.net/x");
    rules.https_targets.clear();
    let http_only = Mapper::new(&rules).unwrap();
    expect_moved(&http_only, &page(), "http://i.cnn.net/x", "http://198.51.100.12:8080/i.cnn.net/x");
    expect_left(&http_only, &page(), "https://i.cnn.net/x", Reason::NoSecureTarget);
    rules.http_targets.clear();
    let none = Mapper::new(&rules).unwrap();
    expect_left(&none, &page(), "http://i.cnn.net/x", Reason::NoTarget);
    assert!(none.moves_nothing() && !http_only.moves_nothing());
}

#[test]
fn mixed_content_is_left_to_the_browser_and_upgraded_pages_ask_with_https() {
    let secure = Base::new(Scheme::Https, "www.foo.example", "/").unwrap();
    expect_left(&safe(), &secure, "http://i.cnn.net/x", Reason::MixedContent);
    expect_moved(&safe(), &secure, "//i.cnn.net/x", "https://pep.example.net/i.cnn.net:443/x");
    for mut base in [secure, page()] {
        base.upgrade_insecure_requests();
        expect_moved(&safe(), &base, "http://i.cnn.net/x", "https://pep.example.net/i.cnn.net:443/x");
        expect_left(&safe(), &base, "http://i.cnn.net:8080/x", Reason::Unsayable);
    }
}

#[test]
fn the_last_say_is_asked_with_the_object_and_where_it_would_go() {
    let outcome = safe().forward_if(&page(), "http://I.cnn.net:8080/a/../b c?d", Use::Script, |object| {
        assert_eq!((object.scheme, object.host, object.port), (Scheme::Http, "i.cnn.net", Some(8080)));
        assert_eq!((object.path, object.target_scheme, object.target), ("/b%20c", Scheme::Https, "pep.example.net"));
        Err(Reason::Csp)
    });
    assert_eq!(outcome, Outcome::Left(Reason::Csp));
}

/// Returns the base of a style sheet at `http://cdn.example/css/site.css` that the browser fetched from the proxy.
fn moved_sheet() -> Base {
    Base::new(Scheme::Http, "cdn.example", "/css/site.css")
        .and_then(|base| base.on_proxy(Scheme::Https, "pep.example.net", "/cdn.example/css/site.css"))
        .unwrap()
}

#[test]
fn in_a_moved_sheet_what_resolves_by_itself_is_left() {
    for reference in ["a.png", "./a.png", "../img/a.png", "?v=2", "a/b/../c.png"] {
        expect_left(&safe(), &moved_sheet(), reference, Reason::Relative);
    }
    for reference in ["", "#filter", "data:,x"] {
        assert!(matches!(safe().forward(&moved_sheet(), reference, Use::CssImage), Outcome::Left(_)));
    }
}

#[test]
fn in_a_moved_sheet_what_would_miss_its_host_is_moved_at_every_use() {
    for (reference, expected) in [
        ("/a.png", "https://pep.example.net/cdn.example/a.png"),
        ("../../a.png", "https://pep.example.net/cdn.example/a.png"),
        ("//i.cnn.net/a.png", "https://pep.example.net/i.cnn.net/a.png"),
        ("http://i.cnn.net/a.png", "https://pep.example.net/i.cnn.net/a.png"),
    ] {
        expect_moved(&safe(), &moved_sheet(), reference, expected);
    }
    assert_eq!(
        safe().forward(&moved_sheet(), "/f.woff2", Use::Font),
        Outcome::Moved("https://pep.example.net/cdn.example/f.woff2".to_owned())
    );
}

#[test]
fn in_a_moved_sheet_what_may_not_move_is_pinned_to_what_it_meant() {
    let pinned = |url: &str, reason| Outcome::Pinned(url.to_owned(), reason);
    for (reference, usage, outcome) in [
        ("//img.bank.example/a.png?q", Use::CssImage, pinned("http://img.bank.example/a.png?q", Reason::Excluded)),
        ("//fonts.example/f.woff2", Use::Font, pinned("http://fonts.example/f.woff2", Reason::Level)),
        ("http://fonts.example/f.woff2", Use::Font, Outcome::Left(Reason::Level)),
        ("http://img.bank.example/a.png", Use::CssImage, Outcome::Left(Reason::Excluded)),
    ] {
        assert_eq!(safe().forward(&moved_sheet(), reference, usage), outcome, "{reference}");
    }
    let off = Mapper::new(&rules(Level::Off)).unwrap();
    assert_eq!(
        off.forward(&moved_sheet(), "//i.cnn.net/a.png", Use::CssImage),
        pinned("http://i.cnn.net/a.png", Reason::Off)
    );
}

#[test]
fn objects_that_a_cookie_of_the_page_may_reach_stay() {
    let with = |cookies| {
        let mut base = page();
        base.keep_reach_of(cookies);
        base
    };
    let full = Mapper::new(&rules(Level::Full)).unwrap();
    let (own, sites, others) = ("/a.png", "http://img.foo.example/a.png", "http://i.cnn.net/a.png");
    let moved_own = "https://pep.example.net/www.foo.example/a.png";
    let moved_sites = "https://pep.example.net/img.foo.example/a.png";
    let moved_others = "https://pep.example.net/i.cnn.net/a.png";

    expect_moved(&full, &with(Cookies::None), own, moved_own);
    expect_left(&full, &with(Cookies::Host), own, Reason::Cookie);
    expect_left(&full, &with(Cookies::Site), own, Reason::Cookie);
    expect_left(&safe(), &with(Cookies::Site), own, Reason::SameHost);
    for mapper in [&full, &safe()] {
        expect_moved(mapper, &with(Cookies::None), sites, moved_sites);
        expect_moved(mapper, &with(Cookies::Host), sites, moved_sites);
        expect_left(mapper, &with(Cookies::Site), sites, Reason::Cookie);
        expect_left(mapper, &with(Cookies::Site), "http://IMG.foo.example:80/a.png", Reason::Cookie);
        expect_left(mapper, &with(Cookies::Site).with_href("http://i.cnn.net/"), sites, Reason::Cookie);
        expect_moved(mapper, &with(Cookies::Site), others, moved_others);
    }
}

#[test]
fn more_than_two_slashes_before_a_host_count_as_two() {
    for reference in ["///i.cnn.net/a", "////i.cnn.net/a", "//\\i.cnn.net/a", "\\/\\i.cnn.net/a", "/\t//i.cnn.net/a"] {
        expect_moved(&safe(), &page(), reference, "https://pep.example.net/i.cnn.net/a");
    }
    expect_left(&safe(), &page(), "///", Reason::Malformed);
}

#[test]
fn a_long_data_url_is_left_for_its_scheme() {
    let behind = "a".repeat(400);
    expect_left(&safe(), &page(), &format!("data:image/png;base64,{behind}"), Reason::Scheme);
    expect_left(&safe(), &page(), &format!(" DATA:{behind}"), Reason::Scheme);
    for long in [format!("HTTP://i.cnn.net/{behind}"), behind.clone(), format!("/a:{behind}")] {
        expect_left(&safe(), &page(), &long, Reason::TooLong);
    }
}

#[test]
fn at_level_off_an_empty_reference_is_left_as_empty() {
    let off = Mapper::new(&rules(Level::Off)).unwrap();
    for (reference, reason) in
        [("", Reason::Empty), (" ", Reason::Empty), ("#top", Reason::Fragment), ("a.png", Reason::Off)]
    {
        expect_left(&off, &page(), reference, reason);
    }
}
