//! How each field is treated: one table. What is not in it is text of one site.
//!
//! `scope` is a matter of safety, not of size. A value that may be pointed at from another site's messages tells
//! whoever can see message sizes, and can make the client send requests of his choice, whether his guess of the whole
//! value is right. That is harmless for what browsers and servers say to everybody, and for nothing else; so a name is
//! `Client` only if its values carry no secret.

/// From which of one client's earlier messages a value may be taken. Messages of other clients are out of reach anyway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All of them.
    Client,
    /// Those of the same site only (see [`crate::site`]).
    Site,
}

/// What a value is made of; decides how a new one is spelt, and where it may be cut into tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Words and punctuation.
    Text,
    /// A URL or its path: segments and parameters are tokens, never parts of them.
    Url,
    /// One cookie crumb: name and value, each whole.
    Crumb,
    /// `Set-Cookie`: the cookie's name and value, each whole, then attributes as in text.
    SetCookie,
    /// Never cut.
    Whole,
    /// A date (RFC 9110, 5.6.7).
    Date,
    /// A decimal number.
    Number,
}

impl Form {
    /// Whether a long value may be compressed by what repeats inside it. Not where a secret may stand beside text that a
    /// stranger chooses, as in the URL a login is redirected to: every repetition guessed right would show in the size.
    pub(crate) fn repeats_safely(self) -> bool {
        match self {
            Self::Text | Self::Date | Self::Number => true,
            Self::Url | Self::Crumb | Self::SetCookie | Self::Whole => false,
        }
    }
}

/// Other messages' fields whose values are likely to come back in this one.
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

/// How the fields of one name are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Policy {
    pub(crate) scope: Scope,
    pub(crate) form: Form,
    pub(crate) kin: Kin,
}

const fn policy(scope: Scope, form: Form, kin: Kin) -> Policy {
    Policy { scope, form, kin }
}

/// The table.
#[rustfmt::skip]
#[allow(clippy::match_same_arms)] // kept apart by what they are for
pub(crate) fn of(name: &[u8]) -> Policy {
    use {Form::{Crumb, Date, Number, SetCookie, Text, Url, Whole}, Scope::{Client, Site}};
    match name {
        // Both ways: what the link and the machine look like.
        b"cache-control" | b"connection" | b"content-type" | b"content-encoding" | b"content-language" | b"pragma" | b"via"
            => policy(Client, Text, Kin::None),
        b"content-length" => policy(Client, Number, Kin::None),
        b"date" => policy(Client, Date, Kin::None),

        // Requests: what a browser sends to everybody. Referer: a page cannot make another origin's URL appear there.
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

        // Responses: what servers and content networks send to everybody.
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

/// Whether a field belongs to one hop and must not cross an HTTP/2 pipe (RFC 9113, 8.2.2). Such fields are not packed:
/// without us the proxy would have dropped them there too.
pub fn is_hop_by_hop(name: &[u8]) -> bool {
    matches!(name, b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade")
}
