//! Bodies of the origin, as they arrive.

use std::io;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use crate::body::CHUNK;

/// A body of the origin.
pub(crate) struct Source {
    body: Incoming,
    /// An error behind bytes that were given first.
    failed: Option<io::Error>,
}

impl Source {
    pub(crate) fn new(body: Incoming) -> Self {
        Self { body, failed: None }
    }

    /// Returns the next bytes of the body: all that have arrived, up to a chunk. None at its end.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        let Some(first) = self.frame().await? else { return Ok(None) };
        let mut gathered: Vec<u8> = Vec::new();
        while first.len().saturating_add(gathered.len()) < CHUNK {
            let more = tokio::select! {
                biased;
                more = self.frame() => more,
                () = std::future::ready(()) => break,
            };
            match more {
                Ok(Some(more)) => gathered.extend_from_slice(&more),
                Ok(None) => break,
                Err(error) => {
                    self.failed = Some(error);
                    break;
                }
            }
        }
        Ok(Some(if gathered.is_empty() { first } else { [&first[..], &gathered].concat().into() }))
    }

    /// Returns the next frame with data. Trailers are not stored (RFC 9110 section 6.5.1). None at the end, and from then on.
    async fn frame(&mut self) -> io::Result<Option<Bytes>> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        while let Some(frame) = self.body.frame().await {
            match frame.map_err(io::Error::other)?.into_data() {
                Ok(data) if !data.is_empty() => return Ok(Some(data)),
                _ => {}
            }
        }
        Ok(None)
    }
}
