//! The configuration of the filter at its positions, and that of admission, which url-rewrite reads.

use serde::{Deserialize, Serialize};

use crate::plain::PlainField;

/// The position of the filter, and its configuration there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "at", rename_all = "snake_case", deny_unknown_fields)]
pub enum Position {
    /// In the hop `fetch`, before its cache: requests that fill the cache, and Longhaul's own requests.
    Fetch {
        /// True if clients that accept WebP get smaller variants of images.
        #[serde(default, skip_serializing_if = "is_off")]
        images: bool,
    },
    /// In the inner hop, behind the caches: the judge.
    Origin {
        /// The longest body that the cache takes, in bytes.
        object_bytes: u64,
    },
}

/// The moment at which a URL is admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Admit {
    /// After one response has shown that it may be stored.
    Learned,
    /// At the first request. A response that may not be stored then costs its origin a second request.
    First,
}

/// The configuration of admission.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The moment at which a URL is admitted.
    pub admit: Admit,
    /// Request fields that change no response, as the operator declares.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub plain_fields: Vec<PlainField>,
    /// True if clients that accept WebP get smaller variants of images, under paths of their own.
    #[serde(default, skip_serializing_if = "is_off")]
    pub images: bool,
    /// The longest body that the cache takes, in bytes.
    pub object_bytes: u64,
}

/// The part of the configuration that is about requests.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// The moment at which a URL is admitted.
    pub admit: Admit,
    /// Fields that change no response, besides those of the built-in list.
    pub plain: &'a [PlainField],
    /// True if clients that accept WebP get smaller variants of images.
    pub images: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_off(on: &bool) -> bool {
    !*on
}

/// The reason why a configuration is refused.
#[derive(Debug, thiserror::Error)]
#[error("cache-admission: the configuration is refused: {0}")]
pub struct Refused(#[from] serde_json::Error);

impl Config {
    /// Returns the part that is about requests.
    pub fn rules(&self) -> Rules<'_> {
        Rules { admit: self.admit, plain: &self.plain_fields, images: self.images }
    }
}

impl Position {
    /// Reads JSON. Refuses unknown keys.
    pub fn from_json(json: &[u8]) -> Result<Self, Refused> {
        Ok(serde_json::from_slice(json)?)
    }
}
