//! Small objects that the filter inlines in the page, in a real Envoy.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::config::{Config, HTTP};
use crate::support::envoy::Envoy;
use crate::support::eventually;
use crate::support::http::{Answer, get};
use crate::support::origin::{Origin, Received, Reply};

/// The headers of a browser's first request for a page.
const BROWSER: &[(&str, &str)] = &[("accept", "text/html,image/avif,image/webp,*/*;q=0.8")];
const PAGE: &str = "<!doctype html><link rel=stylesheet href=http://img.test/dir/a.css>\
                    <img src=\"http://img.test/a.gif\"><img src=\"http://img.test/large.gif\">";

fn site(asked: &Received) -> Reply {
    let picture = |body: Vec<u8>| Reply::ok("content-type: image/gif\r\ncache-control: max-age=60\r\n", body);
    match asked.path.as_str() {
        "/a.gif" => picture(b"GIF89a".to_vec()),
        // Long enough to be stored in gzip.
        "/dir/a.css" => Reply::ok(
            "content-type: text/css\r\ncache-control: max-age=60\r\nvary: accept-encoding\r\n",
            format!("p{{{}background:url(b.gif)}}", "color:red;".repeat(40)),
        ),
        "/large.gif" => picture([&b"GIF89a"[..], &vec![b'x'; 100_000]].concat()),
        _ => Reply::ok(
            "content-type: text/html\r\netag: \"1\"\r\nlast-modified: Sat, 21 Nov 2026 13:00:00 GMT\r\n",
            PAGE,
        ),
    }
}

struct World {
    config: Config,
    envoy: Envoy,
    _origin: Origin,
    visitors: AtomicUsize,
}

impl World {
    fn new(inline: &str) -> Option<Self> {
        let mut config = Config::new("rewrite: { target: http }\n").with_filter()?;
        let (address, cache) = (config.block.at(8), config.path("cache"));
        std::fs::create_dir_all(&cache).unwrap();
        writeln!(config.yaml, "cache: {{ dir: '{}', size: 64mib }}\npage: {{ inline: {inline} }}", cache.display())
            .unwrap();
        config.edit(
            "upstream:\n",
            &format!("upstream:\n  map: {{ www.test: '{address}:8081', img.test: '{address}:8081' }}\n"),
        );
        let origin = Origin::start((address, 8081), site);
        let envoy = Envoy::start(&config)?;
        Some(Self { config, envoy, _origin: origin, visitors: AtomicUsize::new(0) })
    }

    /// Requests the page as a new visitor.
    fn browse(&self, more: &[(&str, &str)]) -> Answer {
        let visitor = self.visitors.fetch_add(1, Ordering::Relaxed).to_string();
        self.browse_as(&visitor, more)
    }

    fn browse_as(&self, visitor: &str, more: &[(&str, &str)]) -> Answer {
        let http = SocketAddr::new(self.config.proxy(), HTTP);
        get(http, "www.test", "/", &[BROWSER, &[("user-agent", visitor)], more].concat())
    }

    fn counted(&self, line: &str) -> bool {
        self.envoy.admin("/stats/prometheus?filter=inline").lines().any(|found| found == line)
    }
}

fn has_object(answer: &Answer) -> bool {
    answer.text().contains("src=\"data:image/gif;base64,R0lGODlh\"")
}

#[test]
fn a_small_picture_stands_in_the_page_of_a_later_visitor_and_a_large_one_does_not() {
    let Some(world) = World::new("on") else { return };
    let first = world.browse(&[]);
    assert!(!has_object(&first));
    assert!(first.header("etag").is_some() && first.header("last-modified").is_some());
    // Every worker has its own.
    eventually("a later page has it", || has_object(&world.browse(&[])));
    eventually("and so has the next of that worker", || {
        let later = world.browse(&[]);
        let large = later.text().contains("/img.test/large.gif\"");
        assert!(large, "too large to be worth while");
        has_object(&later) && later.header("etag").is_none() && later.header("last-modified").is_none()
    });
    eventually("it is counted", || !world.counted("longhaul_url_rewrite_inlined_total{} 0"));
}

#[test]
fn a_sheet_with_its_urls_stands_in_the_page_of_a_later_visitor() {
    let Some(world) = World::new("on") else { return };
    let base = format!("http://{}", world.config.proxy());
    eventually("it does", || {
        let page = world.browse(&[]).text();
        let sheet = page.split_once("<style>").and_then(|(_, behind)| behind.split_once("</style>"));
        sheet.is_some_and(|(text, _)| {
            let moved = format!("color:red;background:url({base}");
            text.starts_with("p{color") && text.contains(&moved) && text.ends_with("/img.test/dir/b.gif)}")
        })
    });
}

#[test]
fn a_returning_visitor_gets_urls() {
    let Some(world) = World::new("on") else { return };
    eventually("it is at hand", || has_object(&world.browse(&[])));
    eventually("who had it in the page gets URLs at whatever worker", || {
        let visitor = format!("returning {}", world.visitors.fetch_add(1, Ordering::Relaxed));
        let first = world.browse_as(&visitor, &[]);
        (0..8).for_each(|_| assert!(!has_object(&world.browse_as(&visitor, &[]))));
        has_object(&first)
    });
    eventually("it is counted", || {
        let stats = world.envoy.admin("/stats/prometheus?filter=inline_kept");
        let seen = |line: &str| line.contains("reason=\"seen\"") && !line.ends_with(" 0");
        stats.lines().any(seen)
    });
    for _ in 0..8 {
        let answer = world.browse(&[("cookie", "a=b")]);
        assert!(!has_object(&answer));
        assert!(answer.header("etag").is_some());
    }
}

#[test]
fn with_inlining_off_nothing_is_put_into_pages() {
    let Some(world) = World::new("off") else { return };
    world.browse(&[]);
    eventually("its objects were fetched", || {
        let fetched = world.envoy.admin("/stats/prometheus?filter=prefetched");
        fetched
            .lines()
            .any(|line| line.starts_with("longhaul_url_rewrite_prefetched_total{} ") && !line.ends_with(" 0"))
    });
    assert!((0..8).all(|_| !has_object(&world.browse(&[]))));
}
