//! The request that a browser would send for an object of a page, without credentials.
//!
//! An origin chooses a representation by the request fields of the browser. So a request by the proxy repeats fields of
//! the page's request. It says no more about the reader than any browser's request for an object.

use crate::Fields;

/// `Accept` of requests for style sheets.
const SHEETS: &str = "text/css,*/*;q=0.1";
/// `Accept` of requests for scripts, fonts, text tracks, video, and objects that a script fetches.
const ANYTHING: &str = "*/*";
/// `Accept` of requests for images. A browser's own list depends on its version. Servers look only for the newer
/// formats in it.
const PICTURES: &str = "image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5";
const NEWER_PICTURES: &str = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8";

/// Fields that the request repeats unchanged.
const REPEATED: [&str; 4] = ["user-agent", "accept-language", "dnt", "sec-gpc"];
/// Fields that the request repeats only to https origins, as browsers do.
const REPEATED_SECURELY: [&str; 3] = ["sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-platform"];
/// The longest value that the request repeats, in bytes.
const VALUE_BYTES: usize = 1024;
/// `User-Agent` that identifies no browser.
const NEUTRAL_AGENT: &str = "Mozilla/5.0";

/// The purpose of an object in a page (Fetch, "destination").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// An image.
    Image,
    /// A style sheet.
    Style,
    /// A classic script.
    Script,
    /// A font.
    Font,
    /// A text track of a video.
    Track,
    /// Video or audio.
    Video,
}

impl Destination {
    /// Returns the value of `Sec-Fetch-Dest`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Style => "style",
            Self::Script => "script",
            Self::Font => "font",
            Self::Track => "track",
            Self::Video => "video",
        }
    }
}

/// A browser, described by its request for a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Browser {
    repeated: Vec<(&'static str, String)>,
    repeated_securely: Vec<(&'static str, String)>,
    /// `Accept` of its requests for images.
    pictures: &'static str,
    /// True if the browser sends `Sec-Fetch-*`.
    names_destination: bool,
}

/// An object to request.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    /// True if the scheme is https.
    pub is_secure: bool,
    /// `HOST[:PORT]` of its origin.
    pub authority: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// None for an object that a script fetched.
    pub destination: Option<Destination>,
    /// The `Referer` to send, if any.
    pub referer: Option<&'a str>,
}

impl Browser {
    /// Describes the browser that sent `page`, a request for a page.
    pub fn of(page: &Fields<'_>) -> Self {
        Self {
            repeated: repeated(&REPEATED, page),
            repeated_securely: repeated(&REPEATED_SECURELY, page),
            pictures: if names_newer_pictures(page.get("accept").unwrap_or_default()) {
                NEWER_PICTURES
            } else {
                PICTURES
            },
            names_destination: page.has("sec-fetch-dest"),
        }
    }

    /// Returns a browser of which nothing is known, for objects that any client may have.
    pub fn neutral() -> Self {
        Self {
            repeated: vec![("user-agent", NEUTRAL_AGENT.to_owned())],
            repeated_securely: Vec::new(),
            pictures: PICTURES,
            names_destination: false,
        }
    }

    /// Builds the request for `object`. Names are lower case, and pseudo-header fields come first.
    pub fn request(&self, object: Object<'_>) -> Vec<(&'static str, String)> {
        let Object { is_secure, authority, path, destination, referer } = object;
        let accept = match destination {
            Some(Destination::Image) => self.pictures,
            Some(Destination::Style) => SHEETS,
            _ => ANYTHING,
        };
        let mut fields = vec![
            (":method", "GET".to_owned()),
            (":scheme", if is_secure { "https" } else { "http" }.to_owned()),
            (":authority", authority.to_owned()),
            (":path", path.to_owned()),
            ("accept", accept.to_owned()),
            ("accept-encoding", "gzip".to_owned()),
        ];
        fields.extend(self.repeated.iter().cloned());
        fields.extend(referer.map(|referer| ("referer", referer.to_owned())));
        if is_secure {
            fields.extend(self.repeated_securely.iter().cloned());
            if let Some(destination) = destination.filter(|_| self.names_destination) {
                fields.push(("sec-fetch-dest", destination.as_str().to_owned()));
                fields.push(("sec-fetch-mode", "no-cors".to_owned()));
            }
        }
        fields
    }
}

/// Returns true if `accept` names `image/webp`. Browsers that do so accept the newer image formats.
pub fn names_newer_pictures(accept: &[u8]) -> bool {
    accept.windows(10).any(|window| window.eq_ignore_ascii_case(b"image/webp"))
}

