//! TLS to a ground as the pipe does it, on a TCP connection that the caller made.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

use longhaul_config::{HostPort, Identity, Settings};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::CheckError;
use super::credentials::Credentials;
use super::dial::{Dial, PIPE_URL};

/// A ground, and the credentials of this remote.
#[derive(Debug)]
pub(crate) struct Peer {
    at: HostPort,
    address: SocketAddr,
    own: Credentials,
}

impl Peer {
    /// Finds the first ground that accepts a connection. Each address may take `patience`.
    ///
    /// # Errors
    /// None does, or a certificate or key cannot be used: the reason in words.
    pub(crate) fn find(settings: &Settings, patience: Duration) -> Result<Self, String> {
        let identity = settings.role.identity().ok_or_else(|| CheckError::Edge.to_string())?;
        for at in settings.role.grounds() {
            let addresses = (at.host.bare(), at.port).to_socket_addrs();
            let accepts = |address: &SocketAddr| std::net::TcpStream::connect_timeout(address, patience).is_ok();
            if let Some(address) = addresses.into_iter().flatten().find(accepts) {
                let own = Credentials::read(identity).map_err(|error| error.to_string())?;
                return Ok(Self { at: at.clone(), address, own });
            }
        }
        Err("no ground accepts a connection".to_owned())
    }

    /// Returns the ground at `address`, whose certificate is for the host of `at`.
    ///
    /// # Errors
    /// A certificate or key cannot be used.
    pub(crate) fn at(at: HostPort, address: SocketAddr, identity: &Identity) -> Result<Self, CheckError> {
        Ok(Self { at, address, own: Credentials::read(identity)? })
    }

    /// Sends a GET of `url` on a connection of its own, and returns the status of the response. None if there is none. Each
    /// step may take `patience`.
    pub(crate) fn status(&self, url: &'static str, patience: Duration) -> Option<u16> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(self.dial(patience).status(url))
    }

    /// Returns the URL to which a ground responds without an origin.
    pub(crate) fn url() -> &'static str {
        PIPE_URL
    }

    /// Returns the address of the ground.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shakes hands within `patience`, for HTTP/2.
    ///
    /// # Errors
    /// The reason in words.
    pub(crate) async fn secure(&self, stream: TcpStream, patience: Duration) -> Result<TlsStream<TcpStream>, String> {
        self.dial(patience).secure(stream).await
    }

    fn dial(&self, patience: Duration) -> Dial<'_> {
        Dial { address: self.address, host: &self.at.host, own: &self.own, patience }
    }
}
