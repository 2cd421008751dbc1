//! A remedy must be right: what a help line tells to type, typed in place of the value, is accepted.

use std::ops::Range;
use std::path::Path;

use longhaul_config::{LoadError, Problem, Severity, load_text};
use proptest::prelude::*;

use super::cases::edge;
use super::{LINK, PROXY, UPSTREAM, write_files};

/// Returns the problems of a file.
fn problems(folder: &Path, yaml: &str) -> Vec<Problem> {
    match load_text(&folder.join("longhaul.yaml"), yaml.to_owned()) {
        Ok(loaded) => loaded.report.problems,
        Err(LoadError::Refused(report)) => report.problems,
        Err(error) => panic!("{error}"),
    }
}

/// Returns what a help line tells to type in place of the value: the texts in backticks or quotes behind these words.
fn typed(help: &str) -> Vec<String> {
    let mut found = Vec::new();
    for clause in ["write ", "such as ", "add a port: ", "add the port: ", "add the unit: ", "or none: ", "number: "] {
        for (at, _) in help.match_indices(clause) {
            let mut rest = &help[at + clause.len()..];
            while let Some((mark, behind)) = ['`', '"'].iter().find_map(|mark| Some((*mark, rest.strip_prefix(*mark)?)))
            {
                let Some((text, after)) = behind.split_once(mark) else { break };
                found.push(if mark == '"' { format!("\"{text}\"") } else { text.to_owned() });
                let Some(next) = after.strip_prefix(" or ") else { break };
                rest = next;
            }
        }
    }
    found
}

/// Returns the text with `typed` in place of the value, or of the values of the keys in `typed`.
fn replaced(yaml: &str, place: &Range<usize>, typed: &str) -> String {
    // An empty value has the place of its key.
    let place = if yaml[place.end..].starts_with(": ") { &(place.end + 2..place.end + 2) } else { place };
    let in_place = || format!("{}{typed}{}", &yaml[..place.start], &yaml[place.end..]);
    if let Some((_, group)) = typed.split_once(": ").filter(|(_, value)| value.starts_with('{')) {
        let start = yaml[..place.start].rfind('\n').map_or(0, |end| end + 1);
        let end = yaml[place.end..].find('\n').map_or(yaml.len(), |at| place.end + at);
        assert!(group.ends_with('}'), "{typed}");
        return format!("{}{typed}{}", &yaml[..start], &yaml[end..]);
    }
    if let Some((key, list)) = typed.split_once(": ").filter(|(_, value)| value.starts_with('[')) {
        assert!(yaml[..place.start].ends_with(&format!("{key}: ")), "{typed}");
        return format!("{}{list}{}", &yaml[..place.start], &yaml[place.end..]);
    }
    let pairs: Option<Vec<(&str, &str)>> = typed.split(", ").map(|pair| pair.split_once(": ")).collect();
    pairs.map_or_else(in_place, |pairs| {
        pairs
            .into_iter()
            .try_fold(yaml.to_owned(), |yaml, (key, value)| {
                let start = yaml.find(&format!("{key}: "))? + key.len() + 2;
                let end =
                    yaml[start..].find([',', '}', '\n']).map(|at| start + yaml[start..start + at].trim_end().len())?;
                Some(format!("{}{value}{}", &yaml[..start], &yaml[end..]))
            })
            .unwrap_or_else(in_place)
    })
}

/// Returns true unless the remedy is a key, or a line of another file.
fn is_of_a_value(problem: &Problem) -> bool {
    problem.elsewhere.is_none() && !problem.title.starts_with("unknown key")
}

/// Types what the help of each problem tells, one after the other. Returns the number of remedies, and a text for each
/// that does not mend its problem or makes another error.
fn try_remedies(folder: &Path, yaml: &str) -> (usize, Vec<String>) {
    let found = problems(folder, yaml);
    let known: Vec<&str> = found.iter().map(|problem| problem.title.as_str()).collect();
    let (mut tried, mut failed) = (0, Vec::new());
    for problem in found.iter().filter(|problem| is_of_a_value(problem)) {
        for typed in typed(problem.help.as_deref().unwrap_or_default()).iter().filter(|typed| !typed.contains("...")) {
            let mended = replaced(yaml, &problem.place, typed);
            let left = problems(folder, &mended);
            let bad = left.iter().find(|left| {
                // Some cases are files of one line.
                let is_new = !known.contains(&left.title.as_str()) && !left.title.ends_with(" is missing");
                left.title == problem.title || left.severity == Severity::Error && is_new
            });
            failed.extend(bad.map(|bad| format!("{yaml}{problem:?}\n`{typed}` leads to\n{mended}{bad:?}\n")));
            tried += 1;
        }
    }
    (tried, failed)
}

