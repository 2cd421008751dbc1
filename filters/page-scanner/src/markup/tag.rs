//! One start tag, read once.

use std::borrow::Cow;

use super::attributes::{Attribute, Span};

/// A start tag's name and attributes.
#[derive(Debug)]
pub(crate) struct Tag<'t> {
    /// As written.
    pub name: &'t [u8],
    bytes: &'t [u8],
    attributes: Cow<'t, [Span]>,
    /// For each attribute the bit of its name: most names that are looked up are not there.
    names: u64,
}

/// The bit of a name, which is the same in any case. Few names share one.
#[inline]
pub(crate) const fn bit(name: &[u8]) -> u64 {
    let first = match name {
        [first, ..] => (*first | 0x20) as usize,
        [] => 0,
    };
    1 << (first.wrapping_mul(5).wrapping_add(name.len()) % u64::BITS as usize)
}

/// The bits of several names.
pub(crate) const fn bits(names: &[&str]) -> u64 {
    match names {
        [name, rest @ ..] => bit(name.as_bytes()) | bits(rest),
        [] => 0,
    }
}

impl<'t> Tag<'t> {
    /// `tag` is the whole start tag, from `<` to `>`, and its name has `name` bytes.
    pub(crate) fn of(tag: &'t [u8], name: usize, attributes: Cow<'t, [Span]>) -> Self {
        let names =
            attributes.iter().fold(0, |names, span| names | bit(tag.get(span.name.clone()).unwrap_or_default()));
        Self { name: tag.get(1..1 + name).unwrap_or_default(), bytes: tag, attributes, names }
    }

    /// False if no attribute has any of these names; the names are given by their [`bits`].
    #[inline]
    pub(crate) fn may_have(&self, names: u64) -> bool {
        self.names & names != 0
    }

    /// The attributes that may have one of these names.
    pub(crate) fn attributes_of(&self, names: u64) -> impl Iterator<Item = Attribute<'t>> {
        let bytes = self.bytes;
        let may_be = move |span: &&Span| bit(bytes.get(span.name.clone()).unwrap_or_default()) & names != 0;
        self.attributes.iter().filter(may_be).map(|span| span.of(self.bytes))
    }

    /// Returns true if this is the element's name, in any case.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// The first attribute of this name: browsers drop the others.
    #[inline]
    pub(crate) fn get(&self, name: &str) -> Option<Attribute<'t>> {
        if self.names & bit(name.as_bytes()) == 0 {
            return None;
        }
        self.attributes_of(bit(name.as_bytes())).find(|attribute| attribute.is(name))
    }

    /// Returns true if an attribute has this keyword for a value, in any case.
    #[inline]
    pub(crate) fn says(&self, name: &str, keyword: &str) -> bool {
        self.get(name).is_some_and(|attribute| attribute.text().eq_ignore_ascii_case(keyword.as_bytes()))
    }

    /// The attribute's value, character references decoded; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> Cow<'t, [u8]> {
        self.get(name).map(|attribute| attribute.text()).unwrap_or_default()
    }

    /// Returns true if a list of keywords, separated by white space, holds this one, in any case.
    #[inline]
    pub(crate) fn lists(&self, name: &str, keyword: &str) -> bool {
        self.get(name).is_some_and(|attribute| {
            attribute.text().split(u8::is_ascii_whitespace).any(|token| token.eq_ignore_ascii_case(keyword.as_bytes()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_attribute_is_found_if_and_only_if_it_is_there(names in prop::collection::vec("[a-cA-C:-]{1,6}", 0..6)) {
            let tag = format!("<p {}>", names.join("=1 "));
            let tag = Tag::of(tag.as_bytes(), 1, Span::all(tag.as_bytes(), 1).collect());
            for name in names.iter().map(String::as_str).chain(["a", "b", "c", "ab", "abc", "bca", "cab-a"]) {
                let first = tag.attributes_of(u64::MAX).find(|attribute| attribute.is(name));
                prop_assert_eq!(tag.get(name), first);
            }
        }
    }
}
