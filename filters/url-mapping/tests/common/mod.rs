//! Helpers that the tests of the mapping share.

#![allow(dead_code, unreachable_pub)] // each test uses some of it
#![allow(clippy::unwrap_used)] // clippy.toml does not recognise test helpers

use std::path::{Path, PathBuf};
use url::{Position, Url};
use url_mapping::{Level, Mapper, Reverse, Rules};

/// Returns rules under which as many URLs as possible move.
pub fn rules(level: Level) -> Rules {
    let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect::<Vec<_>>();
    Rules {
        https_targets: list(&["pep1.example.net", "pep2.example.net:8443"]),
        http_targets: list(&["198.51.100.12:8080"]),
        own: list(&["pep1.example.net", "pep2.example.net:8443", "198.51.100.12:8080"]),
        level,
        exclude: list(&["bank.example"]),
        ports: vec![80, 81, 443, 8080],
        url_bytes: 8192,
    }
}

pub fn mapper(level: Level) -> Mapper {
    Mapper::new(&rules(level)).unwrap()
}

/// Returns the request of a browser for `url`: its authority, and its path with query.
pub fn request(url: &Url) -> (String, String) {
    let authority = url[Position::BeforeHost..Position::AfterPort].to_owned();
    (authority, url[Position::BeforePath..Position::AfterQuery].to_owned())
}

/// Returns the true URL, without fragment, of a request at the proxy's own authority.
pub fn true_url(mapper: &Mapper, url: &Url) -> Option<String> {
    let (authority, path) = request(url);
    match mapper.reverse(authority.as_bytes(), path.as_bytes()) {
        Reverse::Origin(origin) => {
            Some(format!("{}://{}{}", origin.scheme, origin.authority, std::str::from_utf8(origin.path).unwrap()))
        }
        Reverse::NotOurs | Reverse::Refused(_) => None,
    }
}

/// Returns a URL without its fragment, as a browser requests it.
pub fn without_fragment(url: &Url) -> String {
    url[..Position::AfterQuery].to_owned()
}

/// Returns a folder of test data. If there is none, prints the reason and records it for `make test`.
pub fn corpora(folder: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let root = std::env::var_os("LONGHAUL_CORPORA").map_or(beside, PathBuf::from);
    let path = root.join(folder);
    if path.is_dir() {
        return Some(path);
    }
    let reason = format!("url-mapping: no test material {folder}; LONGHAUL_CORPORA names the folder it is in");
    eprintln!("skipped: {reason}");
    if let Some(skips) = std::env::var_os("LONGHAUL_SKIPS") {
        use std::io::Write;
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(skips).unwrap();
        writeln!(file, "{reason}").unwrap();
    }
    None
}
