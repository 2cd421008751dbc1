//! Request fields that change no response, and those by which an origin may choose one although its cache key lacks them.

use std::fmt;

use http_semantics::Fields;
use serde::{Deserialize, Serialize};

/// Fields with rules of their own, which decide if a response is stored or used.
const JUDGED: [&[u8]; 2] = [b"authorization", b"range"];

/// Fields that browsers send with any request, and fields that no origin sees (`x-forwarded-for`, our own). Any other
/// field may be unkeyed input: an origin may choose its response by it, but it is no part of the cache key.
const PLAIN: [&[u8]; 31] = [
    b"accept",
    b"accept-encoding",
    b"accept-language",
    b"cache-control",
    b"cdn-loop",
    b"connection",
    b"content-length",
    b"cookie",
    b"dnt",
    b"expect",
    b"host",
    b"keep-alive",
    b"max-forwards",
    b"origin",
    b"pragma",
    b"priority",
    b"proxy-connection",
    b"purpose",
    b"referer",
    b"rtt",
    b"save-data",
    b"te",
    b"traceparent",
    b"tracestate",
    b"upgrade-insecure-requests",
    b"user-agent",
    b"via",
    b"x-forwarded-for",
    b"x-forwarded-proto",
    b"x-purpose",
    b"x-request-id",
];
const PLAIN_BEGINNINGS: [&[u8]; 5] = [b":", b"sec-", b"x-longhaul-", b"x-envoy-", b"if-"];

/// Names that the operator may not call plain, with the reason. A hyphen at the end stands for every name that begins
/// so.
const UNFIT: [(&str, Unfit); 36] = [
    ("range", Unfit::Judged),
    ("transfer-encoding", Unfit::Judged),
    ("trailer", Unfit::Judged),
    ("upgrade", Unfit::Judged),
    ("http2-settings", Unfit::Judged),
    ("if-", Unfit::Judged),
    ("authentication-", Unfit::Credential),
    ("authorization", Unfit::Credential),
    ("cookie", Unfit::Credential),
    ("cookie2", Unfit::Credential),
    ("dpop", Unfit::Credential),
    ("proxy-authorization", Unfit::Credential),
    ("x-access-token", Unfit::Credential),
    ("x-amz-", Unfit::Credential),
    ("x-api-key", Unfit::Credential),
    ("x-auth-", Unfit::Credential),
    ("x-csrf-token", Unfit::Credential),
    ("x-session-", Unfit::Credential),
    ("x-xsrf-token", Unfit::Credential),
    ("a-im", Unfit::Chooses),
    ("accept-", Unfit::Chooses),
    ("access-control-", Unfit::Chooses),
    ("content-", Unfit::Chooses),
    ("forwarded", Unfit::Chooses),
    ("front-end-https", Unfit::Chooses),
    ("hx-", Unfit::Chooses),
    ("negotiate", Unfit::Chooses),
    ("prefer", Unfit::Chooses),
    ("x-forwarded-", Unfit::Chooses),
    ("x-host", Unfit::Chooses),
    ("x-http-", Unfit::Chooses),
    ("x-method-", Unfit::Chooses),
    ("x-original-", Unfit::Chooses),
    ("x-pjax", Unfit::Chooses),
    ("x-requested-with", Unfit::Chooses),
    ("x-rewrite-", Unfit::Chooses),
];

/// The longest name, in bytes.
const NAME_BYTES: usize = 64;

/// The reason why a name cannot be called plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// No field has this name, or it is not in lower case.
    #[error("not a field name in lower case of at most {NAME_BYTES} characters")]
    Name,
    /// No request bypasses the cache because of this field, or the field has its own rule.
    #[error("a field that the cache already handles")]
    Judged,
    /// Origins identify clients by this field.
    #[error("a field by which origins identify clients")]
    Credential,
    /// Origins choose a response by this field.
    #[error("a field by which origins choose a response")]
    Chooses,
}

/// The name of a request field that changes no response, as the operator declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PlainField(String);

