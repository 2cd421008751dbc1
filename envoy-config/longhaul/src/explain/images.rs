//! The verdict on images: replaced by smaller variants, or left, and the reason.

use http_semantics::{Fields, media_type};
use image_variants::response::{Sizes, fit};
use image_variants::{Left, config, header};
use longhaul_config::{HostName, Settings};
use longhaul_derive::Derived;
use serde::Serialize;
use url::Url;

/// The verdict on an image, or on the images of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ImageFate {
    /// True if clients that accept WebP get a variant, provided that it has at most nine tenths of the bytes.
    pub replaced: bool,
    /// The reason why this image is left, as a label. None: it is replaced, or images are off.
    pub reason: Option<&'static str>,
    /// The verdict in a sentence.
    pub explanation: String,
}

impl ImageFate {
    /// Returns the verdict on a response to a browser's request for an image. For any other response, returns the one on
    /// the images in it.
    pub(super) fn of(settings: &Settings, derived: &Derived, url: &Url, response: &Fields<'_>, body: &[u8]) -> Self {
        let choice = &derived.images;
        let is_image = response.get("content-type").is_some_and(|kind| media_type::essence(kind).starts_with("image/"));
        let what = if is_image { "the image" } else { "its images" };
        if !choice.on {
            let explanation = format!("{what}: as the origin sends them, because images are off: {}", choice.reason);
            return Self { replaced: false, reason: None, explanation };
        }
        if !is_image {
            let explanation = format!("{what}: smaller for clients that accept WebP ({})", choice.reason);
            return Self { replaced: true, reason: None, explanation };
        }
        match left(settings, url, response, body) {
            None => {
                let explanation =
                    format!("{what}: WebP for clients that accept it, if that has at most nine tenths of the bytes");
                Self { replaced: true, reason: None, explanation }
            }
            Some(left) => {
                let explanation = format!("{what}: as the origin sends it ({}): {}", left.as_str(), left.sentence());
                Self { replaced: false, reason: Some(left.as_str()), explanation }
            }
        }
    }
}

/// Returns the reason why an image is left. The program finds further reasons only when it recodes the image.
fn left(settings: &Settings, url: &Url, response: &Fields<'_>, body: &[u8]) -> Option<Left> {
    let images = &settings.images;
    if config::excludes(images.exclude.iter().map(HostName::as_str), url.host_str().unwrap_or_default()) {
        return Some(Left::Excluded);
    }
    let sizes = Sizes { min_bytes: images.min.0, max_bytes: images.max.0 };
    let pixels = settings.limits.images.pixels.into();
    fit(response, sizes).and_then(|fit| header::read(fit.source, body, pixels)).err()
}

#[cfg(test)]
mod tests {
    use longhaul_config::load_text;
    use longhaul_derive::{HostFacts, derive};

    use super::*;

    /// The header of a PNG image of 100 by 80 pixels, and its end.
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0d\0\0\0P\x08\x02\0\0\0\0\0\0\0\0\0\0\0IEND\0\0\0\0";

    fn of(down: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> ImageFate {
        let text = format!(
            "link: {{ rtt: 300ms, down: {down}, up: 64kbit }}\nproxy: {{ addresses: [198.51.100.12] }}\n\
             upstream: {{ resolvers: [192.0.2.53] }}\n"
        );
        let settings = load_text("test.yaml".as_ref(), text).unwrap().settings;
        let derived = derive(&settings, &HostFacts::unknown());
        let fields = [(":status", "200")].iter().chain(headers).map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
        ImageFate::of(&settings, &derived, &Url::parse(url).unwrap(), &fields, body)
    }

    #[test]
    fn an_image_is_replaced_or_left_with_its_reason() {
        let png = [("content-type", "image/png"), ("content-length", "5000")];
        let strict = [&png[..], &[("cache-control", "no-transform")]].concat();
        let gif = [("content-type", "image/gif"), ("content-length", "5000")];
        let url = "http://www.example.org/a.png";
        for (headers, body, reason) in [
            (&png[..], PNG, None),
            (&strict, PNG, Some("no_transform")),
            (&gif, PNG, Some("type")),
            (&png, b"no image", Some("type")),
        ] {
            let fate = of("384kbit", url, headers, body);
            assert_eq!((fate.replaced, fate.reason), (reason.is_none(), reason), "{headers:?}");
        }
        let off = of("20mbit", url, &png, PNG);
        assert_eq!((off.replaced, off.reason), (false, None));
        assert!(off.explanation.contains("20mbit"), "{}", off.explanation);
        assert!(of("384kbit", url, &[("content-type", "text/html")], b"").replaced, "images of a page");
    }
}
