//! The policy of masking. When in doubt, a word is masked: that costs a developer a question, and not an operator a secret.
//!
//! | in a text | becomes |
//! |---|---|
//! | an address in the configuration file | `address-1`; `0.0.0.0`, `::` and loopback stay |
//! | any other address | `client-1` |
//! | a name with dots | `site-1.example`, unless it is a word of Longhaul or Envoy ([`WORDS`], [`BEGINNINGS`]) |
//! | a file's name | `file-1.pem`, unless Longhaul names its files so ([`FILES`]) |
//! | a host name, an `id`, a name of the pair | `name-1` |
//! | the name of a folder in `/home` | `user-1` |
//! | path and query of a URL | `/...` |
//! | a key, a certificate, a long word of mixed letters | `[secret]` |

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use longhaul_config::man_page;

/// Beginnings of names that are no hosts: of Envoy's extensions and of kernel settings.
const BEGINNINGS: &[&str] = &[
    "envoy.access_loggers.",
    "envoy.bootstrap.",
    "envoy.clusters.",
    "envoy.compression.",
    "envoy.config.",
    "envoy.extensions.",
    "envoy.filters.",
    "envoy.formatter.",
    "envoy.load_balancing_policies.",
    "envoy.matching.",
    "envoy.network.",
    "envoy.path.",
    "envoy.quic.",
    "envoy.rbac.",
    "envoy.reloadable_features.",
    "envoy.resource_monitors.",
    "envoy.restart_features.",
    "envoy.retry_host_predicates.",
    "envoy.retry_priorities.",
    "envoy.string.",
    "envoy.tls.",
    "envoy.tracers.",
    "envoy.transport_sockets.",
    "envoy.upstreams.",
    "envoy.watchdog.",
    "google.protobuf.",
    "wasm.longhaul_",
    "net.core.",
    "net.ipv4.",
    "net.ipv6.",
    "net.netfilter.",
    "type.googleapis.com",
];
/// Names that are no hosts and have no such beginning. The keys of the file are among them.
const WORDS: &[&str] = &[
    "bundle.pair.invalid",
    "cdn_loop.yaml",
    "dns.pair.invalid",
    "hold.pair.invalid",
    "longhaul.judged",
    "longhaul.never",
    "longhaul.service",
    "re2.max_program_size.error_level",
    "request.headers",
    "request.method",
    "request.path",
    "response.code",
    "response.code_details",
    "response.code_details.startswith",
    "response.headers",
    "systemd.service",
    "xds.cluster_name.startswith",
];
/// Files whose names say nothing, without their extension.
const FILES: &[&str] = &[
    "access",
    "admin",
    "bootstrap",
    "bundling",
    "cds",
    "challenges",
    "check",
    "coredns",
    "direct",
    "edge",
    "guard",
    "header-compression",
    "inner",
    "ip_allow",
    "journal",
    "lds",
    "longhaul",
    "metrics-coredns",
    "metrics-envoy",
    "name-budget",
    "pair",
    "pair-ca",
    "pipe",
    "remote",
    "rules",
    "run",
    "squid",
    "status",
    "sysctl",
    "tunnel",
    "url-rewrite",
    "version",
];
/// The extensions by which a word with one dot is a file. None of them is a top-level domain.
const EXTENSIONS: &[&str] =
    &["conf", "crt", "json", "jsonl", "key", "log", "pem", "sock", "txt", "wasm", "yaml", "yml"];
/// Words that are names of a pair in some files, and words of Longhaul in all.
const OWN_WORDS: &[&str] = &["edge", "envoy", "ground", "localhost", "longhaul", "pair", "remote"];
/// The names of types follow this, and no path does.
const TYPES: &str = "type.googleapis.com/";
/// The folder whose folders have the names of people.
const HOMES: &str = "/home/";
/// A word of mixed letters and digits from this length on is a secret.
const LONG: usize = 40;
const SECRET: &str = "[secret]";

/// Gives pseudonyms: the same for the same name, in all texts.
#[derive(Debug, Default)]
pub(super) struct Mask {
    pseudonyms: HashMap<String, String>,
    counts: HashMap<&'static str, usize>,
    /// Names that are words alone.
    known: Vec<String>,
    /// Addresses that the operator wrote.
    configured: Vec<IpAddr>,
    /// The keys of the file.
    keys: Vec<String>,
}

