//! A read-only header list. Field names are lower case, as HTTP/2 and Envoy write them.

/// Capacity that holds nearly every header list without growing.
const USUAL_FIELDS: usize = 32;

/// A field name and its value.
type Field<'a> = (&'a [u8], &'a [u8]);

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

    /// Returns every item of the comma-separated list `name`, without surrounding white space. Omits empty items.
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
