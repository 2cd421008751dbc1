//! A header list to read. Names are lower case, as HTTP/2 and Envoy have them.

/// Room for nearly every header list without growing.
const USUAL_FIELDS: usize = 32;

/// A name and its value.
type Field<'a> = (&'a [u8], &'a [u8]);

/// A header list, borrowed from wherever the proxy keeps it.
#[derive(Debug, Clone, Default)]
pub struct Fields<'a>(List<'a>);

// No `Cow`: it would bind the lifetime of a list to one exact value.
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

/// Without a copy.
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
    /// The first value of `name`, without surrounding white space.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// Every value of `name`, in order.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(key, _)| *key == name.as_bytes()).map(|(_, value)| value.trim_ascii())
    }

    /// Whether `name` is there.
    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }

    /// Every item of the comma-separated list `name`, without surrounding white space; empty ones are left out.
    pub fn items(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let items = self.all(name).flat_map(|value| value.split(|&byte| byte == b','));
        items.map(<[u8]>::trim_ascii).filter(|item| !item.is_empty())
    }

    /// Every name and value, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let list = match &self.0 {
            List::Borrowed(list) => list,
            List::Collected(list) => list.as_slice(),
        };
        list.iter().copied()
    }

    /// Whether any value of the comma-separated list `name` is `token`, in any case, parameters and arguments aside.
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
