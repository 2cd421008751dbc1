//! A list of header fields in the codec's form: one piece of text, with the place of each name and value in it.
//!
//! A cookie field is split into its crumbs: `cookie: a=1; b=2` becomes `cookie` = `a=1` and [`CRUMB`] = `b=2`. One
//! crumb often changes while the others stay, and HTTP/2 splits cookies for the same reason (RFC 9113, 8.2.3). HTTP
//! does not allow the name of the further crumbs, so it collides with no real field. A message that contains it anyway
//! travels plain.

use http_semantics::site;

use crate::error::Unpackable;
use crate::hash;
use crate::limits;
use crate::policy::{self, Policy};

/// Name of every crumb after the first one of a cookie field.
pub(crate) const CRUMB: &[u8] = b";cookie";
/// Separator of the crumbs in a cookie field.
const CRUMB_SEPARATOR: &[u8] = b"; ";

/// One field of a [`Block`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    start: u32,
    name_length: u32,
    value_length: u32,
    /// Hashes of its name and value.
    pub(crate) key: Key,
    /// How the codec treats fields of this name.
    pub(crate) policy: Policy,
}

/// Hashes of a field's name and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: u32,
    pub(crate) value: u32,
}

impl Field {
    /// Returns the length of the value in bytes.
    pub(crate) fn value_size(&self) -> i32 {
        i32::try_from(self.value_length).unwrap_or(i32::MAX)
    }
}

/// A list of header fields, in order and with duplicates.
#[derive(Debug, Clone, Default)]
pub struct Block {
    text: Vec<u8>,
    fields: Vec<Field>,
    /// Copies of the keys of all fields, close together in memory. The codec compares every message with dozens of
    /// blocks by their keys.
    keys: Vec<Key>,
}

impl Block {
    /// Builds the block of a message and splits its cookies into crumbs.
    ///
    /// # Errors
    /// [`Unpackable::TooLarge`] beyond [`limits::FIELDS`] or [`limits::BLOCK_BYTES`]. [`Unpackable::NotHttp`] for the
    /// name `;cookie`, which HTTP does not allow and which this module reserves.
    pub fn from_fields<'a>(fields: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> Result<Self, Unpackable> {
        let mut block = Self::with_room();
        for (name, value) in fields {
            if name == CRUMB {
                return Err(Unpackable::NotHttp);
            }
            if name != b"cookie" {
                block.push(name, value)?;
                continue;
            }
            let mut rest = value;
            let mut name = name;
            while let Some(at) = rest.windows(2).position(|pair| pair == CRUMB_SEPARATOR) {
                let (crumb, tail) = rest.split_at(at);
                block.push(name, crumb)?;
                rest = tail.get(2..).unwrap_or_default();
                name = CRUMB;
            }
            block.push(name, rest)?;
        }
        Ok(block)
    }

    /// Returns an empty block with enough capacity for most messages.
    pub(crate) fn with_room() -> Self {
        Self { text: Vec::with_capacity(512), fields: Vec::with_capacity(24), keys: Vec::with_capacity(24) }
    }

    /// Returns the fields of the message, with the crumbs of each cookie joined again.
    pub fn to_fields(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(self.fields.len());
        for (name, value) in self.iter() {
            match fields.last_mut() {
                Some((last, crumbs)) if name == CRUMB && last == b"cookie" => {
                    crumbs.extend_from_slice(CRUMB_SEPARATOR);
                    crumbs.extend_from_slice(value);
                }
                _ => fields.push((name.to_vec(), value.to_vec())),
            }
        }
        fields
    }

    /// Appends one field unchanged.
    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), Unpackable> {
        let bytes = self.text.len().saturating_add(name.len()).saturating_add(value.len());
        if self.fields.len() >= limits::FIELDS || bytes > limits::BLOCK_BYTES {
            return Err(Unpackable::TooLarge);
        }
        let number = |length: usize| u32::try_from(length).map_err(|_| Unpackable::TooLarge);
        let key = Key { name: hash::bytes(name), value: hash::bytes(value) };
        self.fields.push(Field {
            start: number(self.text.len())?,
            name_length: number(name.len())?,
            value_length: number(value.len())?,
            key,
            policy: policy::of(name),
        });
        self.keys.push(key);
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(value);
        Ok(())
    }

    /// Returns true if crumbs stand only where splitting a cookie puts them. Then joining them restores the original
    /// field.
    pub(crate) fn crumbs_join(&self) -> bool {
        let mut cookie = false;
        self.iter().all(|(name, value)| {
            let whole = !value.windows(2).any(|pair| pair == CRUMB_SEPARATOR);
            match name {
                b"cookie" => {
                    cookie = true;
                    whole
                }
                CRUMB => cookie && whole,
                _ => {
                    cookie = false;
                    true
                }
            }
        })
    }

    pub(crate) fn fields(&self) -> &[Field] {
        &self.fields
    }

    pub(crate) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Returns the value of the field with index `at`.
    pub(crate) fn value_at(&self, at: usize) -> &[u8] {
        self.fields.get(at).map(|field| self.value(field)).unwrap_or_default()
    }

    pub(crate) fn name(&self, field: &Field) -> &[u8] {
        self.piece(field.start, field.name_length)
    }

    pub(crate) fn value(&self, field: &Field) -> &[u8] {
        self.piece(field.start.saturating_add(field.name_length), field.value_length)
    }

    fn piece(&self, start: u32, length: u32) -> &[u8] {
        let start = start as usize;
        self.text.get(start..start.saturating_add(length as usize)).unwrap_or_default()
    }

    /// Iterates over the name and value of every field, with crumbs as separate fields.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.fields.iter().map(|field| (self.name(field), self.value(field)))
    }

    /// Returns the value of the first field with this name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&[u8]> {
        let wanted = hash::bytes(name);
        let field = self.fields.iter().find(|field| field.key.name == wanted && self.name(field) == name)?;
        Some(self.value(field))
    }

    /// Returns the site of the request, from its `:authority`.
    pub(crate) fn site(&self) -> Vec<u8> {
        site::of(self.get(b":authority").unwrap_or_default())
    }

    /// Returns the bytes of all names and values of the original message, without the names of further crumbs.
    pub fn bytes(&self) -> usize {
        let crumb = CRUMB.len() - CRUMB_SEPARATOR.len();
        self.text.len().saturating_sub(self.crumbs() * crumb)
    }

    /// Returns the number of fields in the original message.
    pub(crate) fn len(&self) -> usize {
        self.fields.len().saturating_sub(self.crumbs())
    }

    fn crumbs(&self) -> usize {
        let crumb = hash::bytes(CRUMB);
        self.keys.iter().filter(|key| key.name == crumb).count()
    }

    /// Returns a hash of all fields, for the check at the end of a message.
    pub(crate) fn check(&self, seed: u32) -> u32 {
        self.keys.iter().fold(seed, |sum, key| hash::mix(hash::mix(sum, key.name), key.value))
    }
}

impl PartialEq for Block {
    fn eq(&self, other: &Self) -> bool {
        self.fields.len() == other.fields.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Block {}
