//! The filter fetches the moved objects of a page into the cache before the browser requests them.

use std::fmt::Write as _;
use std::net::SocketAddr;

use crate::support::config::{Config, HTTP};
use crate::support::dns::Dns;
use crate::support::envoy::Envoy;
use crate::support::eventually;
use crate::support::http::{Answer, get, request, send};
use crate::support::origin::{Origin, Received, Reply};

const HOST: &str = "www.test";
/// The headers of a browser's request for a page.
const BROWSER: &[(&str, &str)] = &[
    ("user-agent", "a browser"),
    ("accept", "text/html,application/xhtml+xml,image/avif,image/webp,*/*;q=0.8"),
    ("accept-language", "de"),
    ("cookie", "secret=1"),
];
const LARGE: usize = 3 << 20;

/// A browser always requests this object. It ends every page here, so every prefetch of the page comes before it.
const LAST: &str = "<img src=\"http://img.test/last.png\">";
/// A browser may request none of these.
const UNCERTAIN: &str = concat!(
    "<img src=\"http://img.test/not/lazy.png\" loading=lazy>",
    "<img src=\"http://img.test/not/fallback.png\" srcset=\"http://img.test/not/one.png 1x, http://img.test/not/two.png 2x\">",
    "<picture><source srcset=\"http://img.test/not/source.png\"><img src=\"http://img.test/not/last-choice.png\"></picture>",
    "<noscript><img src=\"http://img.test/not/noscript.png\"></noscript>",
    "<template><img src=\"http://img.test/not/template.png\"></template>",
    "<script nomodule src=\"http://img.test/not/old.js\"></script>",
    "<link rel=icon href=\"http://img.test/not/icon.png\">",
    "<link rel=prefetch as=script href=\"http://img.test/not/later.js\">",
    "<div style=\"background: url(http://img.test/not/background.png)\"></div>",
    "<img crossorigin src=\"http://img.test/not/cors.png\">",
    "<video src=\"http://img.test/not/video.mp4\"></video>",
    "<img src=\"http://img.test/not/a space.png\">",
    "<img src=\"http://img.test/not/counter.png?reader=1\">",
);

fn site(asked: &Received) -> Reply {
    let page =
        |body: &str| Reply::ok("content-type: text/html; charset=utf-8\r\n", format!("<!doctype html>{body}{LAST}"));
    let kept =
        |kind: &str, body: Vec<u8>| Reply::ok(&format!("content-type: {kind}\r\ncache-control: max-age=60\r\n"), body);
    match asked.path.as_str() {
        "/page" => page(concat!(
            "<link rel=stylesheet href=\"http://img.test/a.css\"><img src=\"http://img.test/a.png\">",
            "<script src=\"http://img.test/a.js\"></script><img src=\"http://img.test/a.png\">"
        )),
        "/uncertain" => page(UNCERTAIN),
        "/missing" => Reply::Whole("HTTP/1.1 404 Not Found\r\ncontent-type: text/html\r\n".to_owned(), LAST.into()),
        "/plain" => page(""),
        "/hushed" => Reply::ok("content-type: text/html\r\nreferrer-policy: no-referrer\r\n", LAST),
        "/counted" => page("<script src=\"http://img.test/no-store.js\"></script>"),
        "/inside" => page("<img src=\"http://inside.test:8081/a.png\">"),
        "/large" => page("<img src=\"http://img.test/large.png\">"),
        "/many" => {
            page(&(0..200).map(|n| format!("<img src=\"http://many.test/{n}.png\">")).collect::<Vec<_>>().concat())
        }
        "/no-store.js" => Reply::ok("content-type: text/javascript\r\ncache-control: no-store\r\n", "1"),
        "/large.png" => kept("image/png", vec![b'x'; LARGE]),
        "/a.css" => kept("text/css", b"a{}".to_vec()),
        "/a.js" => kept("text/javascript", b"1".to_vec()),
        _ => kept("image/png", b"a picture".to_vec()),
    }
}

struct World {
    config: Config,
    origin: Origin,
    envoy: Envoy,
    _dns: Dns,
}

