//! The origins: what each URL is, as a function of its path, its version and the visitor's cookie.

use std::collections::BTreeMap;
use std::iter;
use std::time::{Duration, UNIX_EPOCH};

use brotli::enc::BrotliEncoderParams;

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
    /// A font that a style sheet names.
    Font(u8),
    /// An object that a script of a page loads. No page names it. Every fourth one is missing.
    Loaded(u8),
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
            Path::Font(number) => format!("/f{number}.woff2"),
            Path::Loaded(number) => format!("/later{number}.js"),
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
        } else if let Some(rest) = path.strip_prefix("/later") {
            Path::Loaded(number(rest)?)
        } else if let Some(rest) = path.strip_prefix("/f") {
            Path::Font(number(rest)?)
        } else {
            Path::Object(number(path.strip_prefix("/o")?)?)
        };
        Some(Self { site, path })
    }

    /// True for a URL that the origin does not have.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.path, Path::Loaded(number) if number % 4 == 3)
    }

    /// True for a style sheet.
    pub(crate) fn is_style(&self) -> bool {
        matches!(self.path, Path::Object(number) if Kind::of(number) == Kind::Style)
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
    /// True if they state dates and validators, and judge conditions and ranges.
    has_validators: bool,
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
    /// True for a stored response that was served because the origin failed. It may have any age.
    pub(crate) is_stale: bool,
}

/// The seconds for which an object is fresh. A quarter of them is fresh for so short that an outage outlasts it.
fn max_age_s(number: u8) -> u64 {
    if number % 4 == 3 { 1 } else { 60 }
}

