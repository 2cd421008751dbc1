//! The frames of HTTP/2 that measure a path: many pings at once, whose acknowledgements come back at once (RFC 9113
//! section 6.7).
//!
//! The pings fill packets on the way there, and their acknowledgements fill packets on the way back. Every release of
//! Longhaul responds to them.

use std::io;
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The pings that are sent at once: 17 bytes each, so that they fill two packets of Ethernet. Envoy closes a connection
/// with more than 1000 acknowledgements to send.
const PINGS: usize = 200;
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
/// The longest frame that a peer sends without leave (RFC 9113 section 4.2).
const LONGEST: usize = 1 << 14;

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u8::try_from(payload.len()).unwrap_or(u8::MAX);
    [&[0, 0, length, kind, flags, 0, 0, 0, 0], payload].concat()
}

/// Sends one ping and then many at once. Returns the round trip of the first one, after all of them came back.
pub(super) async fn round_trip<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<Duration> {
    let ping = frame(PING, 0, b"longhaul");
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, &[]), &ping].concat()).await?;
    stream.flush().await?;
    let sent = Instant::now();
    acknowledged(stream, 1).await?;
    let took = sent.elapsed();
    stream.write_all(&ping.repeat(PINGS)).await?;
    stream.flush().await?;
    acknowledged(stream, PINGS).await?;
    Ok(took)
}

/// Reads frames until so many pings are acknowledged.
async fn acknowledged<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, mut missing: usize) -> io::Result<()> {
    while missing > 0 {
        let mut header = [0; 9];
        stream.read_exact(&mut header).await?;
        let [high, middle, low, kind, flags, ..] = header;
        let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        if length > LONGEST {
            return Err(io::Error::other("it does not speak HTTP/2"));
        }
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await?;
        match (kind, flags & ACK) {
            (SETTINGS, 0) => {
                stream.write_all(&frame(SETTINGS, ACK, &[])).await?;
                stream.flush().await?;
            }
            (PING, ACK) => missing -= 1,
            (GOAWAY, _) => return Err(io::Error::other("it closed the connection")),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_round_trip_ends_with_the_last_acknowledgement() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut ours, mut theirs) = tokio::io::duplex(1 << 16);
            let server = tokio::spawn(async move {
                let mut preface = vec![0; PREFACE.len() + 9];
                theirs.read_exact(&mut preface).await.unwrap();
                theirs.write_all(&frame(SETTINGS, 0, &[0, 3, 0, 0, 0, 100])).await.unwrap();
                let mut pings = 0;
                while pings <= PINGS {
                    let mut header = [0; 9];
                    theirs.read_exact(&mut header).await.unwrap();
                    let mut payload = vec![0; usize::from(header[2])];
                    theirs.read_exact(&mut payload).await.unwrap();
                    if header[3] == PING {
                        pings += 1;
                        theirs.write_all(&frame(PING, ACK, &payload)).await.unwrap();
                    }
                }
            });
            round_trip(&mut ours).await.unwrap();
            server.await.unwrap();
            // The other end is gone.
            assert!(round_trip(&mut ours).await.is_err());
        });
    }
}