impl World {
    fn new(more: &str) -> Option<Self> {
        let mut config = Config::new("rewrite: { target: http }\n").with_filter()?;
        let (address, cache) = (config.block.at(8), config.path("cache"));
        std::fs::create_dir_all(&cache).unwrap();
        writeln!(config.yaml, "cache: {{ dir: '{}', size: 64mib }}\n{more}", cache.display()).unwrap();
        config.edit(
            "upstream:\n",
            &format!("upstream:\n  map: {{ www.test: '{address}:8081', img.test: '{address}:8081', many.test: '{address}:8081' }}\n"),
        );
        let origin = Origin::start((address, 8081), site);
        let dns = Dns::start(config.block.at(2), &[("inside.test", &["10.0.0.1".parse().unwrap()])]);
        let envoy = Envoy::start(&config)?;
        Some(Self { config, origin, envoy, _dns: dns })
    }

    fn http(&self) -> SocketAddr {
        SocketAddr::new(self.config.proxy(), HTTP)
    }

    fn browse(&self, path: &str) -> Answer {
        get(self.http(), HOST, path, BROWSER)
    }

    /// Requests a moved object as a browser does.
    fn object(&self, url: &str) -> Answer {
        get(self.http(), &self.http().to_string(), url, &[("accept", "*/*")])
    }

    /// The requested paths of the origin that are no pages, in order.
    fn objects(&self) -> Vec<String> {
        let paths = self.origin.received().into_iter().map(|asked| asked.path);
        paths.filter(|path| path.contains('.')).collect()
    }

    /// Waits until all prefetches of a page are done. The page ends with `LAST`, as all do.
    fn fetched_all(&self) -> Vec<String> {
        eventually("the page's last object is fetched", || self.objects().iter().any(|path| path == "/last.png"));
        self.objects()
    }

    fn counted(&self, line: &str) -> bool {
        self.envoy.admin("/stats/prometheus?filter=prefetch").lines().any(|found| found == line)
    }
}

#[test]
fn a_pages_objects_are_cached_before_the_browser_requests_them() {
    let Some(world) = World::new("") else { return };
    assert_eq!(world.browse("/page").status, 200);
    eventually("they are counted", || world.counted("longhaul_url_rewrite_prefetched_total{} 4"));
    assert_eq!(world.objects().len(), 4, "each once: {:?}", world.objects());
    for (path, accept) in [("/a.css", "text/css,*/*;q=0.1"), ("/a.js", "*/*"), ("/a.png", "image/avif,image/webp")] {
        let asked = world.origin.received().into_iter().find(|asked| asked.path == path).unwrap();
        assert!(asked.header("accept").is_some_and(|value| value.starts_with(accept)), "{asked:?}");
        assert_eq!((asked.header("host"), asked.method.as_str()), (Some("img.test"), "GET"));
        assert_eq!((asked.header("user-agent"), asked.header("accept-language")), (Some("a browser"), Some("de")));
        assert_eq!(asked.header("referer"), Some("http://www.test/"));
        let others = ["host", "accept", "user-agent", "accept-language", "referer", "cdn-loop", "accept-encoding"];
        assert!(asked.headers.iter().all(|(name, _)| others.contains(&name.as_str())), "{asked:?}");
        let hit = world.object(&format!("/img.test{path}"));
        assert_eq!(hit.status, 200);
        assert!(hit.header("age").is_some(), "{path}: {hit:?}");
    }
    assert_eq!(world.objects().len(), 4, "the browser's requests reached no origin");
    eventually("a worker that fetched it knows what is held", || {
        world.browse("/page");
        let skipped = world.envoy.admin("/stats/prometheus?filter=prefetch_skipped");
        skipped.lines().any(|line| line.contains("\"held\"") && !line.ends_with(" 1"))
    });
    assert_eq!(world.objects().len(), 4, "and the other finds it in the cache");
    assert!(!world.envoy.log().contains("restricted proxy-wasm capability"), "{}", world.envoy.log());
}

#[test]
fn objects_that_a_browser_may_not_request_are_not_prefetched() {
    let Some(world) = World::new("") else { return };
    world.browse("/uncertain");
    assert_eq!(world.fetched_all(), ["/last.png"]);
    eventually("it is counted", || world.counted("longhaul_url_rewrite_prefetch_skipped_total{reason=\"unproven\"} 1"));
    assert!(world.counted("longhaul_url_rewrite_prefetch_skipped_total{reason=\"cors\"} 0"), "level safe moves none");
    eventually("a worker that saw it kept fetches it with any query", || {
        assert_eq!(world.object("/img.test/not/counter.png?reader=2").status, 200);
        world.browse("/uncertain");
        world.objects().iter().any(|path| path == "/not/counter.png?reader=1")
    });
}

