use super::*;
use crate::config::{Config, Targets};
use page_scanner::Limits;
use std::rc::Rc;
use url_mapping::{Level, Outcome};

fn plan(level: Level, https: &[&str], http: &[&str]) -> Rc<Plan> {
    let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
    let config: Config = Config {
        targets: Targets { https: list(https), http: list(http), ..Targets::default() },
        ipv6_targets: None,
        own: list(&[https, http].concat()),
        level,
        exclude: list(&["bank.example"]),
        ports: vec![80, 443, 8080],
        peer_fields: Vec::new(),
        prefetch: false,
        bypass: false,
        limits: Limits::default(),
        account: false,
    };
    Plan::new(&config).unwrap()
}

fn secure() -> Rc<Plan> {
    plan(Level::Safe, &["pep.example.net"], &[])
}

fn http_page() -> Base {
    Base::new(Scheme::Http, "www.foo.example", "/").unwrap()
}

fn https_page() -> Base {
    Base::new(Scheme::Https, "www.foo.example", "/").unwrap()
}

fn text(plan: &Plan, base: &Base, policy: &str) -> String {
    translate(plan, base, policy).text.unwrap_or_else(|| policy.to_owned())
}

#[track_caller]
fn moves(plan: &Plan, base: &Base, policy: &str, usage: Use, url: &str) -> bool {
    let policies = translate(plan, base, policy).policies;
    let outcome = plan.mapper().forward_if(base, url, usage, |object| policies.permit(usage, object));
    assert!(
        matches!(outcome, Outcome::Moved(_) | Outcome::Left(Reason::Csp)),
        "{url} is left for another reason: {outcome:?}"
    );
    matches!(outcome, Outcome::Moved(_))
}

#[test]
fn a_source_that_names_a_host_gets_its_moved_form_beside_it() {
    for (policy, translated) in [
        (
            "img-src i.cnn.net",
            "img-src i.cnn.net https://pep.example.net/i.cnn.net/ https://pep.example.net/i.cnn.net:443/",
        ),
        ("img-src https://i.cnn.net", "img-src https://i.cnn.net https://pep.example.net/i.cnn.net:443/"),
        (
            "img-src HTTP://I.cnn.net/a/ ; font-src 'none'",
            "img-src HTTP://I.cnn.net/a/ https://pep.example.net/i.cnn.net/a/ https://pep.example.net/i.cnn.net:443/a/ ; font-src 'none'",
        ),
        (
            "script-src i.cnn.net:8080/x.js",
            "script-src i.cnn.net:8080/x.js https://pep.example.net/i.cnn.net:8080/x.js",
        ),
        (
            "default-src https://a.example, style-src https://b.example",
            "default-src https://a.example https://pep.example.net/a.example:443/, style-src https://b.example https://pep.example.net/b.example:443/",
        ),
    ] {
        assert_eq!(text(&secure(), &http_page(), policy), translated);
    }
    assert_eq!(
        text(&secure(), &https_page(), "img-src i.cnn.net"),
        "img-src i.cnn.net https://pep.example.net/i.cnn.net:443/"
    );
}

#[test]
fn sources_that_cannot_be_expressed_or_do_not_move_stay() {
    for policy in [
        "",
        ";;",
        "img-src *",
        "img-src *.cnn.net",
        "img-src https:",
        "img-src data: blob:",
        "img-src 'none'",
        "img-src i.cnn.net:*",
        "img-src static.bank.example",
        "img-src pep.example.net",
        "img-src 192.0.2.1",
        "img-src localhost",
        "img-src i.cnn.net:22",
        "img-src ws://i.cnn.net",
        "connect-src i.cnn.net; frame-src i.cnn.net; worker-src i.cnn.net; object-src i.cnn.net; form-action i.cnn.net",
        "img-src 'self'; img-src i.cnn.net",
        "upgrade-insecure-requests; report-uri /csp",
    ] {
        let base = Base::new(Scheme::Http, "intranet", "/").unwrap();
        assert_eq!(translate(&secure(), &base, policy).text, None, "{policy}");
    }
}

