//! Certificates made for one test, and TLS with them at either end.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::envoy::PATIENCE;

/// A certificate authority of the test.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key.
#[derive(Clone)]
pub(crate) struct Identity {
    chain_pem: String,
    key_pem: String,
    server: Arc<ServerConfig>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        // A leaf that bore the same name would be taken for self-signed.
        params.distinguished_name.push(DnType::CommonName, "the test's authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("a certificate authority") }
    }

    /// A certificate for these names or addresses.
    pub(crate) fn issue(&self, names: &[&str]) -> Identity {
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let certificate = params.expect("names").signed_by(&key, &self.issuer).expect("a certificate");
        let der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let server = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], der)
            .expect("a server's configuration");
        Identity { chain_pem: certificate.pem(), key_pem: key.serialize_pem(), server: Arc::new(server) }
    }

    /// Writes the authority's certificate for Envoy to trust.
    pub(crate) fn write(&self, to: &Path) -> PathBuf {
        fs::write(to, self.issuer.pem()).expect("the authority is written");
        to.to_owned()
    }

    fn root(&self) -> CertificateDer<'static> {
        self.issuer.der().clone()
    }
}

impl Identity {
    /// Writes `name.pem` and `name.key` into `folder`, by renames, as certificates are renewed.
    pub(crate) fn write(&self, folder: &Path, name: &str) {
        for (end, text) in [("pem", &self.chain_pem), ("key", &self.key_pem)] {
            let new = folder.join(format!("{name}.{end}.new"));
            fs::write(&new, text).expect("the certificate is written");
            fs::rename(new, folder.join(format!("{name}.{end}"))).expect("the certificate is put in place");
        }
    }

    pub(crate) fn accept(&self, stream: TcpStream) -> io::Result<StreamOwned<ServerConnection, TcpStream>> {
        let connection = ServerConnection::new(self.server.clone()).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, stream))
    }
}

/// A TLS connection from a client.
pub(crate) type Tls = StreamOwned<ClientConnection, TcpStream>;

/// Connects to `to` with the server name `name` and finishes the handshake. For an address no name is sent.
pub(crate) fn connect(to: SocketAddr, name: &str, trust: &Authority, alpn: &[&str]) -> io::Result<Tls> {
    connect_on(TcpStream::connect(to)?, name, trust, alpn)
}

/// As [`connect`], on an open connection.
pub(crate) fn connect_on(stream: TcpStream, name: &str, trust: &Authority, alpn: &[&str]) -> io::Result<Tls> {
    let mut roots = RootCertStore::empty();
    roots.add(trust.root()).map_err(io::Error::other)?;
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let connection = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut tls = StreamOwned::new(connection, stream);
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock)?;
    }
    Ok(tls)
}

/// The application protocol of the handshake.
pub(crate) fn protocol(tls: &Tls) -> Option<String> {
    tls.conn.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned())
}

/// Reads the server's bytes until it closes. An error is the end, too.
pub(crate) fn drain(stream: &mut (impl Read + Write)) -> Vec<u8> {
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    all
}
