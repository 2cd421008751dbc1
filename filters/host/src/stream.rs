//! One request and its response, as a filter sees them: callbacks in the order of the proxy.

/// The treatment of the part of a stream that a callback has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It passes on.
    Continue,
    /// The proxy holds it, until [`crate::context`] releases it or [`crate::reply`] ends the stream.
    Pause,
}

/// The state of one stream. The proxy drops it when the stream has ended, in whatever way.
pub trait HttpStream {
    /// The headers of the request have arrived. Without a body, `end_of_stream` is true.
    fn request_headers(&mut self, _end_of_stream: bool) -> Action {
        Action::Continue
    }

    /// The headers of the response have arrived.
    fn response_headers(&mut self, _end_of_stream: bool) -> Action {
        Action::Continue
    }

    /// The proxy holds `size` bytes of the response's body: those of this callback, behind those of earlier callbacks that
    /// returned [`Action::Pause`]. It may return that only where [`crate::body::may_hold`] says so.
    fn response_body(&mut self, _size: usize, _end_of_stream: bool) -> Action {
        Action::Continue
    }

    /// The response ends with trailers, without a last piece of its body.
    fn response_trailers(&mut self) -> Action {
        Action::Continue
    }

    /// A request that one of the stream's callbacks sent has ended; [`crate::callout::ending`] tells how.
    fn callout_ended(&mut self, _header_count: usize, _body_bytes: usize) {}
}