#[test]
fn a_translated_policy_is_not_translated_again() {
    for policy in [
        "img-src i.cnn.net 'self'",
        "default-src https://a.example/x/ http:; script-src b.example:8080 'unsafe-inline'",
    ] {
        let once = text(&secure(), &http_page(), policy);
        assert_ne!(once, policy);
        assert_eq!(translate(&secure(), &http_page(), &once).text, None);
    }
}

#[test]
fn each_use_is_governed_by_the_first_directive_of_its_chain() {
    let url = "https://i.cnn.net/x";
    let full = plan(Level::Full, &["pep.example.net"], &[]);
    for (policy, movable) in [
        ("img-src https://i.cnn.net; default-src 'none'", &[Use::Image, Use::Icon, Use::Poster, Use::CssImage][..]),
        ("script-src-elem https://i.cnn.net; script-src 'none'", &[Use::Script]),
        ("script-src https://i.cnn.net", &[Use::Script]),
        ("style-src https://i.cnn.net; default-src x.example", &[Use::Stylesheet, Use::CssImport]),
        ("style-src-elem https://i.cnn.net; style-src x.example", &[Use::Stylesheet, Use::CssImport]),
        ("font-src https://i.cnn.net", &[Use::Font]),
        ("media-src https://i.cnn.net", &[Use::Media, Use::Track]),
        ("default-src https://i.cnn.net", &Use::ALL),
    ] {
        for &usage in movable {
            assert!(moves(&full, &https_page(), policy, usage, url), "{policy}: {usage:?}");
        }
        let closed = policy.replace("https://i.cnn.net", "https://other.example");
        for &usage in movable {
            assert!(!moves(&full, &https_page(), &closed, usage, url), "{closed}: {usage:?}");
        }
    }
    for usage in Use::ALL {
        assert!(moves(&full, &https_page(), "connect-src 'none'; frame-ancestors 'none'", usage, url));
        assert!(!moves(&full, &https_page(), "default-src 'none'", usage, url));
    }
}

#[test]
fn only_what_a_translated_source_or_one_that_covers_the_proxy_allows_is_moved() {
    let url = "http://i.cnn.net/img/a%20b.png";
    for (policy, moved) in [
        ("img-src i.cnn.net", true),
        ("img-src i.cnn.net/img/", true),
        ("img-src i.cnn.net/img/a%20b.png", true),
        ("img-src i.cnn.net/%69mg/", true),
        ("img-src *", true),
        ("img-src http:", true),
        ("img-src https:", false),
        ("img-src https://i.cnn.net", false),
        ("img-src i.cnn.net:443", false),
        ("img-src i.cnn.net:8080", false),
        ("img-src i.cnn.net/im", false),
        ("img-src i.cnn.net/css/", false),
        ("img-src *.cnn.net", false),
        ("img-src *.cnn.net *.example.net", false),
        ("img-src *.example.net", false),
        ("img-src cnn.net 'self' data:", false),
        ("img-src i.cnn.net, img-src other.example", false),
        ("img-src i.cnn.net, default-src *", true),
    ] {
        assert_eq!(moves(&secure(), &http_page(), policy, Use::Image, url), moved, "{policy}");
    }
}

#[test]
fn nonces_hashes_and_strict_dynamic_leave_scripts_and_sheets_and_free_images() {
    let url = "https://i.cnn.net/x";
    for keyword in ["'nonce-abc'", "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='", "'Strict-Dynamic'"] {
        let policy = format!("default-src {keyword} https://i.cnn.net");
        assert!(!moves(&secure(), &https_page(), &policy, Use::Script, url));
        assert!(!moves(&secure(), &https_page(), &policy, Use::Stylesheet, url));
        assert!(moves(&secure(), &https_page(), &policy, Use::Image, url));
    }
    for keyword in ["'unsafe-inline'", "'unsafe-eval'", "'report-sample'", "'unsafe-hashes'"] {
        let policy = format!("default-src {keyword} https://i.cnn.net");
        assert!(moves(&secure(), &https_page(), &policy, Use::Script, url));
    }
}