#[test]
fn what_a_help_line_tells_to_type_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path());
    let (mut tried, mut failed) = (0, Vec::new());
    for case in super::all() {
        let of_case = try_remedies(folder.path(), &case.yaml.replace('▶', ""));
        tried += of_case.0;
        failed.extend(of_case.1);
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(tried > 60, "{tried}");
}

/// Lines with one value to come, by the characters that slips in it are made of.
const KEYS: &[(&str, &str)] = &[
    ("link: { rtt: @, down: 20mbit, up: 5mbit }\n", "[0-9]{1,3}([.,][0-9]{1,2})? ?(us|ms|msec|s|sec|m|min|h|d|)"),
    (
        "link: { rtt: 600ms, down: @, up: 5mbit }\n",
        "[0-9]{1,4}([.,][0-9]{1,2})? ?(bit|kbit|mbit|Mbps|Mbit/s|MB/s|k|gbit|)",
    ),
    ("cache: { size: @ }\n", "[0-9]{1,4}([.,][0-9]{1,2})? ?(b|kb|kib|MB|mib|G|gib|gigabytes|T|)"),
    ("limits: { connections: @ }\n", "[1-9][0-9]{0,2}([ _,'][0-9]{3})?(k|K|%|)"),
    ("proxy: { addresses: [@] }\n", "(http://|)[0-9]{1,3}\\.0?[0-9]{1,2}\\.0\\.1(/[0-9]{1,2}|:80|)"),
    ("upstream: { resolvers: [@] }\n", "(udp://|https://|)192\\.0\\.2\\.[0-9]{1,2}(/[0-9]{1,2}|:53|:0|)"),
    ("upstream: { resolvers: [192.0.2.53], ports: [443, @] }\n", "[1-9][0-9]{0,4}(-[0-9]{1,5}|)"),
    (
        "upstream: { resolvers: [192.0.2.53], deny: [@] }\n",
        "203\\.0\\.113\\.[0-9]{1,2}/(255\\.255\\.255\\.0|[0-9]{1,2})",
    ),
    ("tracing: { collector: @ }\n", "(http://|)(192\\.0\\.2\\.9|localhost|collector\\.example|)(:[0-9]{1,5}|:http|)/?"),
    ("rewrite: { exclude: [@] }\n", "(https://|\"\\*\\.|)[a-z]{1,3}\\.example(:443|/|)"),
    ("compare: @\n", "[0-9]{1,2}(%| %|)"),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_mistyped_the_remedy_is_accepted(
        (lines, value) in proptest::sample::select(KEYS).prop_flat_map(|(lines, form)| (Just(lines), form)),
    ) {
        let folder = Path::new("/nonexistent");
        let quoted = value.starts_with('"');
        let value = if quoted { format!("{value}\"") } else { value };
        let yaml = edge("", &lines.replace('@', &value), "", "").yaml;
        let (_, failed) = try_remedies(folder, &yaml);
        prop_assert!(failed.is_empty(), "{}", failed.join("\n"));
    }
}

#[test]
fn the_lines_of_this_test_are_right_with_right_values() {
    for (lines, right) in KEYS.iter().map(|(lines, _)| *lines).zip([
        "600ms",
        "20mbit",
        "1gib",
        "500",
        "198.51.100.1",
        "192.0.2.53",
        "80",
        "203.0.113.0/24",
        "192.0.2.9:4318",
        "a.example",
        "5%",
    ]) {
        let yaml = edge("", &lines.replace('@', right), "", "").yaml;
        assert!(
            yaml.contains("link:") && yaml.contains("proxy:") && yaml.contains("upstream:"),
            "{LINK}{PROXY}{UPSTREAM}"
        );
        assert_eq!(problems(Path::new("/nonexistent"), &yaml), [], "{yaml}");
    }
}
