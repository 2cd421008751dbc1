"""A throw-away certificate authority: made for one run, trusted by one browser profile, deleted with the run's
folder."""

from __future__ import annotations

import datetime
import subprocess
from dataclasses import dataclass
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True)
class KeyFiles:
    """Paths of a PEM certificate (with its chain) and its PEM key."""

    cert: Path
    key: Path

    def as_dict(self) -> dict[str, str]:
        """Returns the paths in the form of a manifest."""
        return {"cert": str(self.cert), "key": str(self.key)}


class Authority:
    """Issues certificates for names and addresses."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ca = trustme.CA(organization_name="Longhaul test bed")
        self.files = KeyFiles(folder / "ca.pem", folder / "ca.key")
        self._ca.cert_pem.write_to_path(self.files.cert)
        self._ca.private_key_pem.write_to_path(self.files.key)

    def issue(self, *names: str, ends: datetime.datetime | None = None) -> KeyFiles:
        """Issues one certificate for all the names. It replaces an earlier one whose first name is the same."""
        issued = self._ca.issue_cert(*names, not_after=ends)
        stem = self._folder / names[0]
        files = KeyFiles(stem.with_name(stem.name + ".pem"), stem.with_name(stem.name + ".key"))
        files.cert.unlink(missing_ok=True)
        for part in issued.cert_chain_pems:
            part.write_to_path(files.cert, append=True)
        issued.private_key_pem.write_to_path(files.key)
        return files

    def trust_in(self, home: Path) -> None:
        """Makes a browser whose HOME is `home` trust this authority (NSS database, Debian's libnss3-tools)."""
        store = home / ".pki" / "nssdb"
        store.mkdir(parents=True, exist_ok=True)
        self.trust_in_profile(store)

    def trust_in_profile(self, store: Path) -> None:
        """Does it for a browser whose NSS database is in the folder `store`, such as a profile of Firefox."""
        database = f"sql:{store}"
        for arguments in (
            ["-N", "--empty-password"],
            ["-A", "-t", "C,,", "-n", "longhaul-test-bed", "-i", str(self.files.cert)],
        ):
            subprocess.run(["certutil", "-d", database, *arguments], check=True, capture_output=True)


def issue_as_written(folder: Path, authority: KeyFiles, name: str, *, starts_in_days: int = -1) -> KeyFiles:
    """Issues a certificate for one DNS name, whose letters keep their case, or for one URI, with the key files of an
    authority. It is valid for 31 days."""
    issuer = x509.load_pem_x509_certificate(authority.cert.read_bytes())
    signer = serialization.load_pem_private_key(authority.key.read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    begin = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=starts_in_days)
    kind = x509.UniformResourceIdentifier if "://" in name else x509.DNSName
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=31))
        .add_extension(x509.SubjectAlternativeName([kind(name)]), critical=True)
        .sign(signer, hashes.SHA256())
    )
    folder.mkdir(parents=True, exist_ok=True)
    files = KeyFiles(folder / "written.pem", folder / "written.key")
    files.cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    files.key.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return files