impl PlainField {
    /// Reads a name in lower case.
    ///
    /// # Errors
    /// The reason why requests with that field must bypass the cache, or why it needs no declaration.
    pub fn new(name: &str) -> Result<Self, Unfit> {
        let is_name =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || name.len() > NAME_BYTES || !name.bytes().all(is_name) {
            return Err(Unfit::Name);
        }
        let is_meant = |unfit: &str| name == unfit || (unfit.ends_with('-') && name.starts_with(unfit));
        match UNFIT.iter().find(|(unfit, _)| is_meant(unfit)) {
            Some((_, why)) => Err(*why),
            None if is_plain(name.as_bytes(), &[]) => Err(Unfit::Judged),
            None => Ok(Self(name.to_owned())),
        }
    }
}

impl TryFrom<String> for PlainField {
    type Error = Unfit;

    fn try_from(name: String) -> Result<Self, Unfit> {
        Self::new(&name)
    }
}

impl From<PlainField> for String {
    fn from(field: PlainField) -> Self {
        field.0
    }
}

impl fmt::Display for PlainField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns true if the request has a field by which an origin may choose its response, and which `vary` does not name. A
/// client could else make others get what its own field chose (cache poisoning). `more` are the operator's fields.
pub fn is_unkeyed(request: &Fields<'_>, vary: &[Vec<u8>], more: &[PlainField]) -> bool {
    let is_keyed = |name: &[u8]| JUDGED.contains(&name) || vary.iter().any(|known| known == name);
    !request.iter().all(|(name, _)| is_plain(name, more) || is_keyed(name))
}

/// Returns true if the field `name` changes no response. It is in the built-in list, or the operator declared it (`more`).
pub fn is_plain(name: &[u8], more: &[PlainField]) -> bool {
    PLAIN.contains(&name)
        || PLAIN_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || more.iter().any(|field| field.0.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_plain_on_the_operators_word_unless_a_response_may_hang_on_it() {
        for (name, expected) in [
            ("test-id", Ok(())),
            ("x-app-version", Ok(())),
            ("hx", Ok(())),
            ("", Err(Unfit::Name)),
            ("Test-ID", Err(Unfit::Name)),
            ("test id", Err(Unfit::Name)),
            ("test:id", Err(Unfit::Name)),
            (":path", Err(Unfit::Name)),
            ("range", Err(Unfit::Judged)),
            ("if-none-match", Err(Unfit::Judged)),
            ("cache-control", Err(Unfit::Judged)),
            ("pragma", Err(Unfit::Judged)),
            ("host", Err(Unfit::Judged)),
            ("accept", Err(Unfit::Judged)),
            ("x-longhaul-own", Err(Unfit::Judged)),
            ("cookie", Err(Unfit::Credential)),
            ("authorization", Err(Unfit::Credential)),
            ("x-auth-token", Err(Unfit::Credential)),
            ("accept-language", Err(Unfit::Chooses)),
            ("accept-datetime", Err(Unfit::Chooses)),
            ("x-forwarded-host", Err(Unfit::Chooses)),
            ("x-original-url", Err(Unfit::Chooses)),
            ("x-http-method-override", Err(Unfit::Chooses)),
        ] {
            assert_eq!(PlainField::new(name).map(|_| ()), expected, "{name}");
        }
        assert_eq!(PlainField::new(&"x".repeat(NAME_BYTES + 1)), Err(Unfit::Name));
    }

    #[test]
    fn a_field_that_may_choose_a_response_must_be_named_by_vary() {
        let own = [PlainField::new("test-id").unwrap()];
        for (name, vary, expected) in [
            ("x-forwarded-host", &[][..], true),
            ("x-forwarded-host", &["x-forwarded-host"], false),
            ("x-original-url", &["accept"], true),
            ("x-requested-with", &[], true),
            ("test-id", &[], false),
            ("range", &[], false),
            ("if-none-match", &[], false),
            ("user-agent", &[], false),
            ("x-longhaul-scheme", &[], false),
        ] {
            let vary: Vec<_> = vary.iter().map(|name| name.as_bytes().to_vec()).collect();
            let request: Fields<'_> = [(&b":path"[..], &b"/"[..]), (name.as_bytes(), b"x")].into_iter().collect();
            assert_eq!(is_unkeyed(&request, &vary, &own), expected, "{name}");
        }
    }

    #[test]
    fn a_filter_refuses_what_the_file_would() {
        assert!(serde_json::from_str::<PlainField>("\"test-id\"").is_ok());
        assert!(serde_json::from_str::<PlainField>("\"cookie\"").is_err());
    }
}
