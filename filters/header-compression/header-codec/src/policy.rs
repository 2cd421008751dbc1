//! One table of how the codec treats each field. A field that it does not list is text of one site.
//!
//! `scope` is a matter of safety, not of size. Suppose that a value may be referred to from messages of another site.
//! Then an attacker who sees message sizes and makes the client send requests learns whether a guess of the whole value
//! is right. That is harmless only for values that browsers and servers send to everybody. So a name is `Client` only
//! if its values carry no secret.

/// The earlier messages that a value may come from. Messages of other clients are always out of reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All messages of the same client.
    Client,
    /// Messages of the same client and the same site (see [`crate::site`]).
    Site,
}

/// The structure of a value. It decides how a new value is coded and where it splits into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Words and punctuation.
    Text,
    /// A URL or its path. A segment or parameter is one token.
    Url,
    /// One cookie crumb. Its name and its value are one token each.
    Crumb,
    /// `Set-Cookie`: the cookie's name and value are one token each, and the attributes split like text.
    SetCookie,
    /// One token.
    Whole,
    /// A date (RFC 9110, 5.6.7).
    Date,
    /// A decimal number.
    Number,
}

impl Form {
    /// Returns true if repetition inside a long value may compress it. This is unsafe where a secret may stand beside
    /// text that an attacker chooses, as in the URL that a login redirects to. The size would reveal every repetition
    /// that the attacker guesses right.
    pub(crate) fn repeats_safely(self) -> bool {
        match self {
            Self::Text | Self::Date | Self::Number => true,
            Self::Url | Self::Crumb | Self::SetCookie | Self::Whole => false,
        }
    }
}

/// Other fields of earlier messages whose values are likely to return in this field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kin {
    /// None.
    None,
    /// The URLs of earlier requests.
    RequestUrls,
    /// Cookies that responses have set.
    SetCookies,
    /// `ETag` of earlier responses.
    Etags,
    /// `Last-Modified` of earlier responses.
    LastModified,
}

/// How the codec treats the fields of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) scope: Scope,
    pub(crate) form: Form,
    pub(crate) kin: Kin,
}

const fn policy(scope: Scope, form: Form, kin: Kin) -> Policy {
    Policy { scope, form, kin }
}

/// Returns the policy of a field name.
#[rustfmt::skip]
#[allow(clippy::match_same_arms)] // the arms differ in purpose
pub(crate) fn of(name: &[u8]) -> Policy {
    use {Form::{Crumb, Date, Number, SetCookie, Text, Url, Whole}, Scope::{Client, Site}};
    match name {
        // Requests and responses: values that describe the message and its connection.
        b"cache-control" | b"connection" | b"content-type" | b"content-encoding" | b"content-language" | b"pragma" | b"via"
            => policy(Client, Text, Kin::None),
        b"content-length" => policy(Client, Number, Kin::None),
        b"date" => policy(Client, Date, Kin::None),

        // Requests: values that a browser sends to everybody. Referer is safe, because a page cannot put another
        // origin's URL there.
        b":method" | b":scheme" | b":authority" | b"host"
        | b"accept" | b"accept-charset" | b"accept-encoding" | b"accept-language" | b"user-agent" | b"dnt" | b"origin"
        | b"priority" | b"purpose" | b"save-data" | b"te" | b"upgrade-insecure-requests" | b"x-requested-with"
        | b"sec-ch-ua" | b"sec-ch-ua-mobile" | b"sec-ch-ua-platform" | b"sec-gpc" | b"sec-purpose"
        | b"sec-fetch-dest" | b"sec-fetch-mode" | b"sec-fetch-site" | b"sec-fetch-user" | b"x-forwarded-proto"
            => policy(Client, Text, Kin::None),
        b"referer" => policy(Client, Url, Kin::RequestUrls),
        b":path" => policy(Site, Url, Kin::None),
        b"cookie" | b";cookie" => policy(Site, Crumb, Kin::SetCookies),
        b"if-none-match" => policy(Site, Whole, Kin::Etags),
        b"authorization" | b"proxy-authorization" | b"x-csrf-token" | b"x-xsrf-token" | b"x-api-key" | b"x-auth-token"
            => policy(Site, Whole, Kin::None),
        b"if-modified-since" => policy(Site, Date, Kin::LastModified),

        // Responses: values that servers and content networks send to everybody.
        b":status" | b"server" | b"vary" | b"accept-ranges" | b"x-cache" | b"p3p" | b"x-powered-by" | b"alt-svc"
        | b"keep-alive" | b"transfer-encoding" | b"x-content-type-options" | b"x-frame-options" | b"x-xss-protection"
        | b"referrer-policy" | b"permissions-policy" | b"strict-transport-security" | b"cross-origin-resource-policy"
        | b"cross-origin-opener-policy" | b"cross-origin-embedder-policy" | b"access-control-allow-origin"
        | b"access-control-allow-methods" | b"access-control-allow-headers" | b"access-control-allow-credentials"
        | b"access-control-max-age" | b"access-control-expose-headers" | b"timing-allow-origin" | b"nel"
        | b"cf-cache-status"
            => policy(Client, Text, Kin::None),
        b"age" => policy(Client, Number, Kin::None),
        b"expires" | b"last-modified" => policy(Client, Date, Kin::None),
        b"etag" => policy(Site, Whole, Kin::None),
        b"set-cookie" => policy(Site, SetCookie, Kin::None),
        b"location" | b"content-location" => policy(Site, Url, Kin::None),

        _ => policy(Site, Text, Kin::None),
    }
}

/// Returns true if a field belongs to one hop and must not cross an HTTP/2 pipe (RFC 9113, 8.2.2). The codec leaves
/// such fields out; without it the proxy would drop them too.
pub fn is_hop_by_hop(name: &[u8]) -> bool {
    matches!(name, b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade")
}
