//! The bounds on headers, buffers and windows, within what Envoy accepts. Each stands once, here.

use longhaul_config::{Bytes, Settings};

use super::capacity::Reasoned;
use super::value::Value;
use super::windows::{QUIC_CONNECTION_WINDOW_BYTES, QUIC_STREAM_WINDOW_BYTES, client_connection_window, http2_window};

/// The largest header block that Envoy accepts, in KiB.
const MAX_HEADER_KIB: u64 = 8192;
/// The most fields that a request of a client has. nginx and Apache take 100 and 200.
const REQUEST_FIELDS: u64 = 200;
/// The header of a response that browsers accept, in KiB: Chromium takes 256, Firefox 384.
const BROWSERS_HEADER_KIB: u64 = 256;
/// The header of a response that crosses a pipe, in KiB. Envoy's HTTP/2 ends a stream with a field of 96 KiB, and the
/// remote would send the request again and again.
const PIPES_HEADER_KIB: u64 = 92;
/// The most fields that a response of an origin has. Browsers have no such limit.
const RESPONSE_FIELDS: u64 = 1000;
/// The room for the fields that the hops add, in KiB and in fields. The outer hop enforces the limit. An inner hop with
/// the same limit would refuse a message that the outer hop made larger.
const ROOM_KIB: u64 = 16;
const ROOM_FIELDS: u64 = 32;

/// The bytes of a server that a remote holds while its client stalls for some seconds.
const UNREAD_BYTES: u64 = 1 << 20;

/// The most of a header that a hop accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderBound {
    /// KiB of header.
    pub kib: Reasoned<u64>,
    /// The number of fields.
    pub fields: u64,
}

/// The number of streams of a full pipe that Envoy reads from before it stops.
const STREAMS_IN_TURN: u64 = 16;

/// The bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounds {
    /// A request of a client.
    pub request: HeaderBound,
    /// A request between the hops, which add fields of their own.
    pub inner_request: HeaderBound,
    /// A response of an origin.
    pub response: HeaderBound,
    /// A response between the hops.
    pub inner_response: HeaderBound,
    /// The bytes that a listener buffers.
    pub listener_buffer: Reasoned<u64>,
    /// The bytes that a remote holds for a client whose connection passes unread.
    pub unread_buffer: Reasoned<u64>,
    /// The bytes that wait for the pipe at a ground with wasm filters.
    pub pipe_buffer: Reasoned<u64>,
    /// The window of a stream of HTTP/2, in bytes.
    pub stream_window: Reasoned<u64>,
    /// The window of a connection of HTTP/2, in bytes. At a remote it is that of the pipe.
    pub connection_window: Reasoned<u64>,
    /// The window of a connection from clients, in bytes.
    pub client_window: Reasoned<u64>,
    /// The window of a stream of QUIC, in bytes.
    pub quic_stream_window: Reasoned<u64>,
    /// The window of a connection of QUIC, in bytes.
    pub quic_connection_window: Reasoned<u64>,
    /// The bytes that one stream buffers, for HTTP/2 and HTTP/3 alike.
    pub stream_buffer: u64,
}

impl Bounds {
    pub(super) fn of(settings: &Settings, buffer: &Value<Bytes>, stream: &Value<Bytes>, pipe: &Value<Bytes>) -> Self {
        let header = settings.limits.header;
        let request_kib = header.0.div_ceil(1024).clamp(1, MAX_HEADER_KIB);
        let (most, whose) = if settings.role.is_alone() {
            (BROWSERS_HEADER_KIB, "that browsers accept")
        } else {
            (PIPES_HEADER_KIB, "that a field may have on a pipe")
        };
        let request =
            HeaderBound { kib: reasoned(request_kib, format!("limits.header_bytes {header}")), fields: REQUEST_FIELDS };
        let reason = format!("the larger of limits.header_bytes {header} and the {most} KiB {whose}");
        let response = HeaderBound { kib: reasoned(request_kib.max(most), reason), fields: RESPONSE_FIELDS };
        Self {
            inner_request: request.with_room(),
            inner_response: response.with_room(),
            request,
            response,
            listener_buffer: reasoned(
                buffer.value.0 * 2,
                "2 x connection_buffer: a chunk that a filter made longer fits, or its origin would be stopped and \
                 started again"
                    .to_owned(),
            ),
            unread_buffer: reasoned(
                UNREAD_BYTES.max(buffer.value.0),
                "1 MiB: what a slow client has not taken when its server ends. HTTP/2 drops what waits behind it"
                    .to_owned(),
            ),
            pipe_buffer: reasoned(
                buffer.value.0 * STREAMS_IN_TURN,
                format!(
                    "{STREAMS_IN_TURN} x connection_buffer: of a full pipe's streams, Envoy reads the same ones first each \
                     time. So there is room for a chunk of each"
                ),
            ),
            stream_window: reasoned(http2_window(stream.value.0), stream.comment()),
            connection_window: reasoned(http2_window(pipe.value.0), pipe.comment()),
            client_window: client_window(settings, stream, pipe),
            quic_stream_window: reasoned(stream.value.0.min(QUIC_STREAM_WINDOW_BYTES), stream.comment()),
            quic_connection_window: reasoned(pipe.value.0.min(QUIC_CONNECTION_WINDOW_BYTES), pipe.comment()),
            stream_buffer: http2_window(stream.value.0).min(QUIC_STREAM_WINDOW_BYTES),
        }
    }

    /// Returns the bounds that are not the value of a key: name, value and reason.
    #[must_use]
    pub fn rows(&self) -> Vec<[String; 3]> {
        let headers = [
            ("header of a request", &self.request),
            ("header of a request between the hops", &self.inner_request),
            ("header of a response", &self.response),
            ("header of a response between the hops", &self.inner_response),
        ];
        let header = |(name, bound): (&str, &HeaderBound)| {
            [name.to_owned(), format!("{}kib, {} fields", bound.kib.value, bound.fields), bound.kib.reason.clone()]
        };
        let buffers = [
            ("buffer of a listener", &self.listener_buffer),
            ("buffer of a client's unread bytes", &self.unread_buffer),
            ("buffer of a ground's pipe, wasm filters", &self.pipe_buffer),
            ("window of a client's connection", &self.client_window),
            ("window of a QUIC stream", &self.quic_stream_window),
            ("window of a QUIC connection", &self.quic_connection_window),
        ];
        let buffer = |(name, bound): (&str, &Reasoned<u64>)| {
            [name.to_owned(), Bytes(bound.value).to_string(), bound.reason.clone()]
        };
        headers.into_iter().map(header).chain(buffers.into_iter().map(buffer)).collect()
    }
}

impl HeaderBound {
    fn with_room(&self) -> Self {
        Self {
            kib: reasoned(
                (self.kib.value + ROOM_KIB).min(MAX_HEADER_KIB),
                format!("the same, and {ROOM_KIB} KiB and {ROOM_FIELDS} fields that the hops add"),
            ),
            fields: self.fields + ROOM_FIELDS,
        }
    }
}

fn reasoned(value: u64, reason: String) -> Reasoned<u64> {
    Reasoned { value, reason }
}

/// Returns the window of a connection from clients. At a remote, `connection_window` is that of the pipe.
fn client_window(settings: &Settings, stream: &Value<Bytes>, pipe: &Value<Bytes>) -> Reasoned<u64> {
    if !settings.role.stands_beside_clients() {
        return reasoned(http2_window(pipe.value.0), pipe.comment());
    }
    let window = client_connection_window(stream.value).0.min(pipe.value.0);
    reasoned(http2_window(window), "4 x stream_window: the connection of one client".to_owned())
}