impl Mask {
    /// `known` are names that nothing in a text shows as such, and `configured` is the operator's file.
    pub(super) fn new(known: &[String], configured: &str) -> Self {
        let is_name = |name: &&String| name.len() > 1 && !OWN_WORDS.contains(&name.as_str());
        let known = known.iter().filter(is_name).map(|name| name.to_lowercase()).collect();
        let words = configured.split(|character: char| !(character.is_ascii_hexdigit() || ".:".contains(character)));
        let configured = words.filter_map(|word| address(word).map(|(address, _)| address)).collect();
        // The manual has each key in bold on a line of its own.
        let page = man_page();
        let bold = page.lines().filter_map(|line| line.strip_prefix("\\fB")?.split("\\fR").next());
        let keys = bold.map(|key| key.replace('\\', "")).collect();
        Self { known, configured, keys, ..Self::default() }
    }

    /// Returns the text with pseudonyms.
    pub(super) fn text(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut in_pem = false;
        for line in text.split_inclusive('\n') {
            let begins = line.contains("-----BEGIN");
            if begins && !in_pem {
                out.push_str(SECRET);
                out.push('\n');
            }
            if !in_pem && !begins {
                self.line(line, &mut out);
            }
            in_pem = (in_pem || begins) && !line.contains("-----END");
        }
        out
    }

    fn line(&mut self, line: &str, out: &mut String) {
        let mut rest = line;
        let mut in_word = false;
        while let Some(first) = rest.chars().next() {
            let found = if in_word { None } else { self.word(rest, out) };
            if let Some(length) = found {
                rest = rest.get(length..).unwrap_or_default();
                in_word = true;
                continue;
            }
            in_word = is_of_name(first);
            out.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
        }
    }

    /// Masks the word at the beginning of `rest`, and returns its length in bytes. None if nothing is to be masked there.
    fn word(&mut self, rest: &str, out: &mut String) -> Option<usize> {
        if let Some((address, length)) = address(rest) {
            out.push_str(&self.of_address(address, rest.get(..length)?));
            return Some(length);
        }
        let word = dotted(rest);
        if word.is_empty() {
            return None;
        }
        if out.ends_with(HOMES) {
            out.push_str(&self.pseudonym("user", "", word));
            return Some(word.len());
        }
        if is_secret(secret(rest)) {
            out.push_str(SECRET);
            return Some(secret(rest).len());
        }
        let word = if out.ends_with(TYPES) { word } else { host(word) };
        let plain = word.replace(ESCAPES, "").to_lowercase();
        let verdict = if out.ends_with(TYPES) { Word::Stays } else { self.of_word(&plain) };
        let masked = match verdict {
            Word::Open => return None,
            Word::Stays => word.to_owned(),
            Word::Masked(masked) => {
                drop_mailbox(out);
                masked
            }
        };
        let is_url = out.ends_with("://");
        out.push_str(&masked);
        let length = word.len();
        Some(if is_url && masked != word { length + path(rest.get(length..)?, out) } else { length })
    }

    fn of_address(&mut self, address: IpAddr, text: &str) -> String {
        if address.is_unspecified() || address.is_loopback() {
            return text.to_owned();
        }
        let kind = if self.configured.contains(&address) { "address" } else { "client" };
        self.pseudonym(kind, "", &address.to_string())
    }

    /// Judges a word in lower case.
    fn of_word(&mut self, word: &str) -> Word {
        if self.known.iter().any(|name| name == word) {
            return Word::Masked(self.pseudonym("name", "", word));
        }
        let Some((stem, last)) = word.rsplit_once('.') else { return Word::Open };
        if EXTENSIONS.contains(&last) && !stem.contains('.') {
            let is_ours = FILES.contains(&stem);
            return if is_ours { Word::Stays } else { Word::Masked(self.pseudonym("file", &format!(".{last}"), word)) };
        }
        let stays = BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
            || WORDS.contains(&word)
            || self.keys.iter().any(|known| known == word);
        if stays { Word::Stays } else { Word::Masked(self.pseudonym("site", ".example", word)) }
    }

