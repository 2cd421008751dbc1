//! One start tag, read once.

use std::borrow::Cow;

use super::attributes::{Attribute, Attributes};

/// Room for the attributes of nearly every tag without growing.
const USUAL_ATTRIBUTES: usize = 8;

/// A start tag's name and attributes.
#[derive(Debug)]
pub struct Tag<'t> {
    /// As written.
    pub name: &'t [u8],
    attributes: Vec<Attribute<'t>>,
    /// For each attribute the bit of its name: most names that are looked up are not there.
    names: u64,
}

/// The bit of a name, which is the same in any case. Few names share one.
#[inline]
fn bit(name: &[u8]) -> u64 {
    let first = name.first().map_or(0, |first| u32::from(first | 0x20));
    let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
    1 << (first.wrapping_mul(5).wrapping_add(length) % u64::BITS)
}

impl<'t> Tag<'t> {
    /// `tag` is the whole start tag, from `<` to `>`, and its name has `name` bytes.
    pub fn read(tag: &'t [u8], name: usize) -> Self {
        let mut attributes = Vec::with_capacity(USUAL_ATTRIBUTES);
        attributes.extend(Attributes::of(tag, name));
        let names = attributes.iter().fold(0, |names, attribute| names | bit(attribute.name));
        Self { name: tag.get(1..1 + name).unwrap_or_default(), attributes, names }
    }

    /// Returns true if this is the element's name, in any case.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// All attributes in source order.
    pub fn attributes(&self) -> impl Iterator<Item = &Attribute<'t>> {
        self.attributes.iter()
    }

    /// The first attribute of this name: browsers drop the others.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&Attribute<'t>> {
        if self.names & bit(name.as_bytes()) == 0 {
            return None;
        }
        self.attributes.iter().find(|attribute| attribute.is(name))
    }

    /// Returns true if an attribute has this keyword for a value, in any case.
    #[inline]
    pub fn says(&self, name: &str, keyword: &str) -> bool {
        self.get(name).is_some_and(|attribute| attribute.text().eq_ignore_ascii_case(keyword.as_bytes()))
    }

    /// The attribute's value, character references decoded; empty where there is none.
    pub fn text(&self, name: &str) -> Cow<'t, [u8]> {
        self.get(name).map(Attribute::text).unwrap_or_default()
    }

    /// Returns true if a list of keywords, separated by white space, holds this one, in any case.
    #[inline]
    pub fn lists(&self, name: &str, keyword: &str) -> bool {
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
            let tag = Tag::read(tag.as_bytes(), 1);
            for name in names.iter().map(String::as_str).chain(["a", "b", "c", "ab", "abc", "bca", "cab-a"]) {
                let first = tag.attributes().find(|attribute| attribute.is(name));
                prop_assert_eq!(tag.get(name), first);
            }
        }
    }
}
