//! The origins: what each URL is, as a function of its path, its version and the visitor's cookie.

use std::collections::BTreeMap;
use std::iter;

use crate::fields::{Field, field, pair};

/// The number of sites. Site N is `sN.test`.
pub(crate) const SITES: u8 = 4;
/// The site whose responses claim to be of the ground.
const FORGER: u8 = 3;
/// A value that no end writes. Clients and origins write it into the fields of the ends.
pub(crate) const FORGED: &str = "f00df00df00df00df00df00df00df00d;f00df00df00df00d;f00df00d";
/// Pages of a site.
pub(crate) const PAGES: u8 = 4;
/// Objects of a page.
pub(crate) const OBJECTS: u8 = 6;

/// A URL of the simulated web.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Url {
    pub(crate) site: u8,
    pub(crate) path: Path,
}

/// The meaning of a URL's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Path {
    /// A page that is the same for everybody.
    Page(u8),
    /// A page with the visitor's name in it.
    Personal(u8),
    /// An object, the same for everybody. Its kind follows from its number.
    Object(u8),
    /// An object with the visitor's name in it. Every second one is marked `private`, the others are not.
    PersonalObject(u8),
}

impl Url {
    pub(crate) fn authority(&self) -> String {
        format!("s{}.test", self.site)
    }

    pub(crate) fn path(&self) -> String {
        match self.path {
            Path::Page(number) => format!("/p{number}"),
            Path::Personal(number) => format!("/me{number}"),
            Path::Object(number) => format!("/o{number}{}", Kind::of(number).extension()),
            Path::PersonalObject(number) => format!("/mine{number}.png"),
        }
    }

    /// Reads a request's URL.
    pub(crate) fn of(fields: &[Field]) -> Option<Self> {
        let text = |name| field(fields, name).and_then(|value| std::str::from_utf8(value).ok());
        let site = text(":authority")?.strip_prefix('s')?.strip_suffix(".test")?.parse().ok()?;
        let path = text(":path")?;
        let number = |rest: &str| rest.split('.').next().and_then(|digits| digits.parse().ok());
        let path = if let Some(rest) = path.strip_prefix("/p") {
            Path::Page(number(rest)?)
        } else if let Some(rest) = path.strip_prefix("/mine") {
            Path::PersonalObject(number(rest)?)
        } else if let Some(rest) = path.strip_prefix("/me") {
            Path::Personal(number(rest)?)
        } else {
            Path::Object(number(path.strip_prefix("/o")?)?)
        };
        Some(Self { site, path })
    }

    /// True for a page.
    pub(crate) fn is_page(&self) -> bool {
        matches!(self.path, Path::Page(_) | Path::Personal(_))
    }
}

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Style,
    Script,
    Image,
}

impl Kind {
    fn of(number: u8) -> Self {
        match number % 3 {
            0 => Self::Style,
            1 => Self::Script,
            _ => Self::Image,
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Style => ".css",
            Self::Script => ".js",
            Self::Image => ".png",
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Style => "text/css",
            Self::Script => "text/javascript",
            Self::Image => "image/png",
        }
    }
}

/// A response of an origin.
#[derive(Debug, Clone)]
pub(crate) struct Response {
    pub(crate) fields: Vec<Field>,
    pub(crate) body: Vec<u8>,
}

/// All origins, with the times at which their contents changed.
#[derive(Debug, Default)]
pub(crate) struct Origins {
    /// The moments at which a site's contents changed, in milliseconds. The version is their number.
    changes: BTreeMap<u8, Vec<u64>>,
}

/// When a response was requested, and by how much the age of an object may be wrong.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_field_names, reason = "the unit of each")]
pub(crate) struct When {
    pub(crate) at_ms: u64,
    /// An object of this age counts as fetched for the request.
    pub(crate) moment_ms: u64,
    /// How far the clocks of the ends have stepped.
    pub(crate) uncertain_ms: u64,
}

/// The seconds for which an object is fresh. A quarter of them is fresh for so short that an outage outlasts it.
fn max_age_s(number: u8) -> u64 {
    if number % 4 == 3 { 1 } else { 60 }
}

impl Origins {
    /// Changes every page and object of a site.
    pub(crate) fn change(&mut self, site: u8, now_ms: u64) {
        self.changes.entry(site).or_default().push(now_ms);
    }

    fn version(&self, site: u8, at_ms: u64) -> usize {
        self.changes.get(&site).map_or(0, |changes| changes.iter().filter(|change| **change <= at_ms).count())
    }

    /// The response to a request, now.
    pub(crate) fn answer(&self, request: &[Field], now_ms: u64) -> Response {
        let Some(url) = Url::of(request) else {
            return Response { fields: vec![pair(":status", "404")], body: b"no such URL".to_vec() };
        };
        let text = |name| field(request, name).map(|value| String::from_utf8_lossy(value).into_owned());
        let agent = text("user-agent").unwrap_or_default();
        let client = agent.strip_prefix("Browser/").and_then(|rest| rest.split(' ').next()?.parse().ok());
        let who = visitor(&url, client, text("cookie"));
        let mut response = content(&url, self.version(url.site, now_ms), who.as_deref());
        if url.site == FORGER {
            for name in ["x-longhaul-headers", "x-longhaul-retry"] {
                response.fields.push(pair(name, FORGED));
            }
        }
        response
    }

