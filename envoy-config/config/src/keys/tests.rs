use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use super::cut::CUT_KEYS;
use super::document::{cut_table, example, readme_table};
use super::*;
use crate::{LoadError, load_text};

/// Returns the titles of the problems of a file that holds only `text`.
fn problems(text: &str) -> Vec<String> {
    match load_text(Path::new("longhaul.yaml"), text.to_owned()) {
        Ok(_) => Vec::new(),
        Err(LoadError::Refused(report)) => report.problems.into_iter().map(|problem| problem.title).collect(),
        Err(error) => panic!("{error}"),
    }
}

/// Returns a file of `role` that sets only `key`, to `value`.
fn file(role: &str, key: &Key, value: &str) -> String {
    match key.name.split('.').collect::<Vec<_>>()[..] {
        ["role"] => format!("role: {value}\n"),
        [top] => format!("role: {role}\n{top}: {value}\n"),
        [list @ ("clients" | "links"), key] => format!("role: {role}\n{list}: [ {{ {key}: {value} }} ]\n"),
        [group, last] => format!("role: {role}\n{group}: {{ {last}: {value} }}\n"),
        [top @ "tls", group @ "acme", key] | [top @ "page", group @ "images", key] => {
            format!("role: {role}\n{top}: {{ {group}: {{ {key}: {value} }} }}\n")
        }
        [group, items, key] => format!("role: {role}\n{group}: {{ {items}: [ {{ {key}: {value} }} ] }}\n"),
        _ => panic!("{}", key.name),
    }
}

#[test]
fn the_parser_reads_every_row() {
    for key in KEYS {
        let read = ["edge", "remote", "ground"].iter().any(|role| {
            let found = problems(&file(role, key, "{ nonsense: [[]] }"));
            found.iter().any(|title| {
                let named = without_indices(title);
                named.contains(&format!("bad value for `{}`", key.name))
                    || named.contains(&format!("bad value for `{}.nonsense`", key.name))
                    || named.contains(&format!("unknown key `{}.nonsense`", key.name))
            })
        });
        assert!(read, "no role reads `{}`", key.name);
    }
}

#[test]
fn a_value_outside_its_range_is_refused() {
    let refused = |key: &Key, value: &str| {
        ["edge", "remote", "ground"].iter().any(|role| {
            let named = format!("bad value for `{}`", key.name);
            problems(&file(role, key, value)).iter().any(|title| without_indices(title) == named)
        })
    };
    for key in KEYS {
        let (inside, outside) = match key.value {
            ValueType::Number { min, max }
            | ValueType::NumberOrAuto { min, max }
            | ValueType::NumberOrWord { min, max } => (vec![min.to_string(), max.to_string()], (max + 1).to_string()),
            ValueType::Numbers { min, max } => (vec![format!("[{min}, {max}]")], format!("[{}]", max + 1)),
            ValueType::Size { min, max } => (vec![format!("{min}b"), format!("{max}b")], format!("{}b", max + 1)),
            ValueType::Time { min, max } => {
                let micros = |time: Duration| format!("{}us", time.as_micros());
                (vec![micros(min), micros(max)], micros(max + Duration::from_micros(1)))
            }
            ValueType::Rate { min } => (vec![min.to_string()], format!("{}bit", min.bits_per_second - 1)),
            ValueType::Words(words) => (words.iter().map(|word| (*word).to_owned()).collect(), "nonsense".to_owned()),
            ValueType::Boolean => (vec!["true".to_owned(), "false".to_owned()], "nonsense".to_owned()),
            ValueType::Form(_) => continue,
        };
        assert!(refused(key, &outside), "{}: {outside}", key.name);
        for value in inside {
            assert!(!refused(key, &value), "{}: {value}", key.name);
        }
    }
}

#[test]
fn names_are_unique_and_documented() {
    let names: BTreeSet<&str> = KEYS.iter().map(|key| key.name).collect();
    assert_eq!(names.len(), KEYS.len());
    assert!(KEYS.iter().all(|key| key.doc.len() > 10 && !key.doc.contains('\n')));
    assert!(below("").iter().all(|group| !below(group).is_empty() || row(group).is_some()));
}

#[test]
fn a_file_with_a_cut_key_is_accepted_and_the_warning_names_what_replaced_it() {
    let known: BTreeSet<&str> = KEYS.iter().map(|key| key.name).collect();
    for key in CUT_KEYS {
        assert!(!known.contains(key.name), "{} is cut and read", key.name);
        assert!(key.instead.starts_with("remove it") || key.instead.starts_with("write "), "{}", key.instead);
        let (group, last) = key.name.rsplit_once('.').unwrap();
        let (role, required) = match group {
            "split" => {
                let of_a_pair = ["pem", "key", "pem"].map(|kind| format!("../longhaul/tests/config/files/pep.{kind}"));
                let [cert, key, ca] = of_a_pair;
                ("remote", format!("peer: ground.example:8443, cert: {cert}, key: {key}, ca: {ca}, "))
            }
            _ => ("edge", String::new()),
        };
        let text = format!(
            "role: {role}\nlink: {{ rtt: 600ms, down: 20mbit, up: 5mbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
             upstream: {{ resolvers: [192.0.2.53] }}\n{group}: {{ {required}{last}: 127.0.0.1:9901 }}\n"
        );
        let loaded = load_text(Path::new("longhaul.yaml"), text.clone()).unwrap();
        let shown = loaded.report.render(false);
        assert!(shown.contains(&format!("warning: `{}` has no effect", key.name)), "{shown}");
        assert!(shown.contains(key.instead) && shown.contains("\n5 | "), "{shown}");
        // A slip in it is still a slip.
        assert!(
            load_text(Path::new("longhaul.yaml"), text.replace(&format!("{last}:"), &format!("{last}x:"))).is_err()
        );
    }
}

