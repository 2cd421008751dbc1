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
}

impl<'t> Tag<'t> {
    /// `tag` is the whole start tag, from `<` to `>`, and its name has `name` bytes.
    pub fn read(tag: &'t [u8], name: usize) -> Self {
        let mut attributes = Vec::with_capacity(USUAL_ATTRIBUTES);
        attributes.extend(Attributes::of(tag, name));
        Self { name: tag.get(1..1 + name).unwrap_or_default(), attributes }
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
    pub fn get(&self, name: &str) -> Option<&Attribute<'t>> {
        self.attributes.iter().find(|attribute| attribute.is(name))
    }

    /// Returns true if an attribute has this keyword for a value, in any case.
    pub fn says(&self, name: &str, keyword: &str) -> bool {
        self.get(name).is_some_and(|attribute| attribute.text().eq_ignore_ascii_case(keyword.as_bytes()))
    }

    /// The attribute's value, character references decoded; empty where there is none.
    pub fn text(&self, name: &str) -> Cow<'t, [u8]> {
        self.get(name).map(Attribute::text).unwrap_or_default()
    }

    /// Returns true if a list of keywords, separated by white space, holds this one, in any case.
    pub fn lists(&self, name: &str, keyword: &str) -> bool {
        self.text(name).split(u8::is_ascii_whitespace).any(|token| token.eq_ignore_ascii_case(keyword.as_bytes()))
    }
}