impl Origins {
    pub(crate) fn new(has_validators: bool) -> Self {
        Self { has_validators, ..Self::default() }
    }

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
        let first = |cookie: String| cookie.split(';').next().map(str::to_owned);
        let who = visitor(&url, client, text("cookie").and_then(first));
        let mut response = content(&url, self.version(url.site, now_ms), who.as_deref(), self.has_validators);
        if self.has_validators {
            validate(request, &url, self.version(url.site, now_ms), &mut response, now_ms);
        }
        if url.site == FORGER {
            for name in ["x-longhaul-headers", "x-longhaul-retry"] {
                response.fields.push(pair(name, FORGED));
            }
        }
        response
    }

    /// True if `is_same` holds of the content of the URL for the visitor `who`, at a moment from which the response may be.
    ///
    /// An object may be as old as its fields allow, or as old as one that was fetched for the request (`moment_ms`). Whole
    /// seconds, rounded down, are what a field can say.
    pub(crate) fn was(
        &self,
        url: &Url,
        who: Option<&str>,
        is_same: impl Fn(&[u8]) -> bool,
        when: When,
        now_ms: u64,
    ) -> bool {
        let oldest_ms = match url.path {
            _ if when.is_stale => 0,
            Path::Object(number) | Path::Font(number) | Path::Loaded(number) => {
                let most_ms = ((max_age_s(number) + 1) * 1000).max(when.moment_ms);
                when.at_ms.saturating_sub(most_ms + when.uncertain_ms)
            }
            _ => when.at_ms,
        };
        let (oldest, newest) = (self.version(url.site, oldest_ms), self.version(url.site, now_ms));
        (oldest..=newest).any(|version| is_same(&content(url, version, who, self.has_validators).body))
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

fn content(url: &Url, version: usize, cookie: Option<&str>, is_rich: bool) -> Response {
    let mut fields = vec![pair(":status", "200"), pair("date", "Thu, 01 Jan 2026 00:00:00 GMT")];
    let own = cookie.map_or_else(|| "nobody".to_owned(), secret);
    let body = match url.path {
        Path::Page(number) => {
            fields.push(pair("content-type", "text/html; charset=utf-8"));
            if number % 2 == 0 {
                fields.push(pair("cache-control", "public, max-age=0"));
            }
            page(url, number, version, "everybody", is_rich)
        }
        Path::Personal(number) => {
            fields.push(pair("content-type", "text/html"));
            match number % 3 {
                0 => fields.push(pair("cache-control", "private")),
                1 => fields.push(pair("set-cookie", "seen=1")),
                _ => fields.push(pair("vary", "Cookie")),
            }
            page(url, number, version, &own, is_rich)
        }
        Path::Object(number) => {
            fields.push(pair("content-type", Kind::of(number).media_type()));
            let public = if number % 2 == 0 { "public, " } else { "" };
            fields.push(pair("cache-control", &format!("{public}max-age={}", max_age_s(number))));
            let sheet = if is_rich && url.is_style() { sheet(number) } else { Vec::new() };
            [sheet, object(url, number, version)].concat()
        }
        Path::Font(number) | Path::Loaded(number) => {
            let kind = if matches!(url.path, Path::Font(_)) { "font/woff2" } else { "application/javascript" };
            fields.push(pair("content-type", kind));
            fields.push(pair("cache-control", &format!("max-age={}", max_age_s(number))));
            object(url, number, version)
        }
        Path::PersonalObject(number) => {
            fields.push(pair("content-type", "image/png"));
            fields.push(pair("cache-control", if number % 2 == 0 { "private, max-age=60" } else { "max-age=60" }));
            own.into_bytes()
        }
    };
    if url.is_missing() {
        fields.retain(|(name, _)| name != b":status");
        fields.insert(0, pair(":status", "404"));
    }
    fields.push(pair("content-length", &body.len().to_string()));
    Response { fields, body }
}

/// The rules of a style sheet: fonts for some letters, a picture for elements that some pages have, another style sheet.
fn sheet(number: u8) -> Vec<u8> {
    let face = |font: u8, more: &str| {
        format!("@font-face{{font-family:F{font};src:local('F'),url(/f{font}.woff2) format(\"woff2\"){more}}}\n")
    };
    let import = if number == 0 { "@import \"/o3.css\";\n" } else { "" };
    let faces = face(number, "") + &face(number + 1, ";unicode-range:U+400-4FF") + &face(number + 2, ",url(/f.svg)");
    let odd = "@font-face{font-family:O;src:url(/o.eot) format('embedded-opentype'),url(/o.svg) format('svg')}\n\
               @font-face{font-family:P;src:url(/p.eot)}@font-face{font-family:Q;unicode-range:U+0-7F}\n\
               @font-face{font-family:R;src:url(/f1.woff2);unicode-range:all}\n\
               .c0:hover{background:url(/o2.png)}#top p:first-child{background:url(/o5.png)}.a\\:b{background:url(/o5.png)}\n";
    let rules = ".c0{background:url(/o2.png)}\n.nobody{background:url('/o5.png')}\n@media print{.c7{color:red}}\n";
    format!("{import}{faces}{odd}{rules}").into_bytes()
}

/// Adds a date, a tag and a lifetime. Responds to conditions and ranges, and in br to who accepts it.
///
/// Some tags are weak. A quarter of the personal objects are for everybody who has the same cookie.
fn validate(request: &[Field], url: &Url, version: usize, response: &mut Response, now_ms: u64) {
    let (Path::Page(number)
    | Path::Personal(number)
    | Path::Object(number)
    | Path::PersonalObject(number)
    | Path::Font(number)
    | Path::Loaded(number)) = url.path;
    if url.is_missing() {
        return;
    }
    let date = UNIX_EPOCH.checked_add(Duration::from_millis(now_ms)).unwrap_or(UNIX_EPOCH);
    response.fields.retain(|(name, _)| name != b"date");
    response.fields.push(pair("date", &httpdate::fmt_http_date(date)));
    if matches!(url.path, Path::PersonalObject(_)) && number % 4 == 1 {
        response.fields.retain(|(name, _)| name != b"cache-control");
        response.fields.extend([pair("cache-control", "public, max-age=60"), pair("vary", "Cookie")]);
    }
    let accepts_br = field(request, "accept-encoding").is_some_and(|coding| coding.starts_with(b"br"));
    let is_text = matches!(url.path, Path::Object(number) if Kind::of(number) != Kind::Image);
    let has_br = url.site == 2 && is_text;
    if has_br {
        response.fields.push(pair("vary", "Accept-Encoding"));
    }
    let mut coding = "";
    if has_br && accepts_br {
        response.body = br(&response.body);
        response.fields.push(pair("content-encoding", "br"));
        coding = "br";
    }
    if matches!(url.path, Path::Object(5)) {
        response.fields.retain(|(name, _)| name != b"content-type");
        response.fields.push(pair("content-type", "image/webp"));
    }
    if matches!(url.path, Path::Loaded(_)) {
        response.fields.push(pair("pragma", "no-cache"));
    }
    let who = field(request, "cookie").map(|cookie| String::from_utf8_lossy(cookie).into_owned()).unwrap_or_default();
    let weak = if number % 4 == 2 { "W/" } else { "" };
    let tag = format!("{weak}\"{version}{}{coding}{who}\"", url.path().replace('/', ""));
    response.fields.push(pair("etag", &tag));
    // Servers say these, too. Some are odd.
    let ago = |seconds| httpdate::fmt_http_date(date - Duration::from_secs(seconds));
    match number % 4 {
        0 => response.fields.extend([pair("last-modified", &ago(86_400)), pair("expires", &ago(0))]),
        1 => response.fields.push(pair("expires", "Thu, 99 Foo 2026 25:61:61 GMT")),
        2 => response.fields.extend([pair("server", "Apache/2.4 (Unix)"), pair("x-empty", "")]),
        _ => response.fields.extend([pair("last-modified", "Wed, 03 Nov 2004 19:53:53 GMT"), pair("expires", "0")]),
    }
    let opaque = |tag: &[u8]| tag.strip_prefix(b"W/").unwrap_or(tag).to_vec();
    if field(request, "if-none-match").is_some_and(|had| opaque(had) == opaque(tag.as_bytes())) {
        response.body.clear();
        response.fields.retain(|(name, _)| !matches!(&**name, b":status" | b"content-type" | b"content-encoding"));
        response.fields.insert(0, pair(":status", "304"));
    }
    let range = field(request, "range").filter(|_| field(&response.fields, ":status") == Some(b"200"));
    let range = range.and_then(|range| std::str::from_utf8(range).ok()?.strip_prefix("bytes=")?.split_once('-'));
    if let Some((Ok(first), Ok(last))) = range.map(|(first, last)| (first.parse::<usize>(), last.parse::<usize>())) {
        let (length, last) = (response.body.len(), last.min(response.body.len().saturating_sub(1)));
        response.body = response.body.get(first..=last).unwrap_or_default().to_vec();
        response.fields.retain(|(name, _)| name != b":status");
        let status = if response.body.is_empty() { "416" } else { "206" };
        response.fields.insert(0, pair(":status", status));
        response.fields.push(pair("content-range", &format!("bytes {first}-{last}/{length}")));
    }
    response.fields.retain(|(name, _)| name != b"content-length");
    if field(&response.fields, ":status") != Some(b"304") {
        response.fields.push(pair("content-length", &response.body.len().to_string()));
    }
}

/// Compresses with br.
pub(crate) fn br(text: &[u8]) -> Vec<u8> {
    let parameters = BrotliEncoderParams { quality: 1, ..BrotliEncoderParams::default() };
    let mut compressed = Vec::new();
    // Memory does not fail to be written.
    let _ = brotli::BrotliCompress(&mut &*text, &mut compressed, &parameters);
    compressed
}

/// The objects that a page names, in its order.
pub(crate) fn objects(url: &Url) -> Vec<Url> {
    let (Path::Page(number) | Path::Personal(number)) = url.path else { return Vec::new() };
    let own = (0..OBJECTS).map(|object| Url { site: url.site, path: Path::Object(number.wrapping_add(object) % 8) });
    let foreign = Url { site: (url.site + 1) % SITES, path: Path::Object(number) };
    let personal = Url { site: url.site, path: Path::PersonalObject(number) };
    own.chain([foreign, personal]).collect()
}

/// The objects that a browser loads on its own from a page or a style sheet, without being named there, or from its rules.
pub(crate) fn loaded(url: &Url) -> Vec<Url> {
    let at = |path| Url { site: url.site, path };
    match url.path {
        Path::Page(number) | Path::Personal(number) => vec![at(Path::Loaded(number)), at(Path::Loaded(number + 1))],
        Path::Object(number) if url.is_style() => vec![at(Path::Font(number)), at(Path::Object(2))],
        _ => Vec::new(),
    }
}

/// Elements that only rich pages have: pictures with candidates, lazy ones, a style sheet in the page.
fn rich(url: &Url, number: u8) -> String {
    let inline = if number.is_multiple_of(2) { "@font-face{font-family:I;src:url(/f1.woff2)}p{color:red}" } else { "" };
    let faces = format!("<style>{inline}.c1{{background:url(/o5.png)}}</style>");
    let pictures = "<picture><source srcset='/o2.png 1x, /o5.png 2x'><img src=/o5.png loading=lazy></picture>\
                    <img srcset='/o2.png 400w, /o5.png 800w' sizes=50vw src=/o2.png><img src=data:,x>";
    let hosts =
        format!("<a href=http://s{}.test/p0>on</a><link rel=preconnect href=//10.0.0.1>", (url.site + 2) % SITES);
    let odd = "<p id=top class=\"a b\">x<img src=''><img src=#x><img src=http://[>\
         <script integrity=sha256-x src=/o1.js></script><link rel=stylesheet integrity=sha256-x href=/o0.css>";
    format!("{odd}{faces}<link rel=preload as=font href=/f0.woff2 crossorigin>{pictures}{hosts}")
}

fn page(url: &Url, number: u8, version: usize, whose: &str, is_rich: bool) -> Vec<u8> {
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
    let more = is_rich.then(|| rich(url, number));
    let html: String = iter::once(head).chain(more).chain(elements).chain([whose]).chain(lines).collect();
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
