//! One start tag, read once.

use super::attributes::{Attribute, Attributes};
use super::tag_end::name_length;

/// Room for the attributes of nearly every tag without growing.
const USUAL_ATTRIBUTES: usize = 8;

/// A start tag's name and attributes.
#[derive(Debug)]
pub(crate) struct Tag<'t> {
    /// As written.
    pub(crate) name: &'t [u8],
    attributes: Vec<Attribute<'t>>,
}

impl<'t> Tag<'t> {
    /// `tag` is the whole start tag, from `<` to `>`.
    pub(crate) fn read(tag: &'t [u8]) -> Self {
        let mut attributes = Vec::with_capacity(USUAL_ATTRIBUTES);
        attributes.extend(Attributes::of(tag));
        Self { name: Self::name_in(tag), attributes }
    }

    /// The name in a start tag.
    pub(crate) fn name_in(tag: &'t [u8]) -> &'t [u8] {
        let name = tag.get(1..).unwrap_or_default();
        name.get(..name_length(name).unwrap_or(name.len())).unwrap_or_default()
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// All attributes in source order.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = &Attribute<'t>> {
        self.attributes.iter()
    }

    /// The first attribute of this name: browsers drop the others.
    pub(crate) fn get(&self, name: &str) -> Option<&Attribute<'t>> {
        self.attributes.iter().find(|attribute| attribute.is(name))
    }

    /// Whether an attribute has this keyword for a value, in any case.
    pub(crate) fn says(&self, name: &str, keyword: &str) -> bool {
        self.get(name).is_some_and(|attribute| attribute.value.eq_ignore_ascii_case(keyword.as_bytes()))
    }
}
