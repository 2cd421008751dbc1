//! Megabytes per second on named pages: the parser alone with different handlers, and the rewriter with and without
//! URLs to move. `cargo bench -p url-rewriting -- [part of a page's name] [milliseconds a figure] [part of a variant's
//! name]`
//!
//! Every figure is the best of several rounds. The variants take turns, because the machine's speed changes during a
//! run. Only ratios within one run are meaningful.

#![allow(missing_docs, clippy::unwrap_used, clippy::cast_precision_loss, reason = "a program for measuring")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use lol_html::{HtmlRewriter, Settings, element};
use url_mapping::{Base, Scheme};
use url_rewriting::{Body, Kind, Plan, Policies, Preloads, Rewriter};

/// Pages of different kinds: dense with tags, ordinary news of two ages, long with scripts and data.
const PAGES: [(&str, &str); 7] = [
    ("spec", "lol-html/benches/data/ecma402-spec.html"),
    ("shop", "lol-html/benches/data/cloudflare.com.html"),
    ("news 2010", "goose3/tests/data/content/test_elmondo1.html"),
    ("news 2013", "goose3/tests/data/content/test_techcrunch1.html"),
    ("portal", "goose3/tests/data/content/test_yahoo.html"),
    ("news 2019", "trafilatura/tests/cache/theguardian.com.academics.html"),
    ("magazine", "trafilatura/tests/cache/pcgamer.com.skyrim.html"),
];

/// The size in which Envoy hands bodies over.
const CHUNK_BYTES: usize = 16 * 1024;

/// Rewrites a page and returns the size of the output in bytes.
type Run = Box<dyn Fn(&[u8]) -> usize>;
type Variant = (&'static str, Run);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let wanted = arguments.first().cloned().unwrap_or_default();
    let time = Duration::from_millis(arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(300));
    let Some(folder) = corpora() else { return };
    let only = arguments.get(2).cloned().unwrap_or_default();
    let variants: Vec<Variant> = variants().into_iter().filter(|(name, _)| name.contains(&only)).collect();
    print!("{:<12}{:>8}", "MB/s", "KiB");
    for (name, _) in &variants {
        print!("{name:>14}");
    }
    println!();
    let mut logs = vec![0.0; variants.len()];
    let mut pages = 0;
    for (name, path) in PAGES.iter().filter(|(name, _)| name.contains(&wanted)) {
        let page = std::fs::read(folder.join(path)).unwrap();
        let best = measure(&page, &variants, time);
        print!("{name:<12}{:>8}", page.len() / 1024);
        for (speed, log) in best.iter().zip(&mut logs) {
            print!("{speed:>14.0}");
            *log += speed.ln();
        }
        println!();
        pages += 1;
    }
    print!("{:<20}", "geometric mean");
    for log in logs {
        print!("{:>14.0}", (log / f64::from(pages)).exp());
    }
    println!();
}

fn measure(page: &[u8], variants: &[Variant], time: Duration) -> Vec<f64> {
    const ROUNDS: u32 = 5;
    let mut best = vec![0.0_f64; variants.len()];
    for _ in 0..ROUNDS {
        for ((_, run), best) in variants.iter().zip(&mut best) {
            let start = Instant::now();
            let mut bytes = 0;
            while start.elapsed() < time / ROUNDS {
                black_box(run(black_box(page)));
                bytes += page.len();
            }
            *best = best.max(bytes as f64 / start.elapsed().as_secs_f64() / 1e6);
        }
    }
    best
}

fn variants() -> Vec<Variant> {
    const TYPES: &str = "img, source, input, video, audio, track, script, link, iframe, frame, embed, object, image, \
         feimage, use, base, meta, style, noscript, template";
    vec![
        ("parse", parser("")),
        ("parse *", parser("*")),
        ("parse types", parser(TYPES)),
        ("types+[style]", parser(&format!("{TYPES}, [style], [background]"))),
        ("off", rewriter("off", Kind::Html)),
        ("safe", rewriter("safe", Kind::Html)),
        ("full", rewriter("full", Kind::Html)),
        ("as css", rewriter("full", Kind::Css)),
    ]
}

fn parser(selectors: &str) -> Run {
    let selectors = selectors.to_owned();
    Box::new(move |page| {
        let mut out = 0;
        let mut settings = Settings::new().with_strict(false);
        if !selectors.is_empty() {
            settings = settings.append_element_content_handler(element!(selectors, |_| Ok(())));
        }
        let mut rewriter = HtmlRewriter::new(settings, |bytes: &[u8]| out += bytes.len());
        for chunk in page.chunks(CHUNK_BYTES) {
            rewriter.write(chunk).unwrap();
        }
        rewriter.end().unwrap();
        out
    })
}

fn rewriter(level: &str, kind: Kind) -> Run {
    let json = format!(
        r#"{{"targets": {{"https": ["pep.example.net"]}}, "own": ["pep.example.net"], "level": "{level}", "ports": [80, 443]}}"#
    );
    let plan = Plan::from_json(json.as_bytes()).unwrap();
    Box::new(move |page| {
        let base = Base::new(Scheme::Http, "www.test.example", "/dir/page.html").unwrap();
        let body = Body {
            kind,
            packing: url_rewriting::Packing::Plain,
            base,
            encoding: None,
            policies: Policies::default(),
            preloads: Preloads::default(),
        };
        let mut rewriter = Rewriter::new(Rc::clone(&plan), body, None);
        let mut out = Vec::new();
        let mut bytes = 0;
        for chunk in page.chunks(CHUNK_BYTES) {
            rewriter.write(chunk, &mut out);
            bytes += out.len();
            out.clear();
        }
        rewriter.finish(&mut out);
        bytes + out.len()
    })
}

fn corpora() -> Option<PathBuf> {
    let root = std::env::var_os("LONGHAUL_CORPORA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/corpora"), PathBuf::from);
    let folder = root.join("html");
    if folder.is_dir() {
        Some(folder)
    } else {
        eprintln!("skipped: no pages at {} (LONGHAUL_CORPORA names the folder above)", folder.display());
        None
    }
}
