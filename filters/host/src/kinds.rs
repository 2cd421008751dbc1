//! The names that the calls of both back ends take. Their numbers are those of the proxy-wasm ABI 0.2.1.

/// Names a header map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Map {
    /// Headers of the request; can be edited in the request headers callback.
    Request = 0,
    /// Trailers of the request.
    RequestTrailers = 1,
    /// Headers of the response; can be edited until they have been sent, in the response headers callback.
    Response = 2,
    /// Trailers of the response.
    ResponseTrailers = 3,
    /// Headers of the response to a [`callout`](crate::callout), in its callback.
    CalloutResponse = 6,
}

/// Names a buffer of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Buffer {
    /// Body of the request, in its body callback.
    RequestBody = 0,
    /// Body of the response, in its body callback.
    ResponseBody = 1,
    /// Body of the response to a [`callout`](crate::callout), in its callback.
    CalloutResponseBody = 4,
    /// The plugin's configuration, in the configure callback.
    PluginConfiguration = 7,
}

/// Severity of a line. The host drops lines below its own level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Level {
    /// For developers.
    Debug = 1,
    /// Once for each start or change.
    Info = 2,
    /// A fault that the filter handled.
    Warn = 3,
    /// An operator must act.
    Error = 4,
    /// The module is about to die.
    Critical = 5,
}

/// Names a half of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Half {
    /// From the client.
    Request = 0,
    /// To the client.
    Response = 1,
}