    fn pseudonym(&mut self, kind: &'static str, suffix: &str, name: &str) -> String {
        if let Some(known) = self.pseudonyms.get(name) {
            return known.clone();
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let made = format!("{kind}-{count}{suffix}");
        self.pseudonyms.insert(name.to_owned(), made.clone());
        made
    }
}

/// The verdict on a word.
enum Word {
    /// It is no name, but what follows its first dot may be one.
    Open,
    /// It is one of Longhaul's or Envoy's.
    Stays,
    /// Its pseudonym.
    Masked(String),
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '-' || character == '_'
}

/// The characters by which a regular expression escapes a dot: `\.` and `[.]`.
const ESCAPES: &[char] = &['\\', '[', ']'];

/// Returns the labels at the beginning of `text`, with their dots. A dot may be escaped.
fn dotted(text: &str) -> &str {
    let mut end = 0;
    loop {
        let rest = text.get(end..).unwrap_or_default();
        let label = rest.find(|character: char| !is_of_name(character)).unwrap_or(rest.len());
        if label == 0 {
            break;
        }
        end += label;
        let rest = rest.get(label..).unwrap_or_default();
        let escapes = rest.len() - rest.trim_start_matches('\\').len();
        if rest.starts_with("[.]") {
            end += 3;
        } else if rest.get(escapes..).is_some_and(|after| after.starts_with('.')) {
            end += escapes + 1;
        } else {
            break;
        }
    }
    text.get(..end).unwrap_or_default()
}

/// Replaces the path of a URL, and returns its length in bytes.
fn path(rest: &str, out: &mut String) -> usize {
    let end = |text: &str| text.find(|character: char| character.is_whitespace() || "\"'<>),;]}".contains(character));
    let port = rest.find(|character: char| !(character == ':' || character.is_ascii_digit())).unwrap_or(rest.len());
    out.push_str(rest.get(..port).unwrap_or_default());
    let path = rest.get(port..).unwrap_or_default();
    let length = end(path).unwrap_or(path.len());
    if path.starts_with(['/', '?']) && length > 1 {
        out.push_str("/...");
        return port + length;
    }
    port
}

/// Returns a dotted word up to its last label that may be a top-level domain. Versions and statistics have none.
fn host(word: &str) -> &str {
    let is_top = |label: &str| label.chars().count() > 1 && label.starts_with(char::is_alphabetic);
    let is_end = |letter: char| letter == '.' || ESCAPES.contains(&letter);
    let mut word = word.trim_end_matches(is_end);
    while let Some((before, last)) = word.rsplit_once('.') {
        if is_top(last.trim_start_matches(ESCAPES)) {
            break;
        }
        word = before.trim_end_matches(is_end);
    }
    word
}

/// Removes the part of an e-mail address before its name.
fn drop_mailbox(out: &mut String) {
    if out.ends_with('@') {
        out.pop();
        while out.ends_with(|character: char| is_of_name(character) || character == '.') {
            out.pop();
        }
    }
}

/// Returns the letters of base64 at the beginning of `text`.
fn secret(text: &str) -> &str {
    let end = text.find(|letter: char| !(letter.is_ascii_alphanumeric() || "+/=".contains(letter)));
    text.get(..end.unwrap_or(text.len())).unwrap_or_default()
}

/// Returns true for a long word of mixed letters, as keys and tokens are.
fn is_secret(word: &str) -> bool {
    let has = |is: fn(&char) -> bool| word.chars().any(|letter| is(&letter));
    let path = word.contains('/') && !has(|letter| "+=".contains(*letter)) && !has(char::is_ascii_digit);
    word.len() >= LONG && has(char::is_ascii_digit) && has(char::is_ascii_alphabetic) && !path
}

/// Returns the address at the beginning of `text`, and its length in bytes. Envoy writes `_` for `:` in the names of its
/// statistics.
fn address(text: &str) -> Option<(IpAddr, usize)> {
    let run =
        |is: fn(char) -> bool| text.get(..text.find(|letter| !is(letter)).unwrap_or(text.len())).unwrap_or_default();
    let v4 = run(|letter| letter.is_ascii_digit() || letter == '.').trim_end_matches('.');
    let rest = text.get(v4.len()..).unwrap_or_default();
    let is_name = rest.strip_prefix('.').unwrap_or(rest).starts_with(char::is_alphabetic);
    if !is_name && let Ok(address) = v4.parse::<Ipv4Addr>() {
        return Some((address.into(), v4.len()));
    }
    let v6 = run(|letter| letter.is_ascii_hexdigit() || letter == ':' || letter == '_' || letter == '.');
    let v6 = v6.trim_end_matches('.');
    let colons = v6.replace('_', ":");
    // The port follows after a bracket, so the longest beginning that is an address is one.
    let ends = (4..=v6.len()).rev();
    ends.filter(|end| v6.is_char_boundary(*end) && colons.get(..*end).is_some_and(|part| part.matches(':').count() > 1))
        .find_map(|end| colons.get(..end)?.parse::<Ipv6Addr>().ok().map(|address| (address.into(), end)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> Mask {
        Mask::new(
            &["ship".to_owned(), "box-7".to_owned(), "ground".to_owned()],
            "proxy: { addresses: [198.51.100.12] }",
        )
    }

    fn masked(text: &str) -> String {
        mask().text(text)
    }

    #[test]
    fn a_name_has_one_pseudonym_in_all_texts() {
        let mut mask = mask();
        assert_eq!(
            mask.text("GET http://www.example.org/a/secret?token=1 for 192.0.2.7:4000\n"),
            "GET http://site-1.example/... for client-1:4000\n"
        );
        assert_eq!(mask.text("www.example.org. A, WWW.Example.org"), "site-1.example. A, site-1.example");
        assert_eq!(
            mask.text("*.example.org 192.0.2.7 192.0.2.8 198.51.100.12"),
            "*.site-2.example client-1 client-2 address-1"
        );
    }

    #[test]
    fn names_hide_nowhere() {
        for (text, expected) in [
            ("regex: \"^(.*\\\\.)?shop\\\\.example\\\\.org$\"", "regex: \"^(.*\\\\.)?site-1.example$\""),
            ("regex: \"ship[.]example\"", "regex: \"site-1.example\""),
            ("regex: \"[^.]+[.]ships[.]example\"", "regex: \"[^.]+[.]site-1.example\""),
            ("cluster=\"shop.example.org:443\"", "cluster=\"site-1.example:443\""),
            ("mail to root@shop.example.org now", "mail to site-1.example now"),
            ("ship connects to box-7, a ship-yard", "name-1 connects to name-2, a ship-yard"),
            ("7.2.0.192.in-addr.arpa.", "site-1.example."),
            ("bücher.example", "site-1.example"),
            ("9gag.com", "site-1.example"),
            ("cert: /etc/longhaul/portal.pem", "cert: /etc/longhaul/file-1.pem"),
            ("/home/jane.doe/longhaul.yaml", "/home/user-1/longhaul.yaml"),
            ("2001:db8::7 [2001:db8::7]:443", "client-1 [client-1]:443"),
            ("listener.[2001_db8__7]_443.x", "listener.[client-1]_443.x"),
            ("listener.192.0.2.7_443.x", "listener.client-1_443.x"),
        ] {
            assert_eq!(masked(text), expected);
        }
    }

    #[test]
    fn words_of_longhaul_and_envoy_stay() {
        for text in [
            "name: envoy.filters.http.router",
            "\"@type\": type.googleapis.com/envoy.config.listener.v3.Listener",
            "{ \"@type\": type.googleapis.com/udpa.type.v1.TypedStruct }",
            "net.ipv4.tcp_rmem = 4096 131072 6291456",
            "set `split.peer` and `link.rtt` in longhaul.yaml, see lds.yaml",
            "listen 0.0.0.0:80, [::]:443 and 127.0.0.1:9153 at the ground",
            "Envoy 1.40.0, kernel 6.1.0-18-amd64, v1.15.0, 1.5s, 0.36, e.g. 08:47:00",
            "envoy_cluster_upstream_cx_total{envoy_cluster_name=\"pipe\"} 12",
            "/usr/lib/longhaul/a/very/long/path/without/digits/that/is/no/secret",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    #[test]
    fn keys_and_long_words_go() {
        let pem = "a\n-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\n-----END PRIVATE KEY-----\nb\n";
        assert_eq!(masked(pem), "a\n[secret]\nb\n");
        let token = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg";
        assert_eq!(masked(&format!("Authorization: {token}.")), "Authorization: [secret].");
        assert_eq!(masked(&format!("sha256 {}", "0a".repeat(32))), "sha256 [secret]");
    }
}
