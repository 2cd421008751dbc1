//! `Cache-Control` of a request or a response (RFC 9111 section 5.2).

use http_semantics::Fields;
use http_semantics::cache_control::MOST_SECONDS;

use crate::lists;

/// The directives of one message.
#[derive(Debug, Clone, Copy)]
pub struct Directives<'f, 'v> {
    fields: &'f Fields<'v>,
}

impl<'f, 'v> Directives<'f, 'v> {
    /// Reads the directives of a message.
    pub fn of(fields: &'f Fields<'v>) -> Self {
        Self { fields }
    }

    /// Returns true if the message has the directive, with or without an argument. A cache may read `no-cache="field"` and
    /// `private="field"` as the bare directive (RFC 9111 sections 5.2.2.4 and 5.2.2.7).
    pub fn has(&self, directive: &str) -> bool {
        self.arguments(directive).next().is_some()
    }

    /// Returns the argument of the directive in seconds, at most 2^31. Of several, the smallest counts. An argument that is
    /// missing, no number or apart from its `=` is 0, so the response is stale (RFC 9111 section 4.2.1). None without the
    /// directive.
    pub fn seconds(&self, directive: &str) -> Option<u64> {
        self.seconds_or(directive, 0)
    }

    /// Returns the same as [`Self::seconds`], but a missing argument counts as `bare`.
    pub fn seconds_or(&self, directive: &str, bare: u64) -> Option<u64> {
        self.arguments(directive).map(|argument| argument.map_or(bare, |value| number(value).unwrap_or(0))).min()
    }

    /// Returns true for `no-cache`, or for `Pragma: no-cache` in a message without `Cache-Control` (RFC 9111 section 5.4).
    pub fn no_cache(&self) -> bool {
        if self.fields.has("cache-control") { self.has("no-cache") } else { self.fields.lists("pragma", "no-cache") }
    }

    fn arguments(&self, directive: &str) -> impl Iterator<Item = Option<&'v [u8]>> {
        self.fields.all("cache-control").flat_map(lists::items).filter_map(move |item| {
            let mut parts = item.splitn(2, |&byte| byte == b'=');
            let name = parts.next().unwrap_or_default();
            // No space may stand next to `=` (RFC 9111 section 5.2). The directive counts, and its argument does not.
            let is_apart = name.ends_with(b" ") || name.ends_with(b"\t");
            let argument = parts.next().map(|value| if is_apart { b"" } else { value });
            name.trim_ascii().eq_ignore_ascii_case(directive.as_bytes()).then_some(argument)
        })
    }
}

/// Reads digits, bare or in quotes. A number above 2^31 counts as 2^31 (RFC 9111 section 1.2.2). Returns None for anything
/// else.
pub(crate) fn number(value: &[u8]) -> Option<u64> {
    let value = value.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(value);
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| u64::from(byte - b'0'));
    let add = |sum: u64, byte: &u8| Some((sum * 10 + digit(byte)?).min(MOST_SECONDS));
    if value.is_empty() { None } else { value.iter().try_fold(0, add) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields<'a>(list: &[(&'a str, &'a str)]) -> Fields<'a> {
        list.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect()
    }

    #[test]
    fn the_smallest_number_counts_and_anything_else_is_zero() {
        for (value, expected) in [
            ("public", None),
            ("x-max-age=1", None),
            ("max-age=60", Some(60)),
            ("public ,Max-Age=60 , x", Some(60)),
            ("max-age =60", Some(0)),
            ("max-age= 60", Some(0)),
            ("max-age\t=60", Some(0)),
            ("max-age=\"60\"", Some(60)),
            ("max-age=60, max-age=7", Some(7)),
            ("max-age=60, max-age=soon", Some(0)),
            ("max-age", Some(0)),
            ("max-age=", Some(0)),
            ("max-age=-1", Some(0)),
            ("max-age=1.5", Some(0)),
            ("max-age='60'", Some(0)),
            ("max-age=2147483649", Some(MOST_SECONDS)),
            ("max-age=99999999999999999999999", Some(MOST_SECONDS)),
            ("x=\"a, max-age=1\", max-age=60", Some(60)),
        ] {
            assert_eq!(Directives::of(&fields(&[("cache-control", value)])).seconds("max-age"), expected, "{value}");
        }
    }

    #[test]
    fn a_bare_directive_has_the_callers_number() {
        for (value, expected) in
            [("max-stale", Some(9)), ("max-stale=5", Some(5)), ("max-stale=x", Some(0)), ("x", None)]
        {
            let list = fields(&[("cache-control", value)]);
            assert_eq!(Directives::of(&list).seconds_or("max-stale", 9), expected, "{value}");
        }
    }

    #[test]
    fn directives_are_found_in_every_field_and_not_in_quotes() {
        let list = fields(&[("cache-control", "ext=\"no-store, private\""), ("cache-control", "No-Cache=\"a, b\"")]);
        let says = Directives::of(&list);
        assert!(says.has("no-cache") && says.has("ext"));
        assert!(!says.has("no-store") && !says.has("private"));
        assert!(Directives::of(&fields(&[("cache-control", "no-store =x, private = \"y\"")])).has("no-store"));
        let open = fields(&[("cache-control", "ext=\"a, no-store")]);
        assert!(Directives::of(&open).has("no-store"));
    }

    #[test]
    fn pragma_counts_without_cache_control() {
        for (list, expected) in [
            (&[("pragma", "No-Cache")][..], true),
            (&[("pragma", "x, no-cache")], true),
            (&[("pragma", "x")], false),
            (&[("pragma", "no-cache"), ("cache-control", "max-age=1")], false),
            (&[("cache-control", "no-cache")], true),
            (&[], false),
        ] {
            assert_eq!(Directives::of(&fields(list)).no_cache(), expected, "{list:?}");
        }
    }
}
