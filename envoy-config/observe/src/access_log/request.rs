//! One line of the access log as a request.

use std::net::IpAddr;

use http_semantics::authority;
use longhaul_config::Host;
use object_rules::Outcome;
use serde::{Deserialize, Serialize};

/// The flag of Envoy for a response from the former cache, in lines of earlier releases.
const FROM_CACHE: &str = "RFCF";

/// A request or a connection, as Envoy logged it at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Request {
    /// The time of its start, as RFC 3339 in UTC.
    pub time: String,
    /// The part of the box that logged it.
    pub hop: Hop,
    /// The client's address, or the network to which the log cut it. None on hops behind the first.
    pub client: Option<String>,
    /// The other end of the link, at a ground.
    pub remote: Option<String>,
    /// The address that the client dialled, at a remote whose names may have instant addresses.
    pub dialled: Option<IpAddr>,
    /// The method.
    pub method: String,
    /// The host as requested, without a port.
    pub host: String,
    /// The URL. It has no scheme if the hop does not know it. A tunnel has its authority here.
    pub url: String,
    /// The status. None if there was no response.
    pub status: Option<u16>,
    /// The time to the first byte of the response from beyond this hop, in milliseconds.
    pub first_byte_ms: Option<u64>,
    /// The time to the last byte, in milliseconds.
    pub duration_ms: u64,
    /// The body of the response, or what a connection brought to the client, in bytes as they were sent.
    pub bytes: u64,
    /// The body of the request, or what the client sent on a connection.
    pub bytes_up: u64,
    /// True if the cache served it.
    pub from_cache: bool,
    /// How longhaul-objects served it. None if it did not.
    #[serde(serialize_with = "label")]
    pub cache: Option<Outcome>,
    /// True if this box tried the destination itself, because the ground did not take the connection (`listen.tcp`).
    pub past_pipe: bool,
    /// The response flags of Envoy, `-` for none.
    pub flags: String,
    /// The reason for the status, in Envoy's words.
    pub details: String,
    /// The reason why no connection to the origin or the other end was possible, in Envoy's words.
    pub failure: Option<String>,
    /// The account of a page that url-rewrite read to its end.
    pub page: Option<Page>,
}

/// The part of the box that logged a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Hop {
    /// The listeners of clients.
    Client,
    /// Behind the cache, where only failures are logged.
    Beyond,
    /// A connection that passes unread.
    Tunnel,
}

/// The account of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Page {
    /// The URLs that were moved.
    pub moved: u64,
    /// The URLs that stayed, by reason.
    pub left: Vec<(String, u64)>,
    /// The reason to stop rewriting before the end of the page.
    pub bail_out: Option<String>,
}

/// The fields as Envoy writes them. Filter state is text, even for numbers.
#[derive(Deserialize)]
struct Fields {
    time: String,
    hop: String,
    client: Option<String>,
    remote: Option<String>,
    dialled: Option<String>,
    #[serde(default)]
    method: String,
    #[serde(default)]
    authority: String,
    #[serde(default)]
    path: String,
    status: Option<u16>,
    #[serde(default)]
    details: String,
    #[serde(default)]
    flags: String,
    first_byte_ms: Option<u64>,
    #[serde(default)]
    duration_ms: u64,
    #[serde(default)]
    bytes_out: u64,
    #[serde(default)]
    bytes_in: u64,
    tls_failure: Option<String>,
    #[serde(default)]
    attempts: u32,
    moved: Option<String>,
    #[serde(default)]
    left: String,
    bail_out: Option<String>,
    #[serde(default)]
    cache: String,
}

/// Writes the label of an outcome.
#[expect(clippy::trivially_copy_pass_by_ref, clippy::ref_option, reason = "serde passes a reference")]
fn label<S: serde::Serializer>(outcome: &Option<Outcome>, to: S) -> Result<S::Ok, S::Error> {
    outcome.map(Outcome::as_str).serialize(to)
}

