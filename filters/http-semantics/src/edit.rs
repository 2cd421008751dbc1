//! Edits of a header list, which the proxy makes.

use std::borrow::Cow;

use crate::fields::Fields;

/// One edit of a header list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// Replaces all values of the field by this one.
    Set(&'static str, Vec<u8>),
    /// Adds one more value of the field.
    Add(&'static str, Vec<u8>),
    /// Removes all values of the field.
    Remove(Cow<'static, str>),
}

impl Edit {
    /// Returns the removal of a name that is known at compile time.
    pub const fn remove(name: &'static str) -> Self {
        Self::Remove(Cow::Borrowed(name))
    }

    /// Returns the name of the field that it changes.
    pub fn name(&self) -> &str {
        match self {
            Self::Set(name, _) | Self::Add(name, _) => name,
            Self::Remove(name) => name,
        }
    }
}

/// Returns a header list as it is after `edits`, so that a second decision needs no second copy from the host.
pub fn edited<'a>(fields: Fields<'a>, edits: &'a [Edit]) -> Fields<'a> {
    if edits.is_empty() {
        return fields;
    }
    let mut list: Vec<(&[u8], &[u8])> = fields.iter().collect();
    for edit in edits {
        let name = edit.name().as_bytes();
        if !matches!(edit, Edit::Add(..)) {
            list.retain(|(key, _)| *key != name);
        }
        if let Edit::Set(_, value) | Edit::Add(_, value) = edit {
            list.push((name, value));
        }
    }
    list.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edited_list_is_the_one_that_the_host_has_after_the_edits() {
        let list: [(&[u8], &[u8]); 4] = [(b":path", b"/a"), (b"cookie", b"a"), (b"x", b"1"), (b"cookie", b"b")];
        let edits = [
            Edit::Set(":path", b"/b".to_vec()),
            Edit::remove("cookie"),
            Edit::Add("x", b"2".to_vec()),
            Edit::Set("y", b"3".to_vec()),
            Edit::Set("y", b"4".to_vec()),
            Edit::remove("absent"),
        ];
        let fields = edited(Fields::from(&list[..]), &edits);
        let mut after: Vec<_> = fields.iter().collect();
        after.sort_unstable();
        let expected: [(&[u8], &[u8]); 4] = [(b":path", b"/b"), (b"x", b"1"), (b"x", b"2"), (b"y", b"4")];
        assert_eq!(after, expected);
    }

    #[test]
    fn a_list_without_edits_stays_as_it_is() {
        let list: [(&[u8], &[u8]); 2] = [(b":path", b"/a"), (b"x", b"1")];
        assert_eq!(edited(Fields::from(&list[..]), &[]).iter().collect::<Vec<_>>(), list);
    }
}