#[test]
fn nothing_is_fetched_for_who_would_not_ask_for_it() {
    let Some(world) = World::new("") else { return };
    let with = |more: &[(&'static str, &'static str)]| get(world.http(), HOST, "/plain", &[BROWSER, more].concat());
    with(&[("save-data", "on")]);
    with(&[("sec-purpose", "prefetch;prerender")]);
    with(&[("cache-control", "no-cache")]);
    assert_eq!(get(world.http(), HOST, "/plain", &[("accept", "*/*")]).status, 200, "a program that is no browser");
    assert_eq!(world.browse("/missing").status, 404);
    send(world.http(), &request("HEAD", "/plain", &[&[("host", HOST)], BROWSER].concat())).unwrap();
    for reason in ["save_data", "speculative", "reload", "status"] {
        eventually("pages are counted", || {
            world.counted(&format!("longhaul_url_rewrite_prefetch_skipped_total{{reason=\"{reason}\"}} 1"))
        });
    }
    assert_eq!(world.objects(), Vec::<String>::new());
    world.browse("/hushed");
    assert_eq!(world.fetched_all(), ["/last.png"]);
    assert_eq!(world.origin.last().header("referer"), None, "a page that keeps itself to itself");
}

#[test]
fn with_prefetch_off_nothing_is_fetched_and_there_is_no_way_to() {
    let Some(world) = World::new("page: { prefetch: off }\n") else { return };
    world.browse("/page");
    assert_eq!(world.object("/img.test/a.png").status, 200);
    assert_eq!(world.objects(), ["/a.png"]);
    // Requests that fill the cache use the hop, by a cluster that no filter names.
    assert!(!world.envoy.admin("/clusters").lines().any(|line| line.starts_with("fetch::")));
}

#[test]
fn objects_that_the_cache_does_not_store_are_prefetched_only_once() {
    let Some(world) = World::new("") else { return };
    let asked = || world.objects().iter().filter(|path| *path == "/no-store.js").count();
    world.browse("/counted");
    world.fetched_all();
    // Each worker learns for itself, from the response. There are two, and one may ask again before its response has come.
    let visits = || {
        for _ in 0..20 {
            eventually("the worker that asked knows", || {
                let line = format!("longhaul_url_rewrite_prefetch_failed_total{{reason=\"uncacheable\"}} {}", asked());
                world.counted(&line)
            });
            world.browse("/counted");
        }
        asked()
    };
    let learnt = visits();
    assert!((1..10).contains(&learnt), "{learnt}");
    assert_eq!(visits(), learnt);
}

#[test]
fn the_guard_stands_before_what_a_page_names_too() {
    let Some(world) = World::new("") else { return };
    world.browse("/inside");
    world.fetched_all();
    eventually("the guard refused it", || {
        world.counted("longhaul_url_rewrite_prefetch_failed_total{reason=\"status\"} 1")
    });
}

#[test]
fn a_large_object_is_read_by_the_cache_alone() {
    let Some(world) = World::new("") else { return };
    world.browse("/large");
    world.fetched_all();
    eventually("it is too large to be held", || {
        world.counted("longhaul_url_rewrite_prefetch_failed_total{reason=\"no_answer\"} 1")
    });
    let hit = world.object("/img.test/large.png");
    assert_eq!(hit.body.len(), LARGE);
    assert_eq!(world.objects().iter().filter(|path| *path == "/large.png").count(), 1, "and it is in the cache");
}

#[test]
fn one_page_has_so_many_objects_of_a_host_fetched_and_no_more() {
    let Some(world) = World::new("") else { return };
    world.browse("/many");
    world.fetched_all();
    eventually("the rest is counted", || {
        world.counted("longhaul_url_rewrite_prefetch_skipped_total{reason=\"page_limit\"} 152")
    });
    eventually("what fits is fetched", || world.counted("longhaul_url_rewrite_prefetched_total{} 49"));
    assert_eq!(world.objects().len(), 49);
}
