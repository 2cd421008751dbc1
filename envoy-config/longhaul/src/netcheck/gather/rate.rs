//! The rate towards the ground: requests with large headers, to which it responds at once.

use std::time::{Duration, Instant};

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::HeaderValue;
use hyper_util::rt::{TokioExecutor, TokioIo};
use longhaul_config::Rate;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::pair::Peer;

/// The time of the configured rate that is sent.
const LOAD: Duration = Duration::from_millis(1500);
/// The bounds of all that is sent, in bytes.
const LEAST_BYTES: u64 = 32 << 10;
const MOST_BYTES: u64 = 1 << 20;
/// The requests, and the most of one: less than a ground accepts by default, with its other fields.
const REQUESTS: u64 = 24;
const MOST_HEADER: u64 = 40 << 10;
/// The time after which the responses that came so far count.
const PATIENCE: Duration = Duration::from_secs(5);

/// Measures the rate towards the ground of `peer`, over a link with the rate `up`.
///
/// # Errors
/// The reason in words.
pub(crate) fn rate(peer: &Peer, up: Rate) -> Result<Rate, String> {
    let all = up.bytes_in(LOAD).clamp(LEAST_BYTES, MOST_BYTES);
    let each = (all / REQUESTS).min(MOST_HEADER);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let times = runtime.block_on(send(peer, each))?;
    rate_of(&times, each).ok_or_else(|| format!("{} of {REQUESTS} responses came in time", times.len()))
}

/// Returns the times of the responses since the first request.
async fn send(peer: &Peer, bytes: u64) -> Result<Vec<Duration>, String> {
    let connect = async {
        let stream = TcpStream::connect(peer.address()).await.map_err(|error| error.to_string())?;
        let stream = peer.secure(stream, PATIENCE).await?;
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())
    };
    let (mut sender, connection) = timeout(PATIENCE, connect).await.map_err(|_| "timed out".to_owned())??;
    tokio::spawn(connection);
    let began = Instant::now();
    let mut responses = JoinSet::new();
    for _ in 0..REQUESTS {
        let response = sender.send_request(request(bytes)?);
        responses.spawn(async move { response.await.map(|_| began.elapsed()) });
    }
    let mut times = Vec::new();
    let all = async {
        while let Some(response) = responses.join_next().await {
            times.extend(response.ok().and_then(Result::ok));
        }
    };
    let _ = timeout(PATIENCE, all).await;
    Ok(times)
}

/// A character whose code in HPACK has eight bits, so that a field has its length on the link, too.
const EIGHT_BITS: u8 = b'X';

fn request(bytes: u64) -> Result<hyper::Request<Empty<Bytes>>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let load = vec![EIGHT_BITS; usize::try_from(bytes).unwrap_or(0)];
    let mut value = HeaderValue::from_bytes(&load).map_err(|error| text(&error))?;
    // HPACK does not index it.
    value.set_sensitive(true);
    hyper::Request::builder().uri(Peer::url()).header("x-load", value).body(Empty::new()).map_err(|error| text(&error))
}

/// Returns the rate of the later half of the responses, when the congestion window is open. None if there are too few.
fn rate_of(times: &[Duration], bytes: u64) -> Option<Rate> {
    let mut times = times.to_vec();
    times.sort_unstable();
    let later = times.len() / 2;
    let (first, last) = (times.get(later.checked_sub(1)?)?, times.last()?);
    let responses = u64::try_from(times.len() - later).ok()?;
    let took_us = u64::try_from(last.saturating_sub(*first).as_micros()).ok()?.max(1);
    let bits = bytes.saturating_mul(responses).saturating_mul(8);
    Some(Rate { bits_per_second: bits.saturating_mul(1_000_000) / took_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_later_half() {
        let times: Vec<Duration> = [900, 1000, 1100, 1200, 1300, 1400].map(Duration::from_millis).into();
        // Three responses of 12500 bytes in 0.3 s.
        assert_eq!(rate_of(&times, 12_500), Some(Rate { bits_per_second: 1_000_000 }));
        assert_eq!(rate_of(&times[..1], 12_500), None);
        assert_eq!(rate_of(&[], 12_500), None);
    }
}
