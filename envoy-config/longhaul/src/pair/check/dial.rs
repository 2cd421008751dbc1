//! The attempt itself: resolve, connect, shake hands, read the clock.
//!
//! With TLS 1.3, a client learns after the handshake that its certificate was refused: the alert comes in place of the
//! first response.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::{DATE, HeaderMap};
use hyper_util::rt::{TokioExecutor, TokioIo};
use longhaul_config::{Host, HostPort};
use rustls::pki_types::{ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::credentials::Credentials;
use super::trust::Judge;
use super::{Clock, Outcome, Reason, Shown, Unreached};

/// The URL of the health check of a remote (`rds_pipe.yaml`).
pub(super) const PIPE_URL: &str = "https://hold.pair.invalid:1/";
/// Envoy rounds `Date` down to a second, and renews it twice a second.
const DATE_LAG_MS: i64 = 1_500;

/// The result of a handshake that failed.
enum Failed {
    Theirs { error: CertificateError, shown: Shown },
    Ours(Reason),
    Other(String),
}

/// Tries every address of `at` until one accepts a TCP connection. Each step may take `patience`.
pub(super) async fn attempt(at: &HostPort, own: &Credentials, patience: Duration) -> Outcome {
    let addresses: Vec<SocketAddr> = match (at.host.bare(), at.port).to_socket_addrs() {
        Ok(addresses) => addresses.collect(),
        Err(error) => return Outcome::Unresolved(error.to_string()),
    };
    let mut last = Outcome::Unresolved("it has no address".to_owned());
    for address in addresses {
        match connect(address, patience).await {
            Ok(stream) => return Dial { address, host: &at.host, own, patience }.shake(stream).await,
            Err(why) => last = Outcome::Unreached { address, why },
        }
    }
    last
}

async fn connect(address: SocketAddr, patience: Duration) -> Result<TcpStream, Unreached> {
    match timeout(patience, TcpStream::connect(address)).await {
        Err(_) => Err(Unreached::TimedOut(patience)),
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Err(Unreached::Refused),
        Ok(Err(error)) => Err(Unreached::Other(error.to_string())),
    }
}

/// Returns a time at which a certificate is valid that is not valid now.
fn valid_at(error: &CertificateError) -> Option<UnixTime> {
    match error {
        CertificateError::ExpiredContext { not_after, .. } => Some(*not_after),
        CertificateError::NotValidYetContext { not_before, .. } => Some(*not_before),
        _ => None,
    }
}

/// An attempt at one address of a ground.
pub(super) struct Dial<'a> {
    pub(super) address: SocketAddr,
    pub(super) host: &'a Host,
    pub(super) own: &'a Credentials,
    pub(super) patience: Duration,
}