#[test]
fn the_budget_of_names_has_the_default_of_its_filter() {
    let DefaultValue::Is(default) = row("limits.new_names_per_client").unwrap().default else { panic!("a default") };
    assert_eq!(default, name_budget::limits::DEFAULT.to_string());
}

/// Compares a document of the repository with the table, or writes it.
fn agrees(path: &str, expected: &str, actual: &str) {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if expected == actual {
        return;
    }
    if env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        fs::write(&path, expected).unwrap();
        return;
    }
    let differs = expected.lines().zip(actual.lines()).find(|(expected, actual)| expected != actual);
    panic!(
        "{} differs from the table of keys, first at {differs:#?}. \
         `SNAPSHOTS=overwrite cargo test -p longhaul-config keys` writes it",
        path.display()
    );
}

#[test]
fn the_tables_of_the_readme_are_those_of_the_keys() {
    for (path, mark, table) in [
        ("../README.md", "keys", readme_table(None)),
        ("../README.md", "cut keys", cut_table()),
        ("../PAIR.md", "keys of split", readme_table(Some("split"))),
    ] {
        let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        let (begin, end) = (format!("<!-- {mark}: begin -->\n\n"), format!("\n<!-- {mark}: end -->"));
        let (before, rest) = page.split_once(&begin).unwrap();
        let (_, after) = rest.split_once(&end).unwrap();
        agrees(path, &format!("{before}{begin}{table}{end}{after}"), &page);
    }
}

#[test]
fn the_example_of_the_packages_is_that_of_the_keys() {
    let path = "../../deploy/package/longhaul.yaml";
    let packaged = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_default();
    agrees(path, &example(), &packaged);
}

#[test]
fn the_example_lacks_only_what_has_no_default() {
    let mut missing = problems(&example());
    missing.sort();
    let bad = |name: &str| format!("bad value for `{name}`");
    let names = ["link.down", "link.rtt", "link.up", "proxy.addresses", "upstream.resolvers"];
    assert_eq!(missing, names.map(bad));
}

#[test]
fn every_line_of_the_example_is_accepted_once_it_is_no_comment() {
    // Keys of a pair, and keys that name other files.
    let elsewhere = ["split", "tls"];
    let mut lines = Vec::new();
    let mut group = String::new();
    for line in example().lines() {
        let line = line.strip_prefix("# ").unwrap_or(line);
        if line.trim_start().starts_with('#') {
            continue;
        }
        let Some((key, rest)) = line.split_once(':') else { continue };
        let in_group = key.starts_with("  ");
        if !in_group {
            group = key.to_owned();
        }
        let known = if in_group { row(&format!("{group}.{}", key.trim())).is_some() } else { below("").contains(&key) };
        if !known || elsewhere.contains(&group.as_str()) {
            continue;
        }
        let name = if in_group { format!("{group}.{}", key.trim()) } else { group.clone() };
        match row(&name).map(|key| key.default) {
            Some(DefaultValue::Required(example)) => lines.push(format!("{key}: {example}")),
            Some(DefaultValue::Derived(_)) => {}
            _ => lines.push(format!("{key}:{rest}")),
        }
    }
    let text = lines.join("\n");
    assert_eq!(problems(&text), Vec::<String>::new(), "{text}");
    let minimal = KEYS.iter().filter_map(|key| match key.default {
        DefaultValue::Required(example) if ["link", "proxy", "upstream"].contains(&key.group()) => {
            Some((key.group(), format!("{}: {example}", key.last())))
        }
        _ => None,
    });
    let mut required = std::collections::BTreeMap::<&str, Vec<String>>::new();
    for (group, line) in minimal {
        required.entry(group).or_default().push(line);
    }
    let mut shortest: Vec<String> =
        required.iter().map(|(group, lines)| format!("{group}: {{ {} }}", lines.join(", "))).collect();
    shortest.push("tracing: { collector: 127.0.0.1:4318 }".to_owned());
    let settings = |text: &str| load_text(Path::new("longhaul.yaml"), text.to_owned()).unwrap().settings;
    assert_eq!(
        format!("{:?}", settings(&text)),
        format!("{:?}", settings(&shortest.join("\n"))),
        "a default written is the default"
    );
}

#[test]
fn the_man_page_has_every_key_and_no_markdown() {
    let page = man_page();
    let text = page.replace("\\-", "-");
    for key in KEYS {
        assert!(text.contains(&format!("\\fB{}\\fR", key.name)), "{}", key.name);
    }
    for key in TransportKey::ALL {
        assert!(text.contains(&format!("transport.{}", key.name())), "{}", key.name());
    }
    assert!(!text.contains("]("), "a link");
    assert!(!text.contains('`'), "code");
}