impl Request {
    /// Reads a line. Text before the first brace is skipped, because a journal or a container may add the time. Returns
    /// None for a line that is no request.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let json = line.get(line.find('{')?..)?;
        let fields: Fields = serde_json::from_str(json.trim_end()).ok()?;
        let hop = match fields.hop.as_str() {
            "inner" | "fetch" | "direct" => Hop::Beyond,
            "tunnel" => Hop::Tunnel,
            _ => Hop::Client,
        };
        let scheme = match fields.hop.as_str() {
            "edge_http" => "http://",
            "edge_tls" | "edge_quic" => "https://",
            _ => "",
        };
        let page = fields.moved.as_ref().map(|moved| Page {
            moved: moved.parse().unwrap_or(0),
            left: counts(&fields.left),
            bail_out: fields.bail_out.clone(),
        });
        let cache = Outcome::of_label(&fields.cache);
        Some(Self {
            url: visible(&format!("{scheme}{}{}", fields.authority, fields.path)),
            host: one_form(authority::host(&visible(&fields.authority))),
            time: visible(&fields.time),
            hop,
            client: fields.client.as_deref().map(visible),
            remote: fields.remote.as_deref().map(visible),
            dialled: fields.dialled.and_then(|address| address.parse().ok()),
            method: visible(&fields.method),
            status: fields.status.filter(|status| *status != 0),
            first_byte_ms: fields.first_byte_ms,
            duration_ms: fields.duration_ms,
            bytes: fields.bytes_out,
            bytes_up: fields.bytes_in,
            failure: fields.tls_failure.as_deref().map(visible),
            from_cache: cache.is_some_and(Outcome::is_from_store)
                || fields.flags.split(',').any(|flag| flag == FROM_CACHE),
            cache,
            past_pipe: fields.attempts > 1,
            flags: fields.flags,
            details: visible(&fields.details),
            page,
        })
    }

    /// Returns true if the client got no response, or one of status 400 and above.
    pub(super) fn has_failed(&self) -> bool {
        match self.hop {
            Hop::Tunnel => self.status.is_some_and(|status| status >= 300),
            Hop::Client | Hop::Beyond => self.status.is_none_or(|status| status >= 400),
        }
    }

    /// Returns the URL without its scheme, which hops behind the first do not know.
    pub(super) fn target(&self) -> &str {
        let url = self.url.as_str();
        url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or(url)
    }

    /// Takes the reason for the failure from the line of a hop behind.
    pub(super) fn explained_by(&mut self, reason: Self) {
        self.flags = reason.flags;
        self.details = reason.details;
        self.failure = reason.failure.or_else(|| self.failure.take());
    }

    /// Returns true for a connection that passes unread.
    pub(crate) fn is_tunnel(&self) -> bool {
        self.hop == Hop::Tunnel
    }

    /// Returns true if the request was for `site` or a name below it.
    pub(crate) fn is_of(&self, site: &str) -> bool {
        let site = one_form(site.trim_end_matches('.'));
        self.host.strip_suffix(site.as_str()).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    }
}

/// Parses `document=12 same_host=3`.
pub(crate) fn counts(text: &str) -> Vec<(String, u64)> {
    let one = |word: &str| word.split_once('=').and_then(|(reason, urls)| Some((visible(reason), urls.parse().ok()?)));
    text.split_ascii_whitespace().filter_map(one).collect()
}

/// Returns a host in lower case, and an address in its one spelling.
fn one_form(host: &str) -> String {
    authority::address(host).map_or_else(|| host.to_ascii_lowercase(), |address| Host::Address(address).to_string())
}

