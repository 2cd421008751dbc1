//! Header lists. Field names are lower case, as HTTP/2 and Envoy write them.

/// Capacity that holds nearly every header list without growing.
const USUAL_FIELDS: usize = 32;

/// A field name and its value.
type Field<'a> = (&'a [u8], &'a [u8]);

/// Names and values, in order.
pub type FieldList = Vec<(Vec<u8>, Vec<u8>)>;

/// A header list that borrows its names and values.
#[derive(Debug, Clone, Default)]
pub struct Fields<'a>(List<'a>);

// Not a `Cow`: it is invariant in its item type, and thus in the lifetime of the fields.
#[derive(Debug, Clone)]
enum List<'a> {
    Borrowed(&'a [Field<'a>]),
    Collected(Vec<Field<'a>>),
}

impl Default for List<'_> {
    fn default() -> Self {
        Self::Borrowed(&[])
    }
}

/// Borrows the list without a copy.
impl<'a> From<&'a [Field<'a>]> for Fields<'a> {
    fn from(list: &'a [Field<'a>]) -> Self {
        Self(List::Borrowed(list))
    }
}

impl<'a> FromIterator<Field<'a>> for Fields<'a> {
    fn from_iter<I: IntoIterator<Item = Field<'a>>>(pairs: I) -> Self {
        let mut list = Vec::with_capacity(USUAL_FIELDS);
        list.extend(pairs);
        Self(List::Collected(list))
    }
}

impl<'a> Fields<'a> {
    /// Returns the first value of `name`, without surrounding white space.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// Returns every value of `name` in order, without surrounding white space.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(key, _)| *key == name.as_bytes()).map(|(_, value)| value.trim_ascii())
    }

    /// Returns true if the list has a field `name`.
    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Returns the first value of `name` as text. `None` if it holds anything but visible ASCII and spaces.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        let value = self.get(name)?;
        let is_plain = value.iter().all(|byte| matches!(byte, b' '..=b'~'));
        if is_plain { std::str::from_utf8(value).ok() } else { None }
    }

    /// Returns the `:status` of a response, or 0 if it is missing or no number.
    pub fn status(&self) -> u16 {
        self.text(":status").and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// Returns every item of the comma-separated list `name`, without surrounding white space. Omits empty items
    /// (RFC 9110, 5.6.1.2).
    pub fn items(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let items = self.all(name).flat_map(|value| value.split(|&byte| byte == b','));
        items.map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
    }

    /// Returns every name and value in order. Values keep their white space.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let list = match &self.0 {
            List::Borrowed(list) => list,
            List::Collected(list) => list.as_slice(),
        };
        list.iter().copied()
    }

    /// Returns a copy that owns its names and values.
    pub fn to_list(&self) -> FieldList {
        self.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
    }

    /// Returns true if an item of the comma-separated list `name` is `token`. Ignores case, and the parameters (`;`)
    /// and the argument (`=`) of the item.
    pub fn lists(&self, name: &str, token: &str) -> bool {
        self.items(name).any(|item| {
            item.split(|&byte| byte == b';' || byte == b'=')
                .next()
                .unwrap_or_default()
                .trim_ascii()
                .eq_ignore_ascii_case(token.as_bytes())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_over_several_fields_and_in_any_case() {
        let list: [Field<'_>; 3] =
            [(b"cache-control", b"Public, MAX-age=3"), (b"x", b"y"), (b"cache-control", b"no-Store")];
        let fields = Fields::from(&list[..]);
        assert!(fields.lists("cache-control", "public") && fields.lists("cache-control", "max-age"));
        assert!(fields.lists("cache-control", "no-store") && !fields.lists("cache-control", "private"));
    }

    #[test]
    fn an_empty_item_of_a_list_is_none() {
        let list: [Field<'_>; 3] = [(b"a", b" , x,,y "), (b"a", b""), (b"a", b",")];
        assert_eq!(Fields::from(&list[..]).items("a").collect::<Vec<_>>(), [b"x", b"y"]);
    }

    #[test]
    fn text_is_visible_ascii_and_a_status_is_a_number() {
        for (value, text, status) in [
            (&b" 204 "[..], Some("204"), 204),
            (b"20 4", Some("20 4"), 0),
            (b"", Some(""), 0),
            (b"2\xb2", None, 0),
            (b"200\t0", None, 0),
            (b"70000", Some("70000"), 0),
        ] {
            let list = [(&b":status"[..], value)];
            let fields = Fields::from(&list[..]);
            assert_eq!((fields.text(":status"), fields.status()), (text, status));
        }
        assert_eq!(Fields::default().status(), 0);
    }
}
