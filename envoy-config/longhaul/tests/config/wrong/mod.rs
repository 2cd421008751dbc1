//! Wrong configurations as operators write them, one slip each. `▶` marks the place that the message must name.
//!
//! Each case scores 0 to 3, as a reader of the message would score it. The exact place and no second message give one
//! point, the fault one, and the text to type one. A wrong exit status scores 0. The goal is a mean above 2.7 and no
//! class below 2.

mod cases;
mod implausible;
mod remedies;
mod slips;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use rcgen::{CertificateParams, CertifiedIssuer, KeyPair};

const LINK: &str = "link: { rtt: 600ms, down: 20mbit, up: 5mbit }\n";
const PROXY: &str = "proxy: { addresses: [198.51.100.12] }\n";
const UPSTREAM: &str = "upstream: { resolvers: [192.0.2.53] }\n";
const LEAST_MEAN: f64 = 2.7;

/// The exit status that the file must get.
#[derive(Clone, Copy, PartialEq)]
enum Verdict {
    Refused,
    Warned,
}

struct Case {
    class: &'static str,
    yaml: String,
    verdict: Verdict,
    fault: &'static str,
    fix: &'static str,
}

impl Case {
    /// The same with `from` replaced, which must be there.
    fn with(mut self, from: &str, to: &str) -> Self {
        assert!(self.yaml.contains(from), "{}", self.yaml);
        self.yaml = self.yaml.replace(from, to);
        self
    }

    /// The same without the line that begins with `start`.
    fn without(mut self, start: &str) -> Self {
        let kept: Vec<&str> = self.yaml.split_inclusive('\n').filter(|line| !line.starts_with(start)).collect();
        self.yaml = kept.concat();
        self
    }

    /// The points of the message, and the message.
    fn score(&self, folder: &Path) -> (u32, String) {
        let before = self.yaml.split('▶').next().unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        fs::write(folder.join("longhaul.yaml"), self.yaml.replace('▶', "")).unwrap();
        let done = Command::new(env!("CARGO_BIN_EXE_longhaul"))
            .args(["check", "longhaul.yaml"])
            .current_dir(folder)
            .output()
            .unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        let (code, mark) = match self.verdict {
            Verdict::Refused => (2, "error: "),
            Verdict::Warned => (0, "warning: "),
        };
        if done.status.code() != Some(code) {
            return (0, said);
        }
        // A file with a warning may get warnings of this machine, too.
        let reports: Vec<&str> = said
            .split("\n\n")
            .filter(|report| report.contains("--> longhaul.yaml:") && report.starts_with(mark))
            .collect();
        let place = format!("--> longhaul.yaml:{line}:{column}\n");
        let alone = self.verdict == Verdict::Warned || reports.len() == 1;
        let Some(report) = reports.iter().find(|report| report.contains(&place)).or(reports.first()) else {
            return (0, said);
        };
        let placed = alone && report.contains(&place);
        let help = report.split("= help: ").nth(1).unwrap_or_default();
        let points = u32::from(placed) + u32::from(report.contains(self.fault)) + u32::from(help.contains(self.fix));
        (points, said)
    }
}

/// Every case.
fn all() -> Vec<Case> {
    cases::cases().into_iter().chain(slips::cases()).chain(implausible::cases()).collect()
}

const DAY: Duration = Duration::from_hours(24);

