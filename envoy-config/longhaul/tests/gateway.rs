//! `longhaul render --for`: the resources beside `deploy/gateway/longhaul.yaml` are those that the command writes.
//!
//! `SNAPSHOTS=overwrite cargo test -p longhaul --test gateway` writes them again.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use snapbox::{Assert, Data};

const EXAMPLES: &str = "../../deploy/gateway";

/// Runs `longhaul render` in a folder with the example's file and a certificate.
fn render(folder: &Path, arguments: &[&str]) -> Output {
    for file in ["pep.pem", "pep.key"] {
        fs::copy(Path::new("tests/config/files").join(file), folder.join(file)).unwrap();
    }
    Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args([&["render", "longhaul.yaml", "--out", "out"], arguments].concat())
        .current_dir(folder)
        .output()
        .unwrap()
}

fn with_the_example() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(Path::new(EXAMPLES).join("longhaul.yaml"), folder.path().join("longhaul.yaml")).unwrap();
    folder
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_examples_are_what_the_command_writes() {
    for (plane, engine, files) in [
        ("envoy-gateway", "wasm", &["extension.yaml", "patch.yaml"][..]),
        ("envoy-gateway", "native", &["native.yaml"]),
        ("istio", "wasm", &["wasm-plugin.yaml"]),
    ] {
        let folder = with_the_example();
        let output = render(folder.path(), &["--for", plane, "--engine", engine, "--gateway", "sites/sites"]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains("Name yours with --image"), "{}", stderr(&output));
        let written: Vec<_> =
            fs::read_dir(folder.path().join("out")).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(written.len(), files.len(), "{written:?}");
        for file in files {
            let expected = Data::read_from(&Path::new(EXAMPLES).join(plane).join(file), None).raw();
            let text = fs::read_to_string(folder.path().join("out").join(file)).unwrap();
            Assert::new().action_env("SNAPSHOTS").eq(text, expected);
        }
    }
}

#[test]
fn the_options_name_the_gateway_its_listeners_and_the_image() {
    let folder = with_the_example();
    let image = "registry.example.org/own/filter@sha256:00";
    let options =
        ["--for", "envoy-gateway", "--gateway", "shop/web", "--listener", "a", "--listener", "b", "--image", image];
    let output = render(folder.path(), &options);
    assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
    let read = |file: &str| fs::read_to_string(folder.path().join("out").join(file)).unwrap();
    let (extension, patch) = (read("extension.yaml"), read("patch.yaml"));
    assert!(extension.contains(image) && patch.contains(image));
    assert!(patch.contains("name: \"shop/web/a\"") && patch.contains("name: \"shop/web/b\""), "{patch}");
    assert!(extension.contains("namespace: \"shop\"") && !extension.contains("\"sites\""), "{extension}");
}

#[test]
fn a_file_that_has_no_form_in_a_gateway_is_refused_and_nothing_is_written() {
    let remote = "role: remote\nlink: { rtt: 600ms, down: 20mbit, up: 5mbit }\nproxy: { addresses: [192.0.2.1] }\n\
                  split: { peer: \"192.0.2.9:8443\", cert: pep.pem, key: pep.key, ca: pep.pem }\n";
    let example = fs::read_to_string(Path::new(EXAMPLES).join("longhaul.yaml")).unwrap();
    let off = example.replace("exclude: [bank.example]", "level: off");
    for (config, says) in [(remote, "`role: remote` has no form in a gateway"), (&off, "no URL of a page would move")] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("longhaul.yaml"), config).unwrap();
        let output = render(folder.path(), &["--for", "istio"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(&format!("longhaul.yaml: {says}")), "{}", stderr(&output));
        assert!(!folder.path().join("out").exists());
    }
    let folder = with_the_example();
    let output = render(folder.path(), &["--for", "istio", "--gateway", "Sites"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("expected NAMESPACE/NAME in lower case"), "{}", stderr(&output));
    let output = render(folder.path(), &["--for", "istio", "--engine", "native"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("Istio's WasmPlugin takes wasm modules only"), "{}", stderr(&output));
    let output = render(folder.path(), &["--image", "registry.example.org/own/filter:1"]);
    assert!(stderr(&output).contains("--for"), "{}", stderr(&output));
}
