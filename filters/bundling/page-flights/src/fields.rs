//! Header lists. Names are lower case, as HTTP/2 and Envoy have them; values are bytes.

/// Names and values, in order.
pub type FieldList = Vec<(Vec<u8>, Vec<u8>)>;

/// A header list, borrowed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [(&'a [u8], &'a [u8])]);

impl<'a> Fields<'a> {
    /// The first value of `name`, without surrounding white space.
    pub(crate) fn get(self, name: &str) -> Option<&'a [u8]> {
        self.0.iter().find(|(key, _)| *key == name.as_bytes()).map(|(_, value)| value.trim_ascii())
    }

    pub(crate) fn has(self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The same as text; none if it is not ASCII that can stand in a header.
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        let value = self.get(name)?;
        let plain = value.iter().all(|byte| matches!(byte, b' '..=b'~'));
        plain.then(|| std::str::from_utf8(value).ok()).flatten()
    }

    /// Every item of every comma-separated list `name`.
    pub(crate) fn items(self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        let values = self.0.iter().filter(move |(key, _)| *key == name.as_bytes());
        values.flat_map(|(_, value)| value.split(|&byte| byte == b',')).map(<[u8]>::trim_ascii)
    }

    /// Whether a list `name` has the item `token`, in any case, parameters aside.
    pub(crate) fn lists(self, name: &'a str, token: &str) -> bool {
        self.items(name).any(|item| head(item).eq_ignore_ascii_case(token.as_bytes()))
    }

    /// `:status`, or 0.
    pub(crate) fn status(self) -> u16 {
        self.text(":status").and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// The media type, in lower case, without parameters.
    pub(crate) fn media_type(self) -> Vec<u8> {
        head(self.get("content-type").unwrap_or_default()).to_ascii_lowercase()
    }
}

/// What stands before the parameters.
pub(crate) fn head(item: &[u8]) -> &[u8] {
    let end = item.iter().position(|byte| matches!(byte, b';' | b'=')).unwrap_or(item.len());
    item.get(..end).unwrap_or(item).trim_ascii()
}

/// Whether `coding` is among those that `accepted` (an `Accept-Encoding`) takes.
pub(crate) fn takes(accepted: &[u8], coding: &[u8]) -> bool {
    accepted.split(|&byte| byte == b',').any(|item| {
        let refused = item.split(|&byte| byte == b';').skip(1).any(|parameter| {
            let weight = parameter.trim_ascii().strip_prefix(b"q=").unwrap_or(b"1");
            weight.iter().all(|byte| matches!(byte, b'0' | b'.'))
        });
        head(item).eq_ignore_ascii_case(coding) && !refused
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_over_several_fields_and_in_any_case() {
        let list: [(&[u8], &[u8]); 3] =
            [(b"cache-control", b"Public, MAX-age=3"), (b"x", b"y"), (b"cache-control", b"no-Store")];
        let fields = Fields(&list);
        assert!(fields.lists("cache-control", "public") && fields.lists("cache-control", "max-age"));
        assert!(fields.lists("cache-control", "no-store") && !fields.lists("cache-control", "private"));
    }

    #[test]
    fn a_coding_is_taken_if_it_is_named_and_not_refused() {
        for (accepted, takes_gzip) in [
            ("gzip, deflate", true),
            ("br, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000", false),
            ("deflate", false),
            ("", false),
        ] {
            assert_eq!(takes(accepted.as_bytes(), b"gzip"), takes_gzip, "{accepted}");
        }
    }
}