/// Writes the certificates, keys and lists that the cases name.
fn write_files(folder: &Path) {
    let now = SystemTime::now();
    let authority_of = |name: &str| {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params
    };
    let authority = |name| CertifiedIssuer::self_signed(authority_of(name), KeyPair::generate().unwrap()).unwrap();
    let (ca, other_ca) = (authority("pair authority"), authority("pair authority"));
    let (root, between) = (authority("Test Root"), authority_of("Test Intermediate"));
    let between = CertifiedIssuer::signed_by(between, KeyPair::generate().unwrap(), &root).unwrap();
    let (key, other_key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let params = |name: &str, from: SystemTime, until: SystemTime| {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.not_before, params.not_after) = (from.into(), until.into());
        params
    };
    let issue = |name: &str, from, until| params(name, from, until).signed_by(&key, &ca).unwrap();
    let own = issue("www.example.org", now - DAY, now + DAY * 300);
    let site = params("www.example.org", now - DAY, now + DAY * 300).signed_by(&key, &between).unwrap();
    let pem = |label: &str| format!("-----BEGIN {label}-----\nAAAA\n-----END {label}-----\n");
    let files: [(&str, Vec<u8>); 24] = [
        ("me.pem", own.pem().into()),
        ("me.der", own.der().to_vec()),
        ("me.key", key.serialize_pem().into()),
        ("me.key.der", key.serialize_der()),
        ("me.p12", vec![0x30, 0x82, 1, 0, 2, 1, 3, 0xff]),
        ("me.csr", params("www.example.org", now, now + DAY).serialize_request(&key).unwrap().pem().unwrap().into()),
        ("other.key", other_key.serialize_pem().into()),
        ("locked.key", pem("ENCRYPTED PRIVATE KEY").into()),
        ("ca.pem", ca.pem().into()),
        ("other-ca.pem", other_ca.pem().into()),
        ("other-name.pem", issue("www.example.net", now - DAY, now + DAY * 300).pem().into()),
        ("early.pem", issue("www.example.org", now + DAY, now + DAY * 300).pem().into()),
        ("ending.pem", issue("www.example.org", now - DAY * 80, now + DAY * 10).pem().into()),
        ("expired.pem", issue("www.example.org", now - DAY * 80, now - DAY).pem().into()),
        ("domains.txt", b"example.org\n".to_vec()),
        ("ground.pem", own.pem().into()),
        ("lone.pem", site.pem().into()),
        ("fullchain.pem", format!("{}{}", site.pem(), between.pem()).into()),
        ("gap.pem", format!("{}{}", site.pem(), root.pem()).into()),
        ("reversed.pem", format!("{}{}", between.pem(), site.pem()).into()),
        ("pair-reversed.pem", format!("{}{}", ca.pem(), own.pem()).into()),
        ("of-the-ground.pem", issue("ground.example", now - DAY, now + DAY * 300).pem().into()),
        ("whole-domain.txt", b"example.org\norg\n".to_vec()),
        ("several.txt", b"example.org www.example.com\n".to_vec()),
    ];
    for (name, content) in files {
        fs::write(folder.join(name), content).unwrap();
    }
}

#[test]
fn a_wrong_configuration_gets_its_place_its_fault_and_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    write_files(folder.path());
    let cases = all();
    let mut classes: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    let mut short = Vec::new();
    for case in &cases {
        let (points, said) = case.score(folder.path());
        classes.entry(case.class).or_default().push(points);
        if points < 3 {
            short.push(format!(
                "--- {points} of 3: {}\n{}\n{said}",
                case.class,
                case.yaml.chars().take(300).collect::<String>()
            ));
        }
    }
    let points: u32 = classes.values().flatten().sum();
    let mean = f64::from(points) / f64::from(u32::try_from(cases.len()).unwrap());
    println!("{} wrong configurations, mean {mean:.2} of 3", cases.len());
    for (class, points) in &classes {
        println!("{class}: {points:?}");
    }
    assert!(short.is_empty(), "mean {mean:.2}\n{}", short.join("\n"));
    assert!(cases.len() >= 60 && mean > LEAST_MEAN);
}

#[test]
fn other_spellings_of_right_values_are_accepted() {
    for lines in [
        "transport: { http3: no }\n",
        "dns: { www: yes }\n",
        "dns: { www: True }\n",
        "page: { prefetch: No }\n",
        "cache: no\n",
        "\u{feff}role: edge\n",
        "role: edge\r\nrewrite: { level: off }\r\n",
        "rewrite: { \"level\": 'full' }\n",
        "{\"role\": \"edge\"}\n",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let yaml = if lines.starts_with('{') {
            lines.replace('}', ", \"link\": {\"rtt\": \"600ms\", \"down\": \"20mbit\", \"up\": \"5mbit\"}, \"proxy\": {\"addresses\": [\"198.51.100.12\"]}, \"upstream\": {\"resolvers\": [\"192.0.2.53\"]}}")
        } else {
            format!("{lines}{LINK}{PROXY}{UPSTREAM}")
        };
        let path = folder.path().join("longhaul.yaml");
        fs::write(&path, yaml).unwrap();
        if let Err(error) = longhaul_config::load(&path) {
            panic!("{lines}: {error}");
        }
    }
}