    /// True if `body` is the content of the URL for the visitor `who`, at a moment from which the response may be.
    ///
    /// An object may be as old as its fields allow, or as old as one that was fetched for the request (`moment_ms`). Whole
    /// seconds, rounded down, are what a field can say.
    pub(crate) fn was(&self, url: &Url, who: Option<&str>, body: &[u8], when: When, now_ms: u64) -> bool {
        let oldest_ms = match url.path {
            Path::Object(number) => {
                let most_ms = ((max_age_s(number) + 1) * 1000).max(when.moment_ms);
                when.at_ms.saturating_sub(most_ms + when.uncertain_ms)
            }
            _ => when.at_ms,
        };
        let (oldest, newest) = (self.version(url.site, oldest_ms), self.version(url.site, now_ms));
        (oldest..=newest).any(|version| content(url, version, who).body == body)
    }
}

/// The beginning of [`secret`].
pub(crate) const SECRET: &[u8] = b"secret of ";

/// The mark in everything that is for one visitor.
pub(crate) fn secret(cookie: &str) -> String {
    format!("secret of {cookie}.")
}

/// The name of a visitor at a site.
pub(crate) fn name(client: u8, site: u8) -> String {
    format!("c{client}-s{site}")
}

/// Returns the visitor whom a response is for. Some pages give a visitor without a cookie a name at once.
pub(crate) fn visitor(url: &Url, client: Option<u8>, cookie: Option<String>) -> Option<String> {
    let gives_names = matches!(url.path, Path::Personal(number) if number % 3 != 2);
    cookie.or_else(|| client.filter(|_| gives_names).map(|client| name(client, url.site)))
}

fn content(url: &Url, version: usize, cookie: Option<&str>) -> Response {
    let mut fields = vec![pair(":status", "200"), pair("date", "Thu, 01 Jan 2026 00:00:00 GMT")];
    let own = cookie.map_or_else(|| "nobody".to_owned(), secret);
    let body = match url.path {
        Path::Page(number) => {
            fields.push(pair("content-type", "text/html; charset=utf-8"));
            if number % 2 == 0 {
                fields.push(pair("cache-control", "public, max-age=0"));
            }
            page(url, number, version, "everybody")
        }
        Path::Personal(number) => {
            fields.push(pair("content-type", "text/html"));
            match number % 3 {
                0 => fields.push(pair("cache-control", "private")),
                1 => fields.push(pair("set-cookie", "seen=1")),
                _ => fields.push(pair("vary", "Cookie")),
            }
            page(url, number, version, &own)
        }
        Path::Object(number) => {
            fields.push(pair("content-type", Kind::of(number).media_type()));
            let public = if number % 2 == 0 { "public, " } else { "" };
            fields.push(pair("cache-control", &format!("{public}max-age={}", max_age_s(number))));
            object(url, number, version)
        }
        Path::PersonalObject(number) => {
            fields.push(pair("content-type", "image/png"));
            fields.push(pair("cache-control", if number % 2 == 0 { "private, max-age=60" } else { "max-age=60" }));
            own.into_bytes()
        }
    };
    fields.push(pair("content-length", &body.len().to_string()));
    Response { fields, body }
}

/// The objects that a page names, in its order.
pub(crate) fn objects(url: &Url) -> Vec<Url> {
    let (Path::Page(number) | Path::Personal(number)) = url.path else { return Vec::new() };
    let own = (0..OBJECTS).map(|object| Url { site: url.site, path: Path::Object(number.wrapping_add(object) % 8) });
    let foreign = Url { site: (url.site + 1) % SITES, path: Path::Object(number) };
    let personal = Url { site: url.site, path: Path::PersonalObject(number) };
    own.chain([foreign, personal]).collect()
}

fn page(url: &Url, number: u8, version: usize, whose: &str) -> Vec<u8> {
    let head = format!("<!DOCTYPE html><title>{} page {number} version {version}</title>", url.authority());
    let elements = objects(url).into_iter().map(|object| {
        let address = format!("http://{}{}", object.authority(), object.path());
        match object.path {
            Path::Object(number) if Kind::of(number) == Kind::Style => format!("<link rel=stylesheet href={address}>"),
            Path::Object(number) if Kind::of(number) == Kind::Script => format!("<script src={address}></script>"),
            _ => format!("<img src={address}>"),
        }
    });
    let lines = (0..24_usize).map(|line| {
        let words = (line * 7 + version * usize::from(line.is_multiple_of(5))) % 100;
        format!("<p class=c{words}>Line {line} of site {} says {words} and {}</p>\n", url.site, words * words)
    });
    let whose = format!("<p>For {whose}</p>");
    let html: String = iter::once(head).chain(elements).chain([whose]).chain(lines).collect();
    html.into_bytes()
}

fn object(url: &Url, number: u8, version: usize) -> Vec<u8> {
    let length = 200 + usize::from(number) * 900;
    let mut state = u64::from(number) << 32 | u64::from(url.site) << 16 | version as u64;
    let mut bytes = format!("/* s{} o{number} v{version} */", url.site).into_bytes();
    while bytes.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.push(b' ' + u8::try_from(state >> 58).unwrap_or(0));
    }
    bytes
}
