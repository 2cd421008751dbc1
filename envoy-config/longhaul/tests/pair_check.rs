//! `longhaul pair check` of a remote against a ground with another TLS library: each way to fail, and success.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::convert::Infallible;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

const DAY: Duration = Duration::from_hours(24);

/// A certificate and its key, in PEM.
struct Pem {
    certificate: String,
    key: String,
}

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate for `name`, valid for two days from `from` on.
    fn issue(&self, name: &str, from: SystemTime) -> Pem {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.not_before, params.not_after) = (from.into(), (from + 2 * DAY).into());
        Pem { certificate: params.signed_by(&key, &self.0).unwrap().pem(), key: key.serialize_pem() }
    }
}

fn valid() -> SystemTime {
    SystemTime::now() - DAY
}

fn expired() -> SystemTime {
    SystemTime::now() - 10 * DAY
}

fn to_come() -> SystemTime {
    SystemTime::now() + 10 * DAY
}

/// Serves as a ground until the test ends, with a clock that is `ahead_s` ahead. Returns its port.
fn ground(own: &Pem, trusted: &Authority, ahead_s: i64) -> u16 {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.0.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build().unwrap();
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let acceptor = TlsAcceptor::from(Arc::new(config));
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let answer =
                        service_fn(move |request| std::future::ready(Ok::<_, Infallible>(answer(&request, ahead_s))));
                    let _ = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), answer)
                        .await;
                });
            }
        });
    });
    port
}

fn answer(request: &Request<hyper::body::Incoming>, ahead_s: i64) -> Response<Empty<Bytes>> {
    assert_eq!(request.uri().authority().map(ToString::to_string).as_deref(), Some("hold.pair.invalid:1"));
    let time = match u64::try_from(ahead_s) {
        Ok(ahead) => SystemTime::now() + Duration::from_secs(ahead),
        Err(_) => SystemTime::now() - Duration::from_secs(ahead_s.unsigned_abs()),
    };
    Response::builder().status(204).header("date", httpdate::fmt_http_date(time)).body(Empty::new()).unwrap()
}

/// Runs the check of a remote that dials `port`. Returns the exit code and the output.
fn check(folder: &Path, port: u16, own: &Pem, trusted: &[&Authority]) -> (i32, String) {
    let authorities: String = trusted.iter().map(|authority| authority.0.pem()).collect();
    for (file, text) in [("ship.pem", &own.certificate), ("ship.key", &own.key), ("ca.pem", &authorities)] {
        fs::write(folder.join(file), text).unwrap();
    }
    let split = format!("split: {{ peer: '127.0.0.1:{port}', cert: ship.pem, key: ship.key, ca: ca.pem }}\n");
    run(folder, &format!("role: remote\nproxy: {{ addresses: [192.0.2.1] }}\n{split}"))
}

fn run(folder: &Path, config: &str) -> (i32, String) {
    let file = folder.join("longhaul.yaml");
    fs::write(&file, format!("link: {{ rtt: 20ms, down: 20mbit, up: 5mbit }}\n{config}")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_longhaul")).args(["pair", "check"]).arg(&file).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (output.status.code().unwrap(), text)
}

/// Returns the only problem of an output.
fn problem((code, text): &(i32, String)) -> &str {
    assert_eq!(*code, 1, "{text}");
    let problems: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("problem  ")).collect();
    let [problem] = problems.as_slice() else { panic!("{text}") };
    problem
}

#[test]
fn two_ends_that_accept_each_other_are_compared_by_their_clocks() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let (ship, own) = (authority.issue("ship.test", valid()), authority.issue("127.0.0.1", valid()));
    let (code, text) = check(folder.path(), ground(&own, &authority, 0), &ship, &[&authority]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("the ground accepts the certificate of this remote"), "{text}");
    assert!(text.contains("the clocks of both ends agree"), "{text}");

    let behind = check(folder.path(), ground(&own, &authority, -3_630), &ship, &[&authority]);
    assert!(problem(&behind).starts_with("the clock of the ground is 1 h 0 min"), "{}", problem(&behind));
    assert!(problem(&behind).contains("behind"));
}

#[test]
fn a_certificate_of_the_ground_is_refused_for_a_reason() {
    let (folder, authority, other) = (tempfile::tempdir().unwrap(), Authority::new(), Authority::new());
    let ship = authority.issue("ship.test", valid());
    let refused = |own: &Pem| check(folder.path(), ground(own, &authority, 0), &ship, &[&authority]);
    let who = "this remote refuses the certificate of the ground: ";
    for (own, why) in [
        (authority.issue("127.0.0.1", expired()), "it has expired by the clock of the remote"),
        (authority.issue("127.0.0.1", to_come()), "it is not valid yet by the clock of the remote"),
        (other.issue("127.0.0.1", valid()), "no authority in `split.ca` of the remote has signed it"),
        (authority.issue("127.0.0.2", valid()), "it has no name that `split.peer` of the remote lists"),
    ] {
        let said = refused(&own);
        assert!(problem(&said).starts_with(&format!("{who}{why}")), "{}", said.1);
    }
    // The clocks are compared although the certificate is refused.
    let (_, text) = refused(&authority.issue("127.0.0.1", expired()));
    assert!(text.contains("the clocks of both ends agree"), "{text}");
}

#[test]
fn a_certificate_of_the_remote_is_refused_for_a_reason() {
    let (folder, authority, other) = (tempfile::tempdir().unwrap(), Authority::new(), Authority::new());
    let own = authority.issue("127.0.0.1", valid());
    let port = ground(&own, &authority, 0);
    let said = check(folder.path(), port, &other.issue("ship.test", valid()), &[&authority, &other]);
    let expected = "the ground refuses the certificate of this remote: no authority in `split.ca` of the ground";
    assert!(problem(&said).starts_with(expected), "{}", said.1);

    let (code, text) = check(folder.path(), port, &authority.issue("ship.test", expired()), &[&authority]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("the ground refuses the certificate of this remote: it has expired"), "{text}");
    assert!(text.contains("and this machine's clock says"), "{text}");
}

#[test]
fn a_ground_that_is_not_there_is_no_question_of_certificates() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let ship = authority.issue("ship.test", valid());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || drop(listener.accept()));
    let other = check(folder.path(), port, &ship, &[&authority]);
    assert!(problem(&other).starts_with("no TLS handshake with 127.0.0.1:"), "{}", other.1);

    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let refused = check(folder.path(), gone, &ship, &[&authority]);
    assert!(problem(&refused).contains("refuses TCP connections. Start `longhaul` on the ground"), "{}", refused.1);
}

#[test]
fn an_end_that_is_dialled_checks_its_files_and_names_the_command_for_the_other_end() {
    let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
    let own = authority.issue("127.0.0.1", valid());
    for (file, text) in [("me.pem", &own.certificate), ("me.key", &own.key), ("ca.pem", &authority.0.pem())] {
        fs::write(folder.path().join(file), text).unwrap();
    }
    let (code, text) = run(
        folder.path(),
        &format!(
            "role: ground\nupstream: {{ resolvers: [192.0.2.53] }}\ncache: {{ dir: {} }}\nsplit: {{ peer: [ship.test], cert: me.pem, key: me.key, ca: ca.pem }}\n",
            folder.path().display()
        ),
    );
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("me.pem for 127.0.0.1 is valid until"), "{text}");
    assert!(text.contains("The remote dials, and this ground listens on 0.0.0.0:8443"), "{text}");
    assert!(text.contains("longhaul pair check FILE"), "{text}");
}
