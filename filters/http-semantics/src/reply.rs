//! Responses that the proxy makes itself.

use crate::fields::FieldList;

/// A response of the proxy, sent instead of the origin's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// Header fields without the status.
    pub fields: FieldList,
    /// The body.
    pub body: Vec<u8>,
}

impl Reply {
    /// Returns a response with these fields.
    pub fn new(status: u16, fields: &[(&str, &[u8])], body: impl Into<Vec<u8>>) -> Self {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect();
        Self { status, fields, body: body.into() }
    }

    /// Returns a response that is a status alone.
    pub fn empty(status: u16) -> Self {
        Self::new(status, &[], [])
    }
}
