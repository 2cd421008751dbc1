//! `longhaul pair`: `longhaul check` accepts its files, and another TLS library accepts its certificates.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection};

const GIVEN: [&str; 10] =
    ["--rtt", "600ms", "--down", "20mbit", "--up", "5mbit", "--clients", "192.0.2.1", "--resolver", "192.0.2.53"];

fn longhaul(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_longhaul")).args(arguments).current_dir(folder).output().unwrap()
}

/// Runs `longhaul pair`, which must succeed, and returns its output.
fn pair(folder: &Path, arguments: &[&str]) -> String {
    let output = longhaul(folder, &[&["pair"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Runs `longhaul pair`, which must fail with status `code`, and returns its message.
fn refused(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = longhaul(folder, &[&["pair"], arguments].concat());
    assert_eq!(output.status.code(), Some(code));
    String::from_utf8(output.stderr).unwrap()
}

fn init(folder: &Path, name: &str, ground: &str) -> String {
    pair(folder, &[&["init", name, ground], GIVEN.as_slice()].concat())
}

struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    roots: Arc<RootCertStore>,
}

fn identity(folder: &Path, end: &str) -> Identity {
    let at = |name: &str| folder.join("pair").join(end).join(name);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(at("pair-ca.pem")).unwrap()).unwrap();
    Identity {
        chain: vec![CertificateDer::from_pem_file(at(&format!("{end}.pem"))).unwrap()],
        key: PrivateKeyDer::from_pem_file(at(&format!("{end}.key"))).unwrap(),
        roots: roots.into(),
    }
}

/// A handshake in memory, in which each end authenticates. `dialled` is the name that the client expects.
fn shake_hands(client: Identity, server: Identity, dialled: &str) -> Result<(), rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(server.roots, provider.clone()).build().unwrap();
    let accepting = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(server.chain, server.key)?;
    let dialling = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(client.roots)
        .with_client_auth_cert(client.chain, client.key)?;
    let mut client = ClientConnection::new(dialling.into(), ServerName::try_from(dialled.to_owned()).unwrap())?;
    let mut server = ServerConnection::new(accepting.into())?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        server.read_tls(&mut bytes.as_slice()).unwrap();
        server.process_new_packets()?;
        bytes.clear();
        server.write_tls(&mut bytes).unwrap();
        client.read_tls(&mut bytes.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    Ok(())
}

#[test]
fn both_ends_of_a_new_pair_are_complete_and_trust_each_other() {
    for (ground, host) in [("ground.example.org:8443", "ground.example.org"), ("198.51.100.40:9443", "198.51.100.40")] {
        let folder = tempfile::tempdir().unwrap();
        let said = init(folder.path(), "ship", ground);
        assert!(!said.contains("fill in"), "{said}");
        for end in ["ground", "ship"] {
            let checked = longhaul(folder.path(), &["check", &format!("pair/{end}/longhaul.yaml")]);
            assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        }
        let of = |end| identity(folder.path(), end);
        shake_hands(of("ship"), of("ground"), host).unwrap();
        shake_hands(of("ship"), of("ground"), "other.example.org").unwrap_err();
    }
}

#[test]
fn the_ends_of_two_pairs_do_not_trust_each_other() {
    let (ours, theirs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for folder in [&ours, &theirs] {
        init(folder.path(), "ship", "ground.example.org:8443");
    }
    let (ours, theirs) = (|end| identity(ours.path(), end), |end| identity(theirs.path(), end));
    shake_hands(theirs("ship"), ours("ground"), "ground.example.org").unwrap_err();
    // The client trusts the ground, and the ground refuses the client.
    let impostor = Identity { roots: ours("ship").roots, ..theirs("ship") };
    shake_hands(impostor, ours("ground"), "ground.example.org").unwrap_err();
}

#[test]
fn values_that_were_not_given_stay_empty_and_are_said() {
    let folder = tempfile::tempdir().unwrap();
    let said = pair(folder.path(), &["init", "ship", "198.51.100.40:8443"]);
    for end in ["ground", "ship"] {
        assert!(said.contains(&format!("longhaul check pair/{end}/longhaul.yaml")), "{said}");
        let checked = longhaul(folder.path(), &["check", &format!("pair/{end}/longhaul.yaml")]);
        let errors = String::from_utf8(checked.stderr).unwrap();
        assert_eq!(checked.status.code(), Some(2));
        assert!(errors.contains("link.rtt") && errors.contains(":3:"), "{errors}");
    }
}

#[test]
fn another_remote_joins_the_same_ground() {
    let folder = tempfile::tempdir().unwrap();
    let first = init(folder.path(), "ship", "ground.example.org:8443");
    assert!(first.contains("ssh root@ground.example.org systemctl enable --now longhaul\n"), "{first}");
    let config = folder.path().join("pair/ground/longhaul.yaml");
    let certificate = fs::read(folder.path().join("pair/ground/ground.pem")).unwrap();
    let second = init(folder.path(), "plane.example.net", "ground.example.org:8443");
    assert!(fs::read_to_string(&config).unwrap().contains("peer: [ship, plane.example.net]"));
    assert_eq!(fs::read(folder.path().join("pair/ground/ground.pem")).unwrap(), certificate);
    // The ground is running: only its file is copied.
    assert!(second.contains("-cf - longhaul.yaml | ssh root@ground.example.org "), "{second}");
    shake_hands(identity(folder.path(), "plane.example.net"), identity(folder.path(), "ground"), "ground.example.org")
        .unwrap();

    fs::write(&config, "role: ground\nsplit:\n  peer:\n    - ship\n").unwrap();
    let third = init(folder.path(), "boat", "ground.example.org:8443");
    assert!(third.contains("add `boat` to `split.peer` in pair/ground/longhaul.yaml"), "{third}");
    assert!(!fs::read_to_string(&config).unwrap().contains("boat"));
}

#[test]
fn a_renewed_end_has_a_new_key_that_the_other_end_trusts() {
    let folder = tempfile::tempdir().unwrap();
    init(folder.path(), "ship", "198.51.100.40:8443");
    for (end, host) in [("ship", "root@ship"), ("ground", "root@198.51.100.40")] {
        let path = folder.path().join(format!("pair/{end}/{end}.key"));
        let before = fs::read(&path).unwrap();
        let said = pair(folder.path(), &["renew", end]);
        assert!(said.contains(&format!("-cf - {end}.pem {end}.key | ssh {host} ")), "{said}");
        assert_ne!(fs::read(&path).unwrap(), before);
    }
    shake_hands(identity(folder.path(), "ship"), identity(folder.path(), "ground"), "198.51.100.40").unwrap();
}

#[test]
fn keys_are_not_for_everybody() {
    let folder = tempfile::tempdir().unwrap();
    init(folder.path(), "ship", "198.51.100.40:8443");
    pair(folder.path(), &["renew", "ship"]);
    for (file, mode) in [("pair-ca.key", 0o600), ("ship/ship.key", 0o640), ("ground/ground.key", 0o640)] {
        let found = fs::metadata(folder.path().join("pair").join(file)).unwrap().permissions().mode();
        assert_eq!(found & 0o777 & !mode, 0, "{file}: {found:o}");
    }
    assert!(!folder.path().join("pair/ground/pair-ca.key").exists());
    assert!(!folder.path().join("pair/ship/pair-ca.key").exists());
}

#[test]
fn no_file_is_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    init(folder.path(), "ship", "198.51.100.40:8443");
    let key = fs::read(folder.path().join("pair/ship/ship.key")).unwrap();
    let again = refused(folder.path(), &["init", "ship", "198.51.100.40:8443"], 1);
    assert!(again.contains("pair/ship exists") && again.contains("longhaul pair renew ship"), "{again}");
    assert_eq!(fs::read(folder.path().join("pair/ship/ship.key")).unwrap(), key);
    let elsewhere = refused(folder.path(), &["init", "boat", "198.51.100.41:8443"], 1);
    assert!(elsewhere.contains("stands at 198.51.100.40:8443"), "{elsewhere}");
    assert!(!folder.path().join("pair/boat").exists());
}

#[test]
fn a_wrong_command_says_what_was_expected() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code, expected) in [
        (vec!["init", "ground", "198.51.100.40:8443"], 1, "choose another name"),
        (vec!["init", "a b", "198.51.100.40:8443"], 2, "expected a name such as ship"),
        (vec!["init", "ship", "198.51.100.40"], 2, "expected HOST:PORT"),
        (vec!["init", "ship", "198.51.100.40:8443", "--rtt", "600ms }"], 2, "expected a number with a unit"),
        (vec!["renew", "ship"], 1, "longhaul pair init ship GROUND:PORT"),
    ] {
        let said = refused(folder.path(), &arguments, code);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    assert!(!folder.path().join("pair").exists());
}