#[test]
fn self_is_translated_for_level_full() {
    let full = plan(Level::Full, &["pep.example.net"], &[]);
    assert_eq!(
        text(&full, &http_page(), "img-src 'self'"),
        "img-src 'self' https://pep.example.net/www.foo.example/ https://pep.example.net/www.foo.example:443/"
    );
    assert!(moves(&full, &http_page(), "img-src 'self'", Use::Image, "/a.png"));
    assert!(!moves(&full, &http_page(), "img-src 'self'", Use::Image, "http://i.cnn.net/a.png"));
    let odd = Base::new(Scheme::Http, "www.foo.example:8080", "/").unwrap();
    assert_eq!(text(&full, &odd, "img-src 'self'"), "img-src 'self' https://pep.example.net/www.foo.example:8080/");
}

#[test]
fn a_proxy_that_policies_cannot_name_gets_only_what_covers_it_anyway() {
    let addressed = plan(Level::Safe, &[], &["198.51.100.12:8080"]);
    let url = "http://i.cnn.net/x";
    assert_eq!(translate(&addressed, &http_page(), "img-src i.cnn.net").text, None);
    assert!(!moves(&addressed, &http_page(), "img-src i.cnn.net", Use::Image, url));
    assert!(moves(&addressed, &http_page(), "img-src http:", Use::Image, url));
    let loopback = plan(Level::Safe, &[], &["127.0.0.1:8080"]);
    assert_eq!(
        text(&loopback, &http_page(), "img-src i.cnn.net"),
        "img-src i.cnn.net http://127.0.0.1:8080/i.cnn.net/"
    );
    assert!(moves(&loopback, &http_page(), "img-src i.cnn.net", Use::Image, url));
}

#[test]
fn a_policy_that_would_grow_too_much_stays_and_what_it_governs_with_it() {
    let hosts: Vec<String> = (0..400).map(|n| format!("h{n}.example")).collect();
    let policy = format!("img-src {}", hosts.join(" "));
    let translation = translate(&secure(), &http_page(), &format!("{policy}, font-src x.example"));
    assert!(translation.text.unwrap().starts_with(&policy));
    assert!(!moves(&secure(), &http_page(), &policy, Use::Image, "http://h7.example/x"));
    assert!(moves(&secure(), &http_page(), &policy, Use::Script, "http://h7.example/x"));
}

#[test]
fn unreadable_policies_hold_everything_and_several_hold_together() {
    let mut policies = Policies::default();
    let ask = |policies: &Policies| {
        let check = |object: &Object<'_>| policies.permit(Use::Image, object);
        secure().mapper().forward_if(&http_page(), "http://i.cnn.net/x", Use::Image, check)
    };
    assert!(matches!(ask(&policies), Outcome::Moved(_)));
    policies.extend(translate(&secure(), &http_page(), "img-src i.cnn.net").policies);
    assert!(matches!(ask(&policies), Outcome::Moved(_)));
    policies.extend(Policies::unreadable(&http_page()));
    assert_eq!(ask(&policies), Outcome::Left(Reason::Csp));
}

#[test]
fn upgrade_and_base_uri_are_reported() {
    let read = |policy: &str| translate(&secure(), &http_page(), policy).policies;
    assert!(read("Upgrade-Insecure-Requests").upgrade_insecure_requests());
    assert!(!read("img-src x.example").upgrade_insecure_requests());
    for (policy, url, heeded) in [
        ("img-src 'none'", "http://cdn.example/", true),
        ("base-uri 'self'", "http://www.foo.example/x/", true),
        ("base-uri 'self'", "http://cdn.example/", false),
        ("base-uri 'none'", "http://www.foo.example/", false),
        ("base-uri *.example", "http://cdn.example/", true),
        ("base-uri *", "ftp://cdn.example/", false),
    ] {
        assert_eq!(read(policy).permits_base(url), heeded, "{policy} {url}");
    }
}