/// Replaces control characters. A client chooses the URL, and a terminal must not obey it.
fn visible(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A line of the log with more fields in front.
    pub(in crate::access_log) fn line(more: &str) -> String {
        format!(
            r#"{{{more}"authority":"www.example.org","bytes_in":0,"bytes_out":4727,"client":"192.0.2.1","details":"via_upstream","duration_ms":900,"first_byte_ms":701,"flags":"-","hop":"edge_http","method":"GET","path":"/a?b","protocol":"HTTP/1.1","status":200,"time":"2026-11-22T19:42:37.382Z"}}"#
        )
    }

    pub(in crate::access_log) fn request(more: &str) -> Request {
        Request::parse(&line(more)).unwrap()
    }

    #[test]
    fn a_line_of_a_page_is_a_request_with_an_account() {
        let page = request(r#""moved":"2","left":"csp=1 document=12","page_bytes":"322","new_in_2030":[1],"#);
        assert_eq!(page.url, "http://www.example.org/a?b");
        assert_eq!((page.status, page.first_byte_ms, page.duration_ms, page.bytes), (Some(200), Some(701), 900, 4727));
        let left = vec![("csp".to_owned(), 1), ("document".to_owned(), 12)];
        assert_eq!(page.page, Some(Page { moved: 2, left, bail_out: None }));
        assert!(!page.from_cache);
        assert_eq!(request("").page, None);
    }

    #[test]
    fn hops_and_the_cache_are_distinguished() {
        let of = |from: &str, to: &str| Request::parse(&line("").replace(from, to)).unwrap();
        assert!(of(r#""flags":"-""#, r#""flags":"RFCF""#).from_cache);
        let cached = |label: &str| of(r#""flags":"-""#, &format!(r#""flags":"-","cache":"{label}""#));
        assert!(cached("revalidated").from_cache && !cached("stored").from_cache && !cached("other").from_cache);
        assert_eq!(cached("stale_if_error").cache, Some(Outcome::StaleIfError));
        assert_eq!(of("edge_http", "edge_quic").url, "https://www.example.org/a?b");
        assert_eq!(of("edge_http", "inner").hop, Hop::Beyond);
        assert_eq!(of("edge_http", "inner").url, "www.example.org/a?b");
        assert_eq!(of("edge_http", "tunnel").hop, Hop::Tunnel);
        assert_eq!(of(r#""status":200"#, r#""status":0"#).status, None);
    }

    #[test]
    fn other_lines_are_no_requests_and_text_in_front_is_skipped() {
        for other in ["", "longhaul: ready", "{}", "[1]", r#"{"time":"x"}"#, "{\"hop\":1,\"time\":\"x\"}"] {
            assert_eq!(Request::parse(other), None, "{other}");
        }
        assert!(Request::parse(&format!("Nov 22 19:42:37 box longhaul[7]: {}\n", line(""))).is_some());
    }

    #[test]
    fn a_site_is_a_name_and_all_below_it() {
        let request = request("");
        for (site, is) in [("example.org", true), ("WWW.example.org.", true), ("ample.org", false), ("a.org", false)] {
            assert_eq!(request.is_of(site), is, "{site}");
        }
    }

    #[test]
    fn an_address_is_one_host_in_every_spelling() {
        let of = |authority: &str| Request::parse(&line("").replace("www.example.org", authority)).unwrap();
        for authority in ["[2001:db8::1]:8443", "[2001:DB8:0::1]", "2001:db8::1"] {
            let request = of(authority);
            assert_eq!(request.host, "[2001:db8::1]", "{authority}");
            assert!(request.is_of("2001:db8:0:0::1") && request.is_of("[2001:db8::1]"), "{authority}");
            assert!(!request.is_of("2001:db8::2"), "{authority}");
        }
        assert_eq!(of("192.0.2.1:80").host, "192.0.2.1");
        assert_eq!(of("WWW.example.org:8080").host, "www.example.org");
    }

    #[test]
    fn a_terminal_never_sees_control_characters() {
        let evil = line("").replace("/a?b", r"/\u001b[2J");
        assert!(!Request::parse(&evil).unwrap().url.contains('\u{1b}'));
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_a_panic(text: String) {
            let _ = Request::parse(&text);
            let _ = Request::parse(&line(&format!(r#""left":{text:?},"moved":"x","#)));
        }
    }
}