/// Returns those of the fields `names` that are present. Omits a value that is too long or not printable ASCII: the
/// origin then sees a browser that does not send it.
fn repeated(names: &[&'static str], fields: &Fields<'_>) -> Vec<(&'static str, String)> {
    let text = |value: &[u8]| {
        let is_plain = value.len() <= VALUE_BYTES && value.iter().all(|byte| (b' '..=b'~').contains(byte));
        is_plain.then(|| String::from_utf8_lossy(value).into_owned())
    };
    names.iter().filter_map(|&name| Some((name, text(fields.get(name)?)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: [(&str, &str); 9] = [
        ("accept", "text/html,image/avif,image/webp,*/*;q=0.8"),
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
        ("accept-language", "de"),
        ("dnt", "1"),
        ("sec-ch-ua", "\"Chromium\";v=\"140\""),
        ("sec-fetch-dest", "document"),
        ("cookie", "a=b"),
        ("authorization", "Basic YTpi"),
        ("x-other", "1"),
    ];
    const PICTURE: Object<'static> = Object {
        is_secure: true,
        authority: "img.test",
        path: "/a.png?b",
        destination: Some(Destination::Image),
        referer: Some("https://www.test/"),
    };

    fn browser(pairs: &[(&str, &str)]) -> Browser {
        Browser::of(&pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect())
    }

    fn value<'a>(request: &'a [(&str, String)], name: &str) -> Option<&'a str> {
        request.iter().find(|(key, _)| *key == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn a_request_repeats_what_the_browser_says_of_itself_and_no_credential() {
        let request = browser(&PAGE).request(PICTURE);
        for (name, expected) in [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "img.test"),
            (":path", "/a.png?b"),
            ("accept", NEWER_PICTURES),
            ("accept-encoding", "gzip"),
            ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
            ("accept-language", "de"),
            ("dnt", "1"),
            ("referer", "https://www.test/"),
            ("sec-ch-ua", "\"Chromium\";v=\"140\""),
            ("sec-fetch-dest", "image"),
            ("sec-fetch-mode", "no-cors"),
        ] {
            assert_eq!(value(&request, name), Some(expected), "{name}");
        }
        assert_eq!(request.len(), 13, "and nothing else: {request:?}");
    }

    #[test]
    fn plain_http_carries_no_hints_and_no_destination() {
        let request = browser(&PAGE).request(Object { is_secure: false, ..PICTURE });
        assert_eq!(value(&request, ":scheme"), Some("http"));
        assert!(["sec-ch-ua", "sec-fetch-dest", "sec-fetch-mode"].iter().all(|name| value(&request, name).is_none()));
    }

    #[test]
    fn accept_follows_the_destination_and_the_browser() {
        let accept = |browser: &Browser, destination| {
            value(&browser.request(Object { destination, ..PICTURE }), "accept").map(str::to_owned)
        };
        let newer = browser(&PAGE);
        assert_eq!(accept(&newer, Some(Destination::Style)).as_deref(), Some(SHEETS));
        for destination in [Destination::Script, Destination::Font, Destination::Track, Destination::Video] {
            assert_eq!(accept(&newer, Some(destination)).as_deref(), Some(ANYTHING), "{destination:?}");
        }
        assert_eq!(accept(&newer, None).as_deref(), Some(ANYTHING));
        let older = browser(&[("accept", "text/html,*/*;q=0.8")]);
        assert_eq!(accept(&older, Some(Destination::Image)).as_deref(), Some(PICTURES));
        assert_eq!(accept(&newer, Some(Destination::Image)).as_deref(), Some(NEWER_PICTURES));
    }

    #[test]
    fn values_that_are_too_long_or_no_text_are_left_out() {
        let long = "x".repeat(VALUE_BYTES + 1);
        let request = browser(&[("user-agent", &long), ("accept-language", "d\u{e9}"), ("dnt", "1")]).request(PICTURE);
        assert_eq!(value(&request, "user-agent"), None);
        assert_eq!(value(&request, "accept-language"), None);
        assert_eq!(value(&request, "dnt"), Some("1"));
    }

    #[test]
    fn a_neutral_browser_says_nothing_of_a_reader() {
        let request = Browser::neutral().request(Object { destination: None, referer: None, ..PICTURE });
        let names: Vec<&str> = request.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, [":method", ":scheme", ":authority", ":path", "accept", "accept-encoding", "user-agent"]);
        assert_eq!(value(&request, "user-agent"), Some(NEUTRAL_AGENT));
    }
}