impl Dial<'_> {
    /// Shakes hands on a new connection.
    pub(super) async fn secure(&self, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
        self.handshake(stream, None).await.map(|(stream, _)| stream).map_err(|failed| match failed {
            Failed::Theirs { error, .. } => error.to_string(),
            Failed::Ours(why) => why.words("ground"),
            Failed::Other(why) => why,
        })
    }

    /// Sends a GET of `url` on a new connection, and returns the status of the response. None if there is none.
    pub(super) async fn status(&self, url: &'static str) -> Option<u16> {
        let stream = connect(self.address, self.patience).await.ok()?;
        let stream = self.secure(stream).await.ok()?;
        let response = timeout(self.patience, get(stream, url)).await.ok()?.ok()?;
        Some(response.head.status.as_u16())
    }

    async fn shake(&self, stream: TcpStream) -> Outcome {
        let address = self.address;
        match self.handshake(stream, None).await {
            Ok((stream, shown)) => match self.response(stream).await {
                Ok((round_trip, clock)) => Outcome::Connected { address, round_trip, shown, clock },
                Err(why) => self.refusal(shown, why).await,
            },
            Err(Failed::Theirs { error, shown }) => {
                let clock = match valid_at(&error) {
                    Some(at) => self.clock_at(at).await,
                    None => None,
                };
                Outcome::TheirsRefused { address, why: Reason::of_error(&error), shown, clock }
            }
            Err(Failed::Ours(why)) => Outcome::OursRefused { address, why, shown: Shown::default() },
            Err(Failed::Other(why)) => Outcome::NoHandshake { address, why },
        }
    }

    /// Shakes hands on a new connection. `at` is the time at which to judge the other end's certificate, if not now.
    async fn handshake(
        &self,
        stream: TcpStream,
        at: Option<UnixTime>,
    ) -> Result<(TlsStream<TcpStream>, Shown), Failed> {
        let other = |error: &dyn std::fmt::Display| Failed::Other(error.to_string());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let judge = Judge::new(self.own.authorities.clone(), provider.clone(), self.host, at).map_err(Failed::Other)?;
        let judge = Arc::new(judge);
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| other(&error))?
            .dangerous()
            .with_custom_certificate_verifier(judge.clone())
            .with_client_auth_cert(self.own.chain.clone(), self.own.key.clone_key())
            .map_err(|error| other(&error))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        let name = match self.host {
            Host::Name(name) => ServerName::try_from(name.to_string()).map_err(|error| other(&error))?,
            Host::Address(address) => ServerName::from(*address),
        };
        let connector = TlsConnector::from(Arc::new(config));
        match timeout(self.patience, connector.connect(name, stream)).await {
            Err(_) => Err(Failed::Other(format!("no TLS response within {} s", self.patience.as_secs()))),
            Ok(Ok(stream)) => Ok((stream, judge.seen())),
            Ok(Err(error)) => Err(match tls_error(&error) {
                Some(rustls::Error::InvalidCertificate(error)) => {
                    Failed::Theirs { error: error.clone(), shown: judge.seen() }
                }
                Some(rustls::Error::AlertReceived(alert)) => {
                    Reason::of_alert(*alert).map_or_else(|| other(&error), Failed::Ours)
                }
                _ => other(&error),
            }),
        }
    }

    /// Sends a request, and returns the round-trip time and the other end's clock.
    async fn response(&self, stream: TlsStream<TcpStream>) -> Result<(Duration, Option<Clock>), String> {
        match timeout(self.patience, get(stream, PIPE_URL)).await {
            Ok(Ok(Response { head, sent, took })) => Ok((took, clock_of(&head.headers, sent, took))),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no response within {} s", self.patience.as_secs())),
        }
    }

    /// Finds out why the other end did not respond. Another connection sends nothing, so nothing can hide the alert.
    async fn refusal(&self, shown: Shown, why: String) -> Outcome {
        let address = self.address;
        if let Ok(stream) = connect(address, self.patience).await
            && let Ok((mut stream, _)) = self.handshake(stream, None).await
            && let Ok(Err(error)) = timeout(self.patience, stream.read_u8()).await
            && let Some(rustls::Error::AlertReceived(alert)) = tls_error(&error)
            && let Some(why) = Reason::of_alert(*alert)
        {
            return Outcome::OursRefused { address, why, shown };
        }
        Outcome::Silent { address, why }
    }

    /// Reads the other end's clock although its certificate is not valid now.
    async fn clock_at(&self, at: UnixTime) -> Option<Clock> {
        let stream = connect(self.address, self.patience).await.ok()?;
        let (stream, _) = self.handshake(stream, Some(at)).await.ok()?;
        self.response(stream).await.ok()?.1
    }
}

fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// The head of a response.
struct Response {
    head: hyper::http::response::Parts,
    sent: SystemTime,
    took: Duration,
}

async fn get(stream: TlsStream<TcpStream>, url: &'static str) -> hyper::Result<Response> {
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    let (began, sent) = (Instant::now(), SystemTime::now());
    let mut request = hyper::Request::new(Empty::<Bytes>::new());
    *request.uri_mut() = hyper::Uri::from_static(url);
    let response = sender.send_request(request).await?;
    Ok(Response { head: response.into_parts().0, sent, took: began.elapsed() })
}

/// Returns the other end's clock from the field `Date` of a response to a request that was sent at `sent`.
fn clock_of(headers: &HeaderMap, sent: SystemTime, took: Duration) -> Option<Clock> {
    let date = httpdate::parse_http_date(headers.get(DATE)?.to_str().ok()?).ok()?;
    let half_ms = millis(took) / 2;
    let theirs = unix_ms(date) + DATE_LAG_MS / 2;
    Some(Clock { ahead_ms: theirs - unix_ms(sent) - half_ms, within_ms: DATE_LAG_MS / 2 + half_ms })
}

fn unix_ms(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => millis(since),
        Err(before) => -millis(before.duration()),
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_compared_at_the_middle_of_the_round_trip() {
        let mut headers = HeaderMap::new();
        headers.insert(DATE, "Sun, 22 Nov 2026 10:00:10 GMT".parse().unwrap());
        let sent = httpdate::parse_http_date("Sun, 22 Nov 2026 10:00:00 GMT").unwrap();
        let clock = clock_of(&headers, sent, Duration::from_millis(600)).unwrap();
        assert_eq!(clock, Clock { ahead_ms: 10_450, within_ms: 1_050 });
        assert_eq!(clock_of(&HeaderMap::new(), sent, Duration::ZERO), None);
    }
}
